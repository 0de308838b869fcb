//! Reads the rollouts of Codex's CLI, desktop app and editor extension, in all versions of the format.
//!
//! Texts and tool calls come from response items. Events add which messages a person typed, token counts and errors.
//! Records that a fork copied from another thread are skipped. For sessions with deleted rollouts, the prompts are
//! read from the prompt history.

mod continue_session;
mod decode;
mod event;
mod find;
mod history;
mod inherited_history;
mod pending_entries;
mod prompt;
mod record;
mod thread_title;
mod usage;

use std::path::{Path, PathBuf};

use crate::agent::Agent;
use crate::agent::continuation::ContinuationRule;
use crate::agent::hooks::{AgentHooks, HookShape};
use crate::agent::launch::{AgentLaunch, BaseUrlMethod};
use crate::agent::mcp_client::{McpClient, McpClientLocation, McpServerShape};
use crate::agent::nearby::NearbyRules;
use crate::agent::record_format::{ChatMessages, RecordFormat};
use crate::agent::resume::{FolderRule, ResumeRule};
use crate::agent::session_headers::SessionHeaders;
use crate::agent::user_folders::UserFolders;
use crate::decoding::document;
use crate::decoding::json_lines::JsonLines;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::session::Session;
use steno_vault::SessionBundle;

pub use self::find::recognises;

/// The agent's name.
pub const AGENT_NAME: &str = "codex";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find::find_sessions, read: read_session };

/// What is known about Codex.
pub(crate) const AGENT: Agent = Agent {
    locations: |user| {
        let home = config_folder(user);
        ["sessions", "archived_sessions", "history.jsonl"].map(|name| home.join(name)).into()
    },
    nearby: NearbyRules { candidates: uncompressed_file, ..NearbyRules::NONE },
    lines: Some(
        RecordFormat::by_records(|source| Ok(recognises(source)))
            .with_messages(ChatMessages::Typed),
    ),
    resume: Some(ResumeRule {
        program: "codex",
        arguments: &["resume", "{id}"],
        folder: FolderRule::Any,
    }),
    continuation: Some(ContinuationRule {
        tested_versions: &["0.166.0"],
        context_tokens: 258_400,
        write: continue_session::write_session,
        import_arguments: None,
        prompt_arguments: &["{prompt}"],
    }),
    hooks: Some(AgentHooks {
        settings_folders: |user| vec![config_folder(user)],
        settings_file: "config.toml",
        shape: HookShape::Notify,
        events: &["notify"],
        has_plugin: |_| false,
    }),
    mcp_client: Some(McpClient {
        locations: |user| vec![McpClientLocation::in_folder(config_folder(user), "config.toml")],
        shape: McpServerShape::TomlTable,
    }),
    launch: Some(AgentLaunch {
        name: "codex",
        run_order: 1,
        command: &["codex-acp"],
        install: "npm install -g @agentclientprotocol/codex-acp",
        programs: &["codex", "codex-acp"],
        base_url: BaseUrlMethod::CodexConfig,
    }),
    acp_word: Some("codex"),
    session_headers: Some(SessionHeaders {
        program: "codex",
        own_headers: Some("x-codex-"),
        // A thread has its own session file, even if another session started it.
        names: &["thread-id", "session-id", "session_id", "conversation_id"],
        from_body: None,
    }),
    ..Agent::new("Codex", &READER)
};

fn config_folder(user: &UserFolders<'_>) -> PathBuf {
    user.folder_or_default("CODEX_HOME", ".codex")
}

/// The session file that a compressed copy was made of.
fn uncompressed_file(file: &Path, _root: &Path) -> Vec<PathBuf> {
    let name = file.file_name().and_then(|name| name.to_str()?.strip_suffix(".zst"));
    let original = name.map(|name| file.with_file_name(name));
    original.into_iter().filter(|path| path.is_file()).collect()
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    if let (true, Some(excerpt), Some(id)) =
        (bundle.has_only_excerpts(), bundle.excerpts.last(), &bundle.key)
    {
        return history::read_history(excerpt, id, emit);
    }
    let source = document::only_file(bundle)?;
    let origin = prompt::CodexPromptMarker::detect_in(source)?;
    let mut reading = decode::CodexRolloutDecoder::new(source.path(), origin, emit);
    for line in JsonLines::new(source.path(), find::open_rollout(source)?) {
        reading.decode_line(line);
    }
    let mut session = reading.finish();
    if let Some(id) = &session.native_id {
        session.title = thread_title::find_title(bundle, source.path(), id).or(session.title);
    }
    Ok(session)
}

#[cfg(test)]
mod tests;
