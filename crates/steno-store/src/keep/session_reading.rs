//! Parses a session for its import: what the import needs to know, and the entries for the index.

use std::io::ErrorKind;

use jiff::Timestamp as Instant;
use steno_model::durable::FileError;
use steno_model::entry::PRIMARY_SOURCE;
use steno_model::{Entry, EntryKind, Problem, ProblemList, Role, Session};
use steno_vault::{ReadDetail, SessionBundle};

use super::file_stamp::{FileStamp, file_stamp};
use super::session_destination::unread_id;
use crate::format::{FormatError, FoundSession, ReaderItem};
use crate::index::SessionDraft;
use crate::store_error::StoreError;

/// A larger session is not held in memory with others that wait for the index.
const LARGE_SESSION_BYTES: u64 = 8 << 20;

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

impl ReadSession {
    /// Parses a session for its import.
    pub(super) fn parse(found: &FoundSession, is_indexing: bool) -> Result<Self, StoreError> {
        let (mut entries, mut problems, mut prompt) = (0, ProblemList::default(), None);
        let mut first_entry: Option<Instant> = None;
        let mut draft = is_indexing.then(SessionDraft::default);
        let wanted = if is_indexing { ReadDetail::Full } else { ReadDetail::ShortTexts };
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
        Ok(Self { session, entries, first_entry, prompt, draft, problems })
    }
}

/// What was parsed of a session's files, with the stamps they had before.
pub(crate) struct ParsedFiles {
    pub(super) stamps: Vec<Option<FileStamp>>,
    pub(super) read: Result<ReadSession, StoreError>,
}

impl ParsedFiles {
    /// Parses a session before its import, unless it is large: the import makes room for one first.
    pub(crate) fn read_ahead(found: &FoundSession, is_indexing: bool) -> Option<Self> {
        let stamps = file_stamps(&found.bundle);
        let is_small = !is_large_session(&stamps);
        is_small.then(|| Self { stamps, read: ReadSession::parse(found, is_indexing) })
    }
}

/// Returns whether a session is too large to be in memory with others.
pub(super) fn is_large_session(stamps: &[Option<FileStamp>]) -> bool {
    stamps.iter().flatten().map(|(size, _)| size).sum::<u64>() > LARGE_SESSION_BYTES
}

/// Returns size and time of each file of a session.
pub(super) fn file_stamps(bundle: &SessionBundle) -> Vec<Option<FileStamp>> {
    bundle.main_files().iter().map(|source| file_stamp(source.path())).collect()
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
