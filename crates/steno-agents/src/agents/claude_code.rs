//! Reads Claude Code's sessions: one JSON Lines file per session, and one per subagent.
//!
//! Also reads web exports (`{"loglines":[…]}`), Claude Desktop's sessions, and the prompt history, which is all
//! that remains of purged sessions. Records from before a compaction stay in the file and are read too.

mod billing;
mod blocks;
mod continue_session;
mod decode;
mod find;
mod history;
mod lenient_value;
mod links;
mod nearby;
mod probe;
mod prompt;
mod purged_sessions;
mod record;
mod session_facts;
mod usage;
mod user_id;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

pub use self::probe::is_claude_file;

use self::billing::ClaudeUsageAssigner;
use self::decode::ClaudeRecordDecoder;
use self::probe::ClaudeFileKind;
use self::record::ClaudeRecord;
use self::session_facts::ClaudeSessionFacts;
use crate::agent::Agent;
use crate::agent::continuation::ContinuationRule;
use crate::agent::hooks::{AgentHooks, HookShape};
use crate::agent::launch::{AgentLaunch, BaseUrlMethod};
use crate::agent::mcp_client::{McpClient, McpClientLocation, McpServerShape};
use crate::agent::nearby::NearbyRules;
use crate::agent::record_format::RecordFormat;
use crate::agent::resume::{FolderRule, ResumeRule};
use crate::agent::session_headers::SessionHeaders;
use crate::agent::user_folders::UserFolders;
use crate::decoding::json_lines::JsonLines;
use crate::reader::{FormatError, FormatReader, ItemSink, ReaderItem, entry_sink};
use steno_model::entry::PRIMARY_SOURCE;
use steno_model::json::Object;
use steno_model::numbering::EntryNumbering;
use steno_model::problem::{Problem, json_error_reason};
use steno_model::session::{Session, SessionId};
use steno_vault::{ReadDetail, SessionBundle, SessionFile};

/// The agent's name.
pub const AGENT_NAME: &str = "claude-code";

/// How many bytes of each text are read when only counts are needed. Longer than any id.
const BRIEF_TEXT_BYTES: usize = 256;

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find::find_sessions, read: read_session };

/// What is known about Claude Code.
pub(crate) const AGENT: Agent = Agent {
    locations: session_locations,
    nearby: NearbyRules {
        candidates: nearby::candidate_paths,
        part_folders: &["subagents"],
        ..NearbyRules::NONE
    },
    lines: Some(RecordFormat::by_records(is_claude_file)),
    resume: Some(ResumeRule {
        program: "claude",
        arguments: &["--resume", "{id}"],
        folder: FolderRule::Named { limit: continue_session::MAX_FOLDER_NAME },
    }),
    continuation: Some(ContinuationRule {
        tested_versions: &["2.1.325"],
        context_tokens: 200_000,
        write: continue_session::write_session,
        import_arguments: None,
        prompt_arguments: &["{prompt}"],
    }),
    hooks: Some(AgentHooks {
        settings_folders,
        settings_file: "settings.json",
        shape: HookShape::Groups,
        events: &HOOK_EVENTS,
        has_plugin,
    }),
    mcp_client: Some(McpClient {
        locations: mcp_client_locations,
        shape: McpServerShape::Servers { kind: Some("stdio"), lists_tools: false },
    }),
    launch: Some(AgentLaunch {
        name: "claude",
        run_order: 0,
        command: &["claude-agent-acp"],
        install: "npm install -g @agentclientprotocol/claude-agent-acp",
        programs: &["claude", "claude-code", "claude-agent-acp"],
        base_url: BaseUrlMethod::ClaudeSettings,
    }),
    acp_word: Some("claude"),
    session_headers: Some(SessionHeaders {
        program: "",
        own_headers: None,
        names: &["x-claude-code-session-id"],
        from_body: Some(user_id::session_id_in_body),
    }),
    ..Agent::new("Claude Code", &READER)
};

/// The hooks that sync a session. Qwen Code has the same.
pub(super) const HOOK_EVENTS: [&str; 5] =
    ["SessionStart", "Stop", "SubagentStop", "PreCompact", "SessionEnd"];

fn session_locations(user: &UserFolders<'_>) -> Vec<PathBuf> {
    let folders = config_folders(user).into_iter();
    let mut paths: Vec<_> = folders
        .flat_map(|config| [config.join("projects"), config.join("history.jsonl")])
        .collect();
    paths.push(user.application_support_folder().join("Claude/local-agent-mode-sessions"));
    paths
}

