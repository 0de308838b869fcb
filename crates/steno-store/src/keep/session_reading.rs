//! Parses a session for its import: what the import needs to know, and the entries for the index.

use std::io::ErrorKind;

use jiff::Timestamp as Instant;
use steno_model::durable::FileError;
use steno_model::entry::PRIMARY_SOURCE;
use steno_model::{Entry, EntryKind, Problem, ProblemList, Role, Session};
use steno_vault::ReadDetail;

use super::SessionImporter;
use super::session_destination::unread_id;
use crate::format::{FormatError, FoundSession, ReaderItem};
use crate::index::SessionDraft;
use crate::store_error::StoreError;

/// Maximum number of characters of a prompt used as a title.
const MAX_TITLE_CHARS: usize = 60;

/// A parsed session.
pub(super) struct ReadSession {
    pub(super) session: Session,
    pub(super) entries: u64,
    /// Time of its first entry.
    pub(super) first_entry: Option<Instant>,
    /// Start of its first prompt.
    pub(super) prompt: Option<String>,
    /// Entries for the index; `None` if they are not indexed now, or too many to hold in memory.
    pub(super) draft: Option<SessionDraft>,
    pub(super) problems: ProblemList,
}

impl SessionImporter {
    /// Parses a session for its import.
    pub(super) fn read_session(&self, found: &FoundSession) -> Result<ReadSession, StoreError> {
        let (mut entries, mut problems, mut prompt) = (0, ProblemList::default(), None);
        let mut first_entry: Option<Instant> = None;
        let mut draft = self.is_indexing.then(SessionDraft::default);
        let wanted = if self.is_indexing { ReadDetail::Full } else { ReadDetail::ShortTexts };
        let bundle = found.bundle.clone().with_detail(wanted);
        let read = (found.reader.read)(&bundle, &mut |item| match item {
            ReaderItem::Entry(entry) => {
                entries += 1;
                first_entry =
                    first_entry.into_iter().chain(entry.created_at.map(|at| at.instant())).min();
                prompt = prompt.take().or_else(|| prompt_start(&entry));
                if let Some(open) = &mut draft {
                    open.push(*entry);
                    if open.is_full() {
                        draft = None;
                    }
                }
            }
            ReaderItem::Problem(problem) => problems.push(problem),
        });
        let session = match read {
            // A session that cannot be parsed is imported too: it may be incomplete, or a later reader may parse it.
            Err(FormatError::File(error)) if is_file_too_large(&error) => {
                problems.push(Problem::for_file(&error.path, &error.source));
                unread_session(found)
            }
            Err(FormatError::Invalid(problem)) => {
                problems.push(problem);
                unread_session(found)
            }
            other => other?,
        };
        Ok(ReadSession { session, entries, first_entry, prompt, draft, problems })
    }
}

/// Returns the start of a prompt; `None` for any other entry.
fn prompt_start(entry: &Entry) -> Option<String> {
    let is_prompt =
        entry.role == Role::User && entry.kind == EntryKind::Text && entry.source == PRIMARY_SOURCE;
    let line = entry.content.lines().find(|line| !line.trim().is_empty());
    line.filter(|_| is_prompt).map(|line| line.trim().chars().take(MAX_TITLE_CHARS).collect())
}

/// Returns whether a file can be stored but not parsed.
fn is_file_too_large(error: &FileError) -> bool {
    error.source.kind() == ErrorKind::FileTooLarge
}

/// Creates a session identified only by its path.
fn unread_session(found: &FoundSession) -> Session {
    let agent = found.reader.agent;
    Session::new(unread_id(agent, &found.bundle), agent)
}
