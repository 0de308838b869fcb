//! The state of all kept files, read from the journal, and a cache of it.

use std::collections::HashMap;
use std::path::Path;

use memchr::memmem::Finder;

use super::{FileState, JournalLine, JournalLink, JournalStamp, ListedFile, parse, scan, stamp};
use crate::durable::FileError;
use crate::vault::head::Head;
use crate::vault::live::FIRST_SUM;

/// The listed files of a session, sorted by name.
///
/// A vector, because most sessions have one file and a store may have many sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionFiles(Vec<(Box<str>, ListedFile)>);

impl SessionFiles {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ListedFile> {
        self.find(name).ok().map(|at| &self.0[at].1)
    }

    pub(crate) fn contains_key(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &ListedFile)> {
        self.0.iter().map(|(name, file)| (&**name, file))
    }

    fn insert(&mut self, name: &str, file: ListedFile) {
        match self.find(name) {
            Ok(at) => self.0[at].1 = file,
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (name.into(), file));
            }
        }
    }

    fn remove(&mut self, name: &str) {
        if let Ok(at) = self.find(name) {
            self.0.remove(at);
        }
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }
}

/// Number of single-session lookups before the whole journal is cached.
const MAX_LOOKUPS: usize = 4;

const START: Head = Head { length: 0, sum: FIRST_SUM };

/// The content of the journal.
#[derive(Clone, Debug)]
pub(crate) struct JournalState {
    pub(crate) sessions: HashMap<String, SessionFiles>,
    /// End of the last complete line.
    pub(crate) end: Head,
    /// Ends of the damaged lines.
    pub(crate) damaged: Vec<Head>,
    /// Bytes after the end, from an interrupted write.
    pub(crate) interrupted: u64,
    /// Whether an earlier journal was lost.
    pub(crate) is_restarted: bool,
}

impl Default for JournalState {
    fn default() -> Self {
        let (sessions, damaged) = (HashMap::new(), Vec::new());
        Self { sessions, end: START, damaged, interrupted: 0, is_restarted: false }
    }
}

impl JournalState {
    /// Reads the whole journal; `None` if it does not exist.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, FileError> {
        let mut state = Self::default();
        if stamp(path).is_none() {
            return Ok(None);
        }
        state.read_on(path, None)?;
        Ok(Some(state))
    }

    /// Reads the lines after the current end. With `only`, applies only lines of that session.
    fn read_on(&mut self, path: &Path, only: Option<&str>) -> Result<(), FileError> {
        let start = self.end;
        let named = only.map(|session| format!("\"session\":\"{session}\""));
        let finder = named.as_ref().map(|named| Finder::new(named.as_bytes()));
        let scan = scan(path, start, &mut |line, is_chained, end| {
            let is_wanted = finder.as_ref().is_none_or(|finder| finder.find(line).is_some());
            match is_wanted.then(|| parse(line)) {
                _ if !is_chained => self.damaged.push(end),
                Some(Some(line)) => self.take(line),
                Some(None) => self.damaged.push(end),
                None => {}
            }
        })?;
        (self.end, self.interrupted) = (scan.end, scan.interrupted);
        Ok(())
    }

    /// Reads the journal up to `head`; `None` if no line ends there with that hash.
    pub(crate) fn read_prefix(path: &Path, head: Head) -> Result<Option<Self>, FileError> {
        if stamp(path).is_none() {
            return Ok(None);
        }
        let (mut state, mut is_found) = (Self::default(), false);
        let mut is_whole = true;
        scan(path, START, &mut |line, is_chained, end| {
            if end.length > head.length {
                return;
            }
            is_whole &= is_chained;
            is_found |= is_whole && end == head;
            if let Some(line) = parse(line) {
                state.take(line);
            }
        })?;
        Ok(is_found.then_some(state))
    }

    /// Applies one line.
    pub(crate) fn take(&mut self, line: JournalLine) {
        let JournalLine { session, file, state, length, size, link } = line;
        match state {
            FileState::Restarted => self.is_restarted = true,
            FileState::Removed => {
                self.sessions.entry(session).or_default().remove(&file);
            }
            FileState::Kept | FileState::Open | FileState::Replaced => {
                let link = link.and_then(JournalLink::parse);
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
    is_whole: bool,
    lookups: usize,
}

impl JournalCache {
    pub(super) fn files_of(
        &mut self,
        path: &Path,
        session: &str,
    ) -> Result<Option<SessionFiles>, FileError> {
        if !self.catch_up(path)? {
            return Ok(None);
        }
        if !self.is_whole && !self.state.sessions.contains_key(session) {
            self.lookups += 1;
            self.is_whole = self.lookups > MAX_LOOKUPS;
            let only = (!self.is_whole).then_some(session);
            let mut state = JournalState::default();
            state.read_on(path, only)?;
            if let Some(session) = only {
                let files = state.sessions.remove(session).unwrap_or_default();
                self.state.sessions.insert(session.to_owned(), files);
                state.sessions = std::mem::take(&mut self.state.sessions);
            }
            self.state = state;
        }
        Ok(Some(self.state.sessions.get(session).cloned().unwrap_or_default()))
    }

    pub(super) fn each_session(
        &mut self,
        path: &Path,
        take: &mut dyn FnMut(&str, &SessionFiles),
    ) -> Result<(), FileError> {
        if self.catch_up(path)? && !self.is_whole {
            self.state = JournalState::default();
            self.state.read_on(path, None)?;
            self.is_whole = true;
        }
        self.state.sessions.iter().for_each(|(session, files)| take(session, files));
        Ok(())
    }

    pub(super) fn damaged_lines(&mut self, path: &Path) -> Result<u64, FileError> {
        self.catch_up(path)?;
        Ok(self.state.damaged.len() as u64)
    }

    /// Reads new lines. Returns whether the journal exists.
    fn catch_up(&mut self, path: &Path) -> Result<bool, FileError> {
        let now = stamp(path);
        if now == self.stamp {
            return Ok(now.is_some());
        }
        let is_grown = match (self.stamp, now) {
            (Some(then), Some(now)) => then.file == now.file && then.size <= now.size,
            _ => false,
        };
        let damaged = self.state.damaged.len();
        if is_grown && self.is_whole {
            self.state.read_on(path, None)?;
        }
        // A journal that does not continue the cached chain is a different one.
        if !is_grown || !self.is_whole || self.state.damaged.len() > damaged {
            (self.state, self.is_whole) = (JournalState::default(), false);
        }
        self.stamp = now;
        Ok(now.is_some())
    }
}