/// Returns whether the plugin `steno` of any marketplace is enabled.
fn has_plugin(folder: &Path) -> bool {
    let settings = std::fs::read(folder.join("settings.json")).ok();
    let settings: Option<serde_json::Value> =
        settings.and_then(|text| serde_json::from_slice(&text).ok());
    let plugins = settings.as_ref().and_then(|settings| settings["enabledPlugins"].as_object());
    let is_ours = |(name, enabled): (&String, &serde_json::Value)| {
        name.starts_with("steno@") && *enabled == true
    };
    plugins.is_some_and(|plugins| plugins.iter().any(is_ours))
}

/// The folders that may have settings: Claude Code reads none from `.config`.
fn settings_folders(user: &UserFolders<'_>) -> Vec<PathBuf> {
    let unread = user.home.join(".config/claude");
    config_folders(user).into_iter().filter(|folder| *folder != unread).collect()
}

/// Claude Code keeps the servers of a user beside its folder, or in the folder that the variable names.
fn mcp_client_locations(user: &UserFolders<'_>) -> Vec<McpClientLocation> {
    let usual = user.home.join(".claude");
    let location = |folder: PathBuf| {
        let location = McpClientLocation::in_folder(folder, ".claude.json");
        match (user.variable)("CLAUDE_CONFIG_DIR") {
            None if location.folder == usual => {
                McpClientLocation { settings: user.home.join(".claude.json"), ..location }
            }
            _ => location,
        }
    };
    settings_folders(user).into_iter().map(location).collect()
}

/// Claude Code's folders. The variable may list several, separated by commas.
fn config_folders(user: &UserFolders<'_>) -> Vec<PathBuf> {
    match (user.variable)("CLAUDE_CONFIG_DIR") {
        Some(named) => named.to_string_lossy().split(',').map(|part| part.trim().into()).collect(),
        None => vec![user.home.join(".claude"), user.home.join(".config/claude")],
    }
}

/// Reads the session's main file, then its subagents' files.
fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    if let Some(excerpt) = bundle.excerpts.last().filter(|_| bundle.has_only_excerpts()) {
        return history::read_history(excerpt, bundle.key.as_deref(), emit);
    }
    let Some(main) = find::main_session_file(bundle) else {
        return read_subagents_only(bundle, emit);
    };
    let kind = probe::probe_file(main)?;
    if let Some(ClaudeFileKind::History) = kind {
        return history::read_history(main, None, emit);
    }
    let native_id = find::native_id(main.name(), kind.as_ref());
    let mut reading = ClaudeSessionReader::new(&native_id, bundle.detail, emit);
    reading.converter.source = find::subagent_id(main.name()).map(|_| PRIMARY_SOURCE.to_owned());
    match kind {
        Some(ClaudeFileKind::Export) => reading.read_export(main)?,
        _ => reading.read_file(main)?,
    }
    let facts = std::mem::take(&mut reading.facts);
    let others = bundle.files.iter().filter(|source| source.name() != main.name());
    let subagent_files = reading.read_subagent_files(others);
    reading.finish();
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, &native_id), AGENT_NAME);
    session.native_id = Some(native_id);
    session.subagent_files = subagent_files;
    facts.fill_session(&mut session);
    if let (Some(_), Some(ClaudeFileKind::Session(parent))) = (find::subagent_id(main.name()), kind)
    {
        session.parent = parent;
    }
    apply_sidecars(&mut session, bundle);
    Ok(session)
}

/// Reads a session of which only subagent files exist: the main file is not written yet, or was deleted.
fn read_subagents_only(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    if bundle.files.is_empty() {
        return Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no file in it")));
    }
    let native_id = find::native_id(&bundle.root.to_string_lossy(), None);
    let mut reading = ClaudeSessionReader::new(&native_id, bundle.detail, emit);
    let subagent_files = reading.read_subagent_files(&bundle.files);
    let facts = std::mem::take(&mut reading.facts);
    reading.finish();
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, &native_id), AGENT_NAME);
    session.native_id = Some(native_id);
    session.subagent_files = subagent_files;
    facts.fill_session(&mut session);
    Ok(session)
}

/// Fills in metadata from sidecar files: a subagent's type and task, Claude Desktop's title.
fn apply_sidecars(session: &mut Session, bundle: &SessionBundle) {
    let sidecars = bundle.files.iter().filter(|source| find::is_sidecar(source.name(), bundle));
    for sidecar in sidecars {
        let fields =
            sidecar.read_bytes().ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut fields: Object = fields.unwrap_or_default();
        if session.title.is_none() {
            session.title = fields.get("title").and_then(|title| title.as_str()).map(str::to_owned);
        }
        for name in ["agentType", "description", "toolUseId", "parentAgentId", "isArchived"] {
            session.extra.extend(fields.shift_remove_entry(name));
        }
    }
}

