//! Reads OpenCode's sessions: a SQLite database since 1.2, a tree of JSON files before, and `opencode export`.
//!
//! All three hold the same records: messages and their parts. OpenCode leaves the old tree in place after the
//! migration to the database, so a session in both is read from the database.

mod beside;
mod conversation;
mod database;
mod export;
mod part;
mod storage;

use std::collections::HashSet;

use self::beside::Beside;
use crate::durable::FileError;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::session::Session;
use steno_vault::Schema;
use steno_vault::sqlite;
use steno_vault::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "opencode";

/// The schema by which its database is recognized.
pub(super) const SCHEMA: Schema = database::SCHEMA;

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = Vec::new();
    let mut files = Vec::new();
    for file in tree.files() {
        let sessions = sqlite::sessions(file, &database::SCHEMA);
        if sessions.is_empty() {
            files.push(file);
        }
        bundles.extend(sessions);
    }
    let mut known: HashSet<_> = bundles.iter().filter_map(|bundle| bundle.key.clone()).collect();
    let mut beside = Beside::default();
    let (mut messages, mut stored) = (HashSet::new(), Vec::new());
    for file in &files {
        let export = Bundle::file(file);
        if recognises_export(&export.sources[0]) {
            bundles.push(export);
        } else if let Some((id, bundle)) = storage::session(file, &mut beside)
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
        if let Some((id, bundle)) = storage::session_of_message(file, &mut beside) {
            messages.insert(folder);
            bundles.extend(known.insert(id).then_some(bundle));
        }
    }
    Ok(bundles)
}

/// Whether a file is what `opencode export` prints.
pub(crate) fn recognises_export(source: &Source) -> bool {
    export::is_export(source)
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    if storage::is_tree(bundle) {
        storage::read(bundle, emit)
    } else if sqlite::holds_database(bundle)? {
        database::read(bundle, emit)
    } else {
        export::read(bundle, emit)
    }
}

#[cfg(test)]
mod tests;
