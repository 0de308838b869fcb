//! Notes of users about a session or one of its entries.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::entry::Entry;
use crate::timestamp::Timestamp;

/// A note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Its id, for removing it.
    pub id: Uuid,
    /// When it was written.
    pub at: Timestamp,
    /// The entry it refers to; without one, it refers to the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<Uuid>,
    /// The text.
    pub text: String,
}

impl Note {
    /// The words that start with `#`, without the `#`.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        let words = self.text.split_whitespace().filter_map(|word| word.strip_prefix('#'));
        let ends = |c: char| !c.is_alphanumeric() && !"-_/".contains(c);
        words.map(move |word| word.split(ends).next().unwrap_or(word)).filter(|tag| !tag.is_empty())
    }

    /// The notes about one entry.
    pub fn for_entry<'a>(notes: &'a [Note], entry: &'a Entry) -> impl Iterator<Item = &'a Note> {
        notes.iter().filter(|note| note.entry == Some(entry.entry_id))
    }

    /// The notes about no entry in `entries`: about the session, or about entries that no longer exist.
    pub fn for_session<'a>(notes: &'a [Note], entries: &[Entry]) -> Vec<&'a Note> {
        let ids: HashSet<Uuid> = entries.iter().map(|entry| entry.entry_id).collect();
        let is_there = |id: Uuid| ids.contains(&id);
        notes.iter().filter(|note| !note.entry.is_some_and(is_there)).collect()
    }
}
