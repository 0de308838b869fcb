//! Reads GitHub Copilot CLI's event logs, `session-state/<id>/events.jsonl` or `session-state/<id>.jsonl`.
//!
//! The first versions wrote `history-session-state/session_….json` instead. Subagents' events are in the same file,
//! with the id of the tool call that started the subagent.

mod decode;
mod legacy;
mod usage;

use std::io::BufRead;
use std::path::PathBuf;

use crate::agent::Agent;
use crate::agent::hooks::{AgentHooks, HookShape};
use crate::agent::launch::{AgentLaunch, BaseUrlMethod};
use crate::agent::mcp_client::{McpClient, McpClientLocation, McpServerShape};
use crate::agent::record_format::RecordFormat;
use crate::agent::resume::{FolderRule, ResumeRule};
use crate::agent::user_folders::UserFolders;
use crate::decoding::document;
use crate::decoding::json_lines::JsonLines;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::json::{Object, Value, value_limit};
use steno_model::lines::LineReader;
use steno_model::session::Session;
use steno_vault::{SessionBundle, SessionFile};

/// The agent's name.
pub const AGENT_NAME: &str = "copilot";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about Copilot CLI.
pub(crate) const AGENT: Agent = Agent {
    locations: |user| {
        let home = config_folder(user);
        vec![home.join("session-state"), home.join("history-session-state")]
    },
    lines: Some(RecordFormat::by_records(|source| Ok(recognises(source)))),
    document: Some(RecordFormat::by_records(|source| Ok(recognises_document(source)))),
    resume: Some(ResumeRule {
        program: "copilot",
        arguments: &["--resume={id}"],
        folder: FolderRule::Any,
    }),
    hooks: Some(AgentHooks {
        settings_folders: |user| vec![config_folder(user)],
        settings_file: "hooks/steno.json",
        shape: HookShape::Commands("bash"),
        events: &["sessionStart", "agentStop", "subagentStop", "preCompact", "sessionEnd"],
        has_plugin: |_| false,
    }),
    mcp_client: Some(McpClient {
        locations: |user| {
            vec![McpClientLocation::in_folder(config_folder(user), "mcp-config.json")]
        },
        shape: McpServerShape::Servers { kind: Some("local"), lists_tools: true },
    }),
    launch: Some(AgentLaunch {
        name: "copilot",
        run_order: 5,
        command: &["copilot", "--acp"],
        install: "npm install -g @github/copilot",
        programs: &["copilot"],
        base_url: BaseUrlMethod::None,
    }),
    acp_word: Some("copilot"),
    bills_subagents_together: true,
    ..Agent::new("Copilot CLI", &READER)
};

fn config_folder(user: &UserFolders<'_>) -> PathBuf {
    user.folder_or_default("COPILOT_HOME", ".copilot")
}

/// How many lines of a file are parsed to recognize it.
const PROBED_LINES: usize = 5;

/// How many bytes of each of these lines are read.
const PROBED_BYTES: usize = 8 << 20;

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let bundles = tree.files().iter().map(|file| SessionBundle::from_file(file));
    Ok(bundles.filter(|bundle| recognises(&bundle.files[0])).collect())
}

/// Whether a file is a session, of any version.
pub fn recognises(source: &SessionFile) -> bool {
    is_event_log(source) || legacy::is_legacy_session(source)
}

/// Whether a file is a session of the first versions.
pub fn recognises_document(source: &SessionFile) -> bool {
    legacy::is_legacy_session(source)
}

fn is_event_log(source: &SessionFile) -> bool {
    let Ok(mut input) = source.open() else {
        return false;
    };
    if !input.fill_buf().is_ok_and(|start| start.trim_ascii_start().starts_with(b"{")) {
        return false;
    }
    let lines = LineReader::with_limit(input, PROBED_BYTES).map_while(Result::ok);
    let mut objects = lines.take(PROBED_LINES).filter_map(|line| {
        let object: Option<Object> = value_limit::parse_limited(&line.bytes).ok();
        object
    });
    objects.any(|object| is_event(&object))
}

/// Whether a record is an event: it has a dotted type, data, an id and a parent id.
fn is_event(object: &Object) -> bool {
    let has_dotted_type =
        object.get("type").and_then(Value::as_str).is_some_and(|kind| kind.contains('.'));
    has_dotted_type
        && object.get("data").is_some_and(Value::is_object)
        && object.get("id").is_some_and(Value::is_string)
        && object.get("timestamp").is_some_and(Value::is_string)
        && object.contains_key("parentId")
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let source = document::only_file(bundle)?;
    if legacy::is_legacy_session(source) {
        return legacy::read_legacy_session(source, emit);
    }
    let mut reading = decode::CopilotEventDecoder::new(source.path(), emit);
    for line in JsonLines::open(source)? {
        reading.decode_line(line);
    }
    Ok(reading.finish())
}

#[cfg(test)]
mod tests;
