//! Reads OpenCode's sessions: a SQLite database since 1.2, a tree of JSON files before, and `opencode export`.
//!
//! All three hold the same records: messages and their parts. OpenCode leaves the old tree in place after the
//! migration to the database, so a session in both is read from the database.

mod continue_session;
mod database;
mod decode;
mod export;
mod nearby;
mod part;
mod side_files;
mod storage;
mod user_model;

use std::collections::HashSet;

use self::side_files::OpenCodeSideFiles;
use crate::agent::Agent;
use crate::agent::continuation::ContinuationRule;
use crate::agent::launch::{AgentLaunch, BaseUrlMethod};
use crate::agent::mcp_client::{McpClient, McpClientLocation, McpServerShape};
use crate::agent::nearby::NearbyRules;
use crate::agent::record_format::RecordFormat;
use crate::agent::resume::{FolderRule, ResumeRule};
use crate::agent::session_headers::SessionHeaders;
use crate::agent::user_folders::UserFolders;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::session::Session;
use steno_vault::{SessionBundle, SessionFile, sqlite};

/// The agent's name.
pub const AGENT_NAME: &str = "opencode";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about OpenCode.
pub(crate) const AGENT: Agent = Agent {
    locations: |user| {
        // A relative path is in the data folder, which is already searched.
        let database = user.path_variable("OPENCODE_DB").filter(|path| path.is_absolute());
        [user.data_folder().join("opencode")].into_iter().chain(database).collect()
    },
    program_folders: &[".local/share/opencode/bin"],
    nearby: NearbyRules { candidates: nearby::candidate_paths, ..NearbyRules::NONE },
    document: Some(RecordFormat::by_records(|source| Ok(recognises_export(source)))),
    database_schemas: &[&database::SCHEMA],
    resume: Some(ResumeRule {
        program: "opencode",
        arguments: &["--session", "{id}"],
        folder: FolderRule::Own,
    }),
    mcp_client: Some(McpClient {
        locations: |user| vec![mcp_client_location(user)],
        shape: McpServerShape::CommandList,
    }),
    continuation: Some(ContinuationRule {
        tested_versions: &["1.18.33"],
        context_tokens: 200_000,
        write: continue_session::write_session,
        import_arguments: Some(&["import", "{file}"]),
        prompt_arguments: &["--prompt", "{prompt}"],
    }),
    launch: Some(AgentLaunch {
        name: "opencode",
        run_order: 3,
        command: &["opencode", "acp"],
        install: "npm install -g opencode-ai",
        programs: &["opencode", "opencode-ai"],
        base_url: BaseUrlMethod::OpenCodeConfig,
    }),
    acp_word: Some("opencode"),
    session_headers: Some(SessionHeaders {
        program: "opencode/",
        own_headers: None,
        names: &["x-opencode-session", "x-session-id", "x-session-affinity"],
        from_body: None,
    }),
    reader_version: 2,
    is_session_in_file_name: false,
    ..Agent::new("OpenCode", &READER)
};

/// OpenCode reads two settings files; the one that exists is changed.
fn mcp_client_location(user: &UserFolders<'_>) -> McpClientLocation {
    let folder = user.config_folder().join("opencode");
    let with_comments = "opencode.jsonc";
    let is_there = folder.join(with_comments).exists();
    McpClientLocation::in_folder(folder, if is_there { with_comments } else { "opencode.json" })
}

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let mut bundles = Vec::new();
    let mut files = Vec::new();
    for file in tree.files() {
        let sessions = sqlite::sessions_in_file(file, &database::SCHEMA);
        if sessions.is_empty() {
            files.push(file);
        }
        bundles.extend(sessions);
    }
    let mut known: HashSet<_> = bundles.iter().filter_map(|bundle| bundle.key.clone()).collect();
    let mut beside = OpenCodeSideFiles::default();
    let (mut messages, mut stored) = (HashSet::new(), Vec::new());
    for file in &files {
        let export = SessionBundle::from_file(file);
        if recognises_export(&export.files[0]) {
            bundles.push(export);
        } else if let Some((id, bundle)) = storage::bundle_session(file, &mut beside)
            && !known.contains(&id)
        {
            bundles.push(bundle);
            stored.push(id);
        }
    }
    known.extend(stored);
    for file in &files {
        let folder = file.parent().unwrap_or(file);
        if messages.contains(folder) {
            continue;
        }
        if let Some((id, bundle)) = storage::bundle_from_message(file, &mut beside) {
            messages.insert(folder);
            bundles.extend(known.insert(id).then_some(bundle));
        }
    }
    Ok(bundles)
}

/// Whether a file is what `opencode export` prints.
pub fn recognises_export(source: &SessionFile) -> bool {
    export::is_export(source)
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    if storage::is_storage_tree(bundle) {
        storage::read_tree(bundle, emit)
    } else if sqlite::holds_sqlite_file(bundle)? {
        database::read_database(bundle, emit)
    } else {
        export::read_export(bundle, emit)
    }
}

#[cfg(test)]
mod tests;
