//! Cursor: agent transcripts as JSON Lines, the store of its command line, and the databases of its editor.
//!
//! Transcripts have no ids, times or usage. A store is one session, as a tree of blobs. An editor database has many
//! sessions: composers as one value or with one row per bubble, composers of 2024 in one value for all, and chats of
//! 2024 as tabs.

mod bubble;
mod composer;
mod prompt;
mod store;
mod tabs;
mod transcript;
mod tree_node;
mod workspace_composers;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::agent::Agent;
use crate::agent::hooks::{AgentHooks, HookShape};
use crate::agent::mcp_client::{McpClient, McpClientLocation, McpServerShape};
use crate::agent::nearby::NearbyRules;
use crate::agent::record_format::RecordFormat;
use crate::agent::resume::{FolderRule, ResumeRule};
use crate::agent::user_folders::UserFolders;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::json::Value;
use steno_model::session::Session;
use steno_vault::sqlite::{self, AgentDatabase};
use steno_vault::{DatabaseSchema, SessionBundle, SessionFile};

/// The agent's name.
pub const AGENT_NAME: &str = "cursor";

/// The schemas of its databases.
const SCHEMAS: [&DatabaseSchema; 4] =
    [&store::SCHEMA, &composer::SCHEMA, &workspace_composers::SCHEMA, &tabs::SCHEMA];

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about Cursor.
pub(crate) const AGENT: Agent = Agent {
    locations: session_locations,
    nearby: NearbyRules {
        part_folders: &["subagents"],
        describes_folder: |file| file.ends_with(WORKSPACE_FILE),
        ..NearbyRules::NONE
    },
    lines: Some(RecordFormat::by_records(|source| Ok(recognises_lines(source)))),
    database_schemas: &SCHEMAS,
    resume: Some(ResumeRule {
        program: "cursor-agent",
        arguments: &["--resume", "{id}"],
        folder: FolderRule::Own,
    }),
    hooks: Some(AgentHooks {
        settings_folders: |user| vec![user.home.join(".cursor")],
        settings_file: "hooks.json",
        shape: HookShape::Commands("command"),
        events: &["sessionStart", "stop", "subagentStop", "preCompact", "sessionEnd"],
        has_plugin: |_| false,
    }),
    mcp_client: Some(McpClient {
        locations: |user| vec![McpClientLocation::in_folder(user.home.join(".cursor"), "mcp.json")],
        shape: McpServerShape::PLAIN_SERVERS,
    }),
    ..Agent::new("Cursor", &READER)
};

fn session_locations(user: &UserFolders<'_>) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        [".cursor/projects", ".cursor/chats"].iter().map(|folder| user.home.join(folder)).collect();
    for editor in user.editor_folders_named(&["Cursor"]) {
        // Its folder also has files of many extensions.
        paths.push(editor.join("globalStorage/state.vscdb"));
        paths.push(editor.join("workspaceStorage"));
    }
    paths
}

/// The file beside an editor database that names the workspace folder.
const WORKSPACE_FILE: &str = "workspace.json";

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let mut bundles = Vec::new();
    let mut subagents = transcript::SubagentFiles::default();
    for file in tree.files() {
        if sqlite::is_sqlite_file(file) {
            bundles.extend(database_sessions(file));
        } else if transcript::is_transcript(file) && !subagents.is_owned(file, tree.root()) {
            bundles.push(transcript::bundle_session(file));
        }
    }
    Ok(bundles)
}

/// Whether a file is the transcript of an agent.
pub fn recognises_lines(source: &SessionFile) -> bool {
    transcript::recognises(source)
}

fn database_sessions(file: &Path) -> Vec<SessionBundle> {
    if let Some((bundle, _)) = sqlite::open_known(file, &store::SCHEMA) {
        return vec![bundle];
    }
    let editors = [&composer::SCHEMA, &workspace_composers::SCHEMA, &tabs::SCHEMA];
    let mut bundles = sqlite::sessions_by_schema(file, &editors);
    // A moved composer may also remain in its old location.
    let mut known = HashSet::new();
    bundles.retain(|bundle| bundle.key.as_ref().is_none_or(|key| known.insert(key.clone())));
    let workspace = file.with_file_name(WORKSPACE_FILE);
    if workspace.is_file() {
        for bundle in &mut bundles {
            bundle.files.push(SessionFile::on_disk(WORKSPACE_FILE, &workspace));
        }
    }
    bundles
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    if !sqlite::holds_sqlite_file(bundle)? {
        return transcript::read_transcript(bundle, emit);
    }
    let database = AgentDatabase::open(bundle)?;
    if database.matches_schema(&store::SCHEMA) {
        return store::read_store(&database, emit);
    }
    let key = match &bundle.key {
        Some(key) => key.clone(),
        None => sqlite::session_id(bundle, &database, &composer::SCHEMA)?,
    };
    let record = match composer::find_composer(&database, &key)? {
        Some(record) => Some(record),
        None => workspace_composers::find_composer(&database, &key)?,
    };
    let mut session = match record {
        Some(composer) => composer::read_composer(&database, &composer, emit)?,
        None => tabs::read_tab(&database, &key, emit)?,
    };
    if let Some(workspace) = bundle.file_named(WORKSPACE_FILE) {
        session.project = session.project.or(parse_workspace_folder(&workspace.read_bytes()?));
    }
    Ok(session)
}

/// The workspace folder in a `workspace.json`.
fn parse_workspace_folder(bytes: &[u8]) -> Option<String> {
    let workspace: Value = serde_json::from_slice(bytes).ok()?;
    let uri = workspace.get("folder").or(workspace.get("workspace"))?.as_str()?;
    Some(uri.strip_prefix("file://").unwrap_or(uri).to_owned())
}

#[cfg(test)]
mod tests;
