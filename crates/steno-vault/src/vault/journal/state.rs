//! The state of all kept files, read from the journal, and a cache of it.

use std::collections::HashMap;
use std::path::Path;

use memchr::memmem::Finder;

use super::{
    FileState, JournalLine, JournalLink, JournalStamp, ListedFile, parse_journal_line, read_stamp,
    scan_journal,
};
use crate::line_hash::FIRST_LINE_HASH;
use crate::vault::log_head::LogHead;
use steno_model::durable::FileError;

/// The listed files of a session, sorted by name.
///
/// A vector, because most sessions have one file and a store may have many sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListedFiles(Vec<(Box<str>, ListedFile)>);

impl ListedFiles {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ListedFile> {
        self.find_index(name).ok().map(|at| &self.0[at].1)
    }

    pub(crate) fn contains_key(&self, name: &str) -> bool {
        self.find_index(name).is_ok()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &ListedFile)> {
        self.0.iter().map(|(name, file)| (&**name, file))
    }

    fn insert(&mut self, name: &str, file: ListedFile) {
        match self.find_index(name) {
            Ok(at) => self.0[at].1 = file,
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (name.into(), file));
            }
        }
    }

    fn remove(&mut self, name: &str) {
        if let Ok(at) = self.find_index(name) {
            self.0.remove(at);
        }
    }

    fn find_index(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }
}

/// Number of single-session lookups before the whole journal is cached.
const MAX_LOOKUPS: usize = 4;

const JOURNAL_START: LogHead = LogHead { length: 0, line_hash: FIRST_LINE_HASH };

/// The content of the journal.
#[derive(Clone, Debug)]
pub(crate) struct JournalState {
    pub(crate) sessions: HashMap<String, ListedFiles>,
    /// End of the last complete line.
    pub(crate) end: LogHead,
    /// Ends of the damaged lines.
    pub(crate) damaged: Vec<LogHead>,
    /// Bytes after the end, from an interrupted write.
    pub(crate) interrupted: u64,
    /// Whether an earlier journal was lost.
    pub(crate) is_restarted: bool,
}

impl Default for JournalState {
    fn default() -> Self {
        let (sessions, damaged) = (HashMap::new(), Vec::new());
        Self { sessions, end: JOURNAL_START, damaged, interrupted: 0, is_restarted: false }
    }
}

impl JournalState {
    /// Reads the whole journal; `None` if it does not exist.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, FileError> {
        let mut state = Self::default();
        if read_stamp(path).is_none() {
            return Ok(None);
        }
        state.read_appended(path, None)?;
        Ok(Some(state))
    }

    /// Reads the lines after the current end. With `only`, applies only lines of that session.
    fn read_appended(&mut self, path: &Path, only: Option<&str>) -> Result<(), FileError> {
        let start = self.end;
        let named = only.map(|session| format!("\"session\":\"{session}\""));
        let finder = named.as_ref().map(|named| Finder::new(named.as_bytes()));
        let scan = scan_journal(path, start, &mut |line, is_chained, end| {
            let is_wanted = finder.as_ref().is_none_or(|finder| finder.find(line).is_some());
            match is_wanted.then(|| parse_journal_line(line)) {
                _ if !is_chained => self.damaged.push(end),
                Some(Some(line)) => self.apply_line(line),
                Some(None) => self.damaged.push(end),
                None => {}
            }
        })?;
        (self.end, self.interrupted) = (scan.end, scan.interrupted);
        Ok(())
    }

    /// Reads the journal up to `head`; `None` if no line ends there with that hash.
    pub(crate) fn read_prefix(path: &Path, head: LogHead) -> Result<Option<Self>, FileError> {
        if read_stamp(path).is_none() {
            return Ok(None);
        }
        let (mut state, mut is_found) = (Self::default(), false);
        let mut is_whole = true;
        scan_journal(path, JOURNAL_START, &mut |line, is_chained, end| {
            if end.length > head.length {
                return;
            }
            is_whole &= is_chained;
            is_found |= is_whole && end == head;
            if let Some(line) = parse_journal_line(line) {
                state.apply_line(line);
            }
        })?;
        Ok(is_found.then_some(state))
    }

    /// Applies one line.
    pub(crate) fn apply_line(&mut self, line: JournalLine) {
        let JournalLine { session, file, state, length, size, link } = line;
        match state {
            FileState::Restarted => self.is_restarted = true,
            FileState::Removed => {
                self.sessions.entry(session).or_default().remove(&file);
            }
            FileState::Kept | FileState::Open | FileState::Replaced => {
                let link = link.and_then(JournalLink::parse_link);
                let listed = ListedFile { state, length, size, link };
                self.sessions.entry(session).or_default().insert(&file, listed);
            }
        }
    }
}

/// A cache of the journal.
#[derive(Debug, Default)]
pub(super) struct JournalCache {
    /// The file's stamp when it was read.
    stamp: Option<JournalStamp>,
    state: JournalState,
    /// Whether `state` has all sessions or only those looked up.
    has_all_sessions: bool,
    lookups: usize,
}

impl JournalCache {
    pub(super) fn files_of_session(
        &mut self,
        path: &Path,
        session: &str,
    ) -> Result<Option<ListedFiles>, FileError> {
        if !self.catch_up(path)? {
            return Ok(None);
        }
        if !self.has_all_sessions && !self.state.sessions.contains_key(session) {
            self.lookups += 1;
            self.has_all_sessions = self.lookups > MAX_LOOKUPS;
            let only = (!self.has_all_sessions).then_some(session);
            let mut state = JournalState::default();
            state.read_appended(path, only)?;
            if let Some(session) = only {
                let files = state.sessions.remove(session).unwrap_or_default();
                self.state.sessions.insert(session.to_owned(), files);
                state.sessions = std::mem::take(&mut self.state.sessions);
            }
            self.state = state;
        }
        Ok(Some(self.state.sessions.get(session).cloned().unwrap_or_default()))
    }

    pub(super) fn for_each_session(
        &mut self,
        path: &Path,
        take: &mut dyn FnMut(&str, &ListedFiles),
    ) -> Result<(), FileError> {
        if self.catch_up(path)? && !self.has_all_sessions {
            self.state = JournalState::default();
            self.state.read_appended(path, None)?;
            self.has_all_sessions = true;
        }
        self.state.sessions.iter().for_each(|(session, files)| take(session, files));
        Ok(())
    }

    pub(super) fn count_damaged_lines(&mut self, path: &Path) -> Result<u64, FileError> {
        self.catch_up(path)?;
        Ok(self.state.damaged.len() as u64)
    }

    /// Reads new lines. Returns whether the journal exists.
    fn catch_up(&mut self, path: &Path) -> Result<bool, FileError> {
        let now = read_stamp(path);
        if now == self.stamp {
            return Ok(now.is_some());
        }
        let is_grown = match (self.stamp, now) {
            (Some(then), Some(now)) => then.file == now.file && then.size <= now.size,
            _ => false,
        };
        let damaged = self.state.damaged.len();
        if is_grown && self.has_all_sessions {
            self.state.read_appended(path, None)?;
        }
        // A journal that does not continue the cached chain is a different one.
        if !is_grown || !self.has_all_sessions || self.state.damaged.len() > damaged {
            (self.state, self.has_all_sessions) = (JournalState::default(), false);
        }
        self.stamp = now;
        Ok(now.is_some())
    }
}
