//! Reads Kimi Code's sessions: one wire log per agent, and a file with the session's metadata.
//!
//! A log has each prompt twice, as typed and as sent to the model; it is emitted once. The older Kimi CLI has
//! another log format, with one log per session.

mod decode;
mod legacy;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::decode::KimiWireDecoder;
use crate::agent::Agent;
use crate::agent::nearby::NearbyRules;
use crate::agent::record_format::{ChatMessages, RecordFormat};
use crate::agent::resume::{FolderRule, ResumeRule};
use crate::decoding::file_head::FileHead;
use crate::decoding::session_emitter::SessionEmitter;
use crate::decoding::{json_fields, json_records};
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::PRIMARY_SOURCE;
use steno_model::json::Object;
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_vault::{SessionBundle, SessionFile};

/// The agent's name.
pub const AGENT_NAME: &str = "kimi";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about Kimi.
pub(crate) const AGENT: Agent = Agent {
    locations: |user| {
        let folders = [("KIMI_CODE_HOME", ".kimi-code"), ("KIMI_SHARE_DIR", ".kimi")];
        folders.map(|(name, usual)| user.folder_or_default(name, usual).join("sessions")).into()
    },
    nearby: NearbyRules {
        session_folder_files: &["context.jsonl"],
        part_folders: &[AGENTS_FOLDER, "subagents"],
        ..NearbyRules::NONE
    },
    lines: Some(RecordFormat::by_head(recognises).with_messages(ChatMessages::Always)),
    resume: Some(ResumeRule {
        program: "kimi",
        arguments: &["--session", "{id}"],
        folder: FolderRule::Own,
    }),
    acp_word: Some("kimi"),
    ..Agent::new("Kimi", &READER)
};

/// The file with a session's metadata.
const STATE_FILE: &str = "state.json";

/// The subfolder of a session's folder with one folder per agent.
const AGENTS_FOLDER: &str = "agents";

/// The agent that talks to the user.
const MAIN_AGENT: &str = "main";

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let logs = json_records::find_candidates(tree, recognises)?;
    let mut bundles = Vec::new();
    let mut sessions: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for log in logs {
        let folder = session_folder(&log.root).or_else(|| legacy_session_folder(&log));
        match folder.filter(|folder| folder.starts_with(tree.root())) {
            Some(folder) => sessions.entry(folder).or_default().push(log.root),
            None => bundles.push(log),
        }
    }
    bundles.extend(sessions.into_iter().map(|(folder, logs)| bundle_session(folder, logs)));
    Ok(bundles)
}

/// Whether a file starts like a log of any version.
pub fn recognises(head: &FileHead) -> bool {
    let fields = head.scalar_fields();
    let is_metadata = json_fields::text_field(&fields, "type") == Some("metadata");
    let has_header = fields.contains_key("protocol_version") && fields.contains_key("created_at");
    (is_metadata && has_header) || legacy::is_legacy_log(head)
}

/// The session folder of a log in an `agents` folder.
fn session_folder(log: &Path) -> Option<PathBuf> {
    let agents = log.parent()?.parent()?;
    agents.ends_with(AGENTS_FOLDER).then(|| agents.parent().map(Path::to_owned))?
}

/// Like [`session_folder`], for a log of the older CLI.
fn legacy_session_folder(log: &SessionBundle) -> Option<PathBuf> {
    let folder = legacy::session_folder(&log.root)?;
    legacy::is_legacy_session(log).ok()?.then_some(folder)
}

fn bundle_session(folder: PathBuf, mut logs: Vec<PathBuf>) -> SessionBundle {
    logs.sort_by_key(|log| !log.parent().is_some_and(|agent| agent.ends_with(MAIN_AGENT)));
    let state = Some(folder.join(STATE_FILE)).filter(|state| state.is_file());
    let sources = logs.into_iter().chain(state).map(|path| {
        let below = path.strip_prefix(&folder).unwrap_or(&path);
        let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        SessionFile::on_disk(parts.join("/"), &path)
    });
    let sources = sources.collect();
    SessionBundle::new(folder, sources)
}

fn missing_log_error(bundle: &SessionBundle) -> FormatError {
    FormatError::Invalid(Problem::for_file(&bundle.root, "no log in it"))
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    if legacy::is_legacy_session(bundle)? {
        return legacy::read_legacy_session(bundle, emit);
    }
    let (states, mut logs): (Vec<_>, Vec<_>) =
        bundle.files.iter().partition(|source| source.name() == STATE_FILE);
    logs.sort_by_key(|source| agent_name(source).is_some_and(|name| name != MAIN_AGENT));
    let Some(first) = logs.first() else { return Err(missing_log_error(bundle)) };
    let folder = bundle.root.file_name().map(|name| name.to_string_lossy().into_owned());
    let id = folder.filter(|_| agent_name(first).is_some());
    let id = id.unwrap_or_else(|| json_records::session_stem(first).to_owned());
    let mut emitter = SessionEmitter::new(AGENT_NAME, &id, emit);
    for state in states {
        match json_records::read_object(state)? {
            Ok(state) => apply_state(&mut emitter.session, &state),
            Err(problem) => emitter.emit_problem(problem),
        }
    }
    for (index, log) in logs.iter().enumerate() {
        emitter.source = match agent_name(log) {
            Some(name) if index > 0 => format!("subagent:{name}"),
            _ => PRIMARY_SOURCE.to_owned(),
        };
        emitter.session.subagent_files += u64::from(index > 0);
        KimiWireDecoder::new(&mut emitter).read_log(log)?;
    }
    Ok(emitter.session)
}

/// The agent of a log in an `agents` folder.
fn agent_name(source: &SessionFile) -> Option<&str> {
    source.name().strip_prefix(AGENTS_FOLDER)?.strip_prefix('/')?.split('/').next()
}

/// Fills in the session from `state.json`. The older CLI has other field names.
fn apply_state(session: &mut Session, state: &Object) {
    let first = |names: &[&str]| {
        let mut texts = names.iter().filter_map(|name| json_fields::text_field(state, name));
        texts.find(|text| !text.is_empty()).map(str::to_owned)
    };
    session.title = first(&["title", "custom_title"]);
    session.project = first(&["workDir", "cwd", "work_dir", "worktree_path"]);
}
