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
use std::path::Path;

use crate::durable::FileError;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::Value;
use crate::session::Session;
use steno_vault::Schema;
use steno_vault::sqlite::{self, Database};
use steno_vault::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "cursor";

/// The schemas of its databases.
pub(super) const SCHEMAS: [&Schema; 4] =
    [&store::SCHEMA, &composer::SCHEMA, &workspace_composers::SCHEMA, &tabs::SCHEMA];

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

/// The file beside an editor database that names the workspace folder.
const WORKSPACE: &str = "workspace.json";

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = Vec::new();
    let mut subagents = transcript::SubagentFiles::default();
    for file in tree.files() {
        if sqlite::is_database(file) {
            bundles.extend(in_database(file));
        } else if transcript::is_transcript(file) && !subagents.is_owned(file, tree.root()) {
            bundles.push(transcript::bundle(file));
        }
    }
    Ok(bundles)
}

/// Whether a file is the transcript of an agent.
pub(crate) fn recognises_lines(source: &Source) -> bool {
    transcript::recognises(source)
}

fn in_database(file: &Path) -> Vec<Bundle> {
    if let Some((bundle, _)) = sqlite::known(file, &store::SCHEMA) {
        return vec![bundle];
    }
    let editors = [&composer::SCHEMA, &workspace_composers::SCHEMA, &tabs::SCHEMA];
    let mut bundles = sqlite::sessions_of_all(file, &editors);
    // A moved composer may also remain in its old location.
    let mut known = HashSet::new();
    bundles.retain(|bundle| bundle.key.as_ref().is_none_or(|key| known.insert(key.clone())));
    let workspace = file.with_file_name(WORKSPACE);
    if workspace.is_file() {
        for bundle in &mut bundles {
            bundle.sources.push(Source::on_disk(WORKSPACE, &workspace));
        }
    }
    bundles
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    if !sqlite::holds_database(bundle)? {
        return transcript::read(bundle, emit);
    }
    let database = Database::open(bundle)?;
    if database.fits(&store::SCHEMA) {
        return store::read(&database, emit);
    }
    let key = match &bundle.key {
        Some(key) => key.clone(),
        None => sqlite::session_id(bundle, &database, &composer::SCHEMA)?,
    };
    let record = match composer::record(&database, &key)? {
        Some(record) => Some(record),
        None => workspace_composers::find_record(&database, &key)?,
    };
    let mut session = match record {
        Some(composer) => composer::read(&database, &composer, emit)?,
        None => tabs::read(&database, &key, emit)?,
    };
    if let Some(workspace) = bundle.get(WORKSPACE) {
        session.project = session.project.or(folder(&workspace.bytes()?));
    }
    Ok(session)
}

/// The workspace folder in a `workspace.json`.
fn folder(bytes: &[u8]) -> Option<String> {
    let workspace: Value = serde_json::from_slice(bytes).ok()?;
    let uri = workspace.get("folder").or(workspace.get("workspace"))?.as_str()?;
    Some(uri.strip_prefix("file://").unwrap_or(uri).to_owned())
}

#[cfg(test)]
mod tests;