/// Decodes the files of one session into entries.
struct ClaudeSessionReader<'e> {
    converter: ClaudeRecordDecoder,
    billing: ClaudeUsageAssigner,
    facts: ClaudeSessionFacts,
    detail: ReadDetail,
    emit: ItemSink<'e>,
}

#[derive(Deserialize)]
struct ClaudeWebExport<'a> {
    #[serde(borrow)]
    loglines: Vec<&'a RawValue>,
}

impl<'e> ClaudeSessionReader<'e> {
    fn new(native_id: &str, detail: ReadDetail, emit: ItemSink<'e>) -> Self {
        let mut converter = ClaudeRecordDecoder::new(EntryNumbering::new(AGENT_NAME, native_id));
        converter.tools.is_input_omitted = detail != ReadDetail::Full;
        let (billing, facts) = (ClaudeUsageAssigner::default(), ClaudeSessionFacts::default());
        Self { converter, billing, facts, detail, emit }
    }

    fn read_file(&mut self, source: &SessionFile) -> Result<(), FormatError> {
        JsonLines::open(source)?.for_each_line(|number, line| match line {
            Ok(bytes) => self.decode_line(source.path(), number, bytes),
            Err(problem) => (self.emit)(ReaderItem::Problem(problem)),
        });
        Ok(())
    }

    /// Reads the subagent files among `sources` and returns their number.
    fn read_subagent_files<'s>(
        &mut self,
        sources: impl IntoIterator<Item = &'s SessionFile>,
    ) -> u64 {
        let mut count = 0;
        for source in sources {
            if let Some(agent) = find::subagent_id(source.name()) {
                self.converter.source = Some(format!("subagent:{agent}"));
                self.read_subagent_file(source);
                count += 1;
            }
        }
        count
    }

    /// Reads a subagent's file. A failure is reported as a problem; the session is read without it.
    fn read_subagent_file(&mut self, source: &SessionFile) {
        if let Err(error) = self.read_file(source) {
            (self.emit)(ReaderItem::Problem(Problem::for_file(source.path(), error)));
        }
    }

    fn read_export(&mut self, source: &SessionFile) -> Result<(), FormatError> {
        let bytes = source.read_bytes()?;
        let export: ClaudeWebExport<'_> = serde_json::from_slice(&bytes).map_err(|error| {
            FormatError::Invalid(Problem::for_file(source.path(), json_error_reason(&error)))
        })?;
        for (number, record) in (1..).zip(export.loglines) {
            self.decode_line(source.path(), number, record.get().as_bytes());
        }
        Ok(())
    }

    /// Decodes the records of a line: one, or several if the newlines between them were lost.
    fn decode_line(&mut self, path: &Path, number: u64, bytes: &[u8]) {
        if self.detail == ReadDetail::UsageOnly
            && self.facts.has_project()
            && !record::mentions_usage(bytes)
        {
            return;
        }
        let mut rest = bytes.trim_ascii();
        while !rest.is_empty() {
            match self.decode_record(number, rest) {
                Ok(length) => rest = rest[length..].trim_ascii_start(),
                Err(reason) => {
                    let repaired = record::repair_record(rest);
                    if repaired
                        .is_none_or(|repaired| self.decode_record(number, &repaired).is_err())
                    {
                        self.report_problem(path, number, &reason);
                    }
                    return;
                }
            }
        }
    }

    fn decode_record(&mut self, number: u64, bytes: &[u8]) -> Result<usize, String> {
        let limit = if self.detail == ReadDetail::Full { usize::MAX } else { BRIEF_TEXT_BYTES };
        let (record, length) = ClaudeRecord::parse_first(bytes, limit)?;
        let at = record.timestamp.text().and_then(|text| text.parse().ok());
        self.facts.note_record(&record, at);
        let line = decode::ClaudeLine { record, raw: &bytes[..length], number, at };
        let (entries, bill) = self.converter.decode_line(line);
        self.billing.push_entries(entries, bill, &mut entry_sink(self.emit));
        Ok(length)
    }

    fn report_problem(&mut self, path: &Path, number: u64, reason: &str) {
        (self.emit)(ReaderItem::Problem(Problem::at_line(path, number, reason)));
    }

    fn finish(mut self) {
        self.billing.close_message(&mut entry_sink(self.emit));
    }
}
