//! Reads recorded edits: from the index where its text is clear, otherwise from the record. Remembers what was read,
//! for the next line.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::indexed_input::{IndexedInput, recover_input};
use super::path_edits::{PathEdit, find_path_edits};
use super::recorded_edit::RecordedEdit;
use super::repository_scope::RepositoryScope;
use crate::index::{EntryFacts, Index, IndexError, PhraseHit, SessionOfHit};
use crate::transcript::ReadTranscript;
use crate::view::file_changes::failed_call_ids;
use steno_model::entry::EntryKind;
use steno_vault::Vault;

/// How many entries with a line are looked at. Where there are more, nothing can be said about all of them.
pub(super) const MAX_LINE_HITS: usize = 600;

/// How many entries with the name of a file are looked at.
pub(super) const MAX_NAME_HITS: usize = 100_000;

/// How many entries before a call are searched for calls at the same time.
const CALLS_BEFORE: u64 = 20;

/// How many entries from there on are searched for results.
const RESULT_WINDOW: usize = 80;

/// How many of the newest calls that name a file are looked at for a line.
const MAX_RECENT_CALLS: usize = 200;

/// Recorded edits of the sessions of one repository.
pub(super) struct EditArchive<'a> {
    index: &'a Index,
    vault: &'a Vault,
    pub(super) scope: &'a RepositoryScope,
    phrases: HashMap<(String, usize), Rc<Vec<PhraseHit>>>,
    sessions: HashMap<i64, Option<Rc<ScopedSession>>>,
    texts: HashMap<i64, Rc<str>>,
    edits: HashMap<(i64, u64), Rc<Vec<RecordedEdit>>>,
    records: HashMap<i64, Rc<RecordedCalls>>,
    recent_edits: HashMap<String, Rc<Vec<PathEdit>>>,
    failures: HashMap<(i64, u64), bool>,
}

/// A session, and whether it belongs to the repository.
#[derive(Debug)]
pub(super) struct ScopedSession {
    pub(super) facts: SessionOfHit,
    pub(super) is_in_repository: bool,
}

/// The edits of a session's calls, from its record.
#[derive(Debug, Default)]
struct RecordedCalls {
    edits: HashMap<u64, Rc<Vec<RecordedEdit>>>,
    failed: HashSet<u64>,
}

impl<'a> EditArchive<'a> {
    pub(super) fn new(index: &'a Index, vault: &'a Vault, scope: &'a RepositoryScope) -> Self {
        Self {
            index,
            vault,
            scope,
            phrases: HashMap::new(),
            sessions: HashMap::new(),
            texts: HashMap::new(),
            edits: HashMap::new(),
            records: HashMap::new(),
            recent_edits: HashMap::new(),
            failures: HashMap::new(),
        }
    }

    pub(super) fn index(&self) -> &'a Index {
        self.index
    }

    /// The entries of all sessions that contain the words of a line, at most [`MAX_LINE_HITS`].
    pub(super) fn find_line(&mut self, phrase: &str) -> Result<Rc<Vec<PhraseHit>>, IndexError> {
        self.find_phrase(phrase, MAX_LINE_HITS)
    }

    /// The entries of all sessions that name a file, at most [`MAX_NAME_HITS`].
    pub(super) fn find_name(&mut self, path: &str) -> Result<Rc<Vec<PhraseHit>>, IndexError> {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.find_phrase(name, MAX_NAME_HITS)
    }

    fn find_phrase(
        &mut self,
        phrase: &str,
        limit: usize,
    ) -> Result<Rc<Vec<PhraseHit>>, IndexError> {
        let key = (phrase.to_owned(), limit);
        if let Some(known) = self.phrases.get(&key) {
            return Ok(Rc::clone(known));
        }
        let hits = Rc::new(self.index.find_phrase(phrase, limit)?);
        self.phrases.insert(key, Rc::clone(&hits));
        Ok(hits)
    }

    /// The newest edits of a file by the repository's own sessions, oldest first.
    pub(super) fn recent_edits(&mut self, path: &str) -> Result<Rc<Vec<PathEdit>>, IndexError> {
        if let Some(known) = self.recent_edits.get(path) {
            return Ok(Rc::clone(known));
        }
        let edits = Rc::new(find_path_edits(self, path, Some(MAX_RECENT_CALLS))?);
        self.recent_edits.insert(path.to_owned(), Rc::clone(&edits));
        Ok(edits)
    }

    pub(super) fn session(&mut self, row: i64) -> Result<Option<Rc<ScopedSession>>, IndexError> {
        if let Some(known) = self.sessions.get(&row) {
            return Ok(known.clone());
        }
        let found = self.index.session_at_row(row)?.map(|facts| {
            let project = facts.project.as_deref();
            let is_in_repository =
                project.is_some_and(|project| self.scope.contains_project(project));
            Rc::new(ScopedSession { facts, is_in_repository })
        });
        self.sessions.insert(row, found.clone());
        Ok(found)
    }

    /// The text of an entry.
    pub(super) fn text(&mut self, row: i64) -> Result<Rc<str>, IndexError> {
        if let Some(known) = self.texts.get(&row) {
            return Ok(Rc::clone(known));
        }
        let text: Rc<str> = self.index.text_at_row(row)?.unwrap_or_default().into();
        self.texts.insert(row, Rc::clone(&text));
        Ok(text)
    }

    /// The edits of a call. Empty for calls that edit nothing, and for sessions that have nothing to do with the
    /// repository.
    pub(super) fn edits_of(
        &mut self,
        hit: &PhraseHit,
    ) -> Result<Rc<Vec<RecordedEdit>>, IndexError> {
        let key = (hit.session_row, hit.number);
        if let Some(known) = self.edits.get(&key) {
            return Ok(Rc::clone(known));
        }
        let edits = self.read_edits(hit)?;
        self.edits.insert(key, Rc::clone(&edits));
        Ok(edits)
    }

    fn read_edits(&mut self, hit: &PhraseHit) -> Result<Rc<Vec<RecordedEdit>>, IndexError> {
        let none = Rc::new(Vec::new());
        let Some(session) = self.session(hit.session_row)? else { return Ok(none) };
        let text = self.text(hit.text_row)?;
        if hit.kind != EntryKind::ToolCall
            || !(session.is_in_repository || self.scope.is_named_in(&text))
        {
            return Ok(none);
        }
        match recover_input(&text) {
            IndexedInput::Known(input) => {
                let facts = self.index.entries_from(hit.session_row, hit.number, 1)?;
                let tool = facts.first().and_then(|facts| facts.tool.as_deref());
                Ok(Rc::new(RecordedEdit::from_call(tool, &input)))
            }
            IndexedInput::Ambiguous => {
                let record = self.read_record(hit.session_row)?;
                Ok(record.edits.get(&hit.number).cloned().unwrap_or(none))
            }
        }
    }

    /// Whether a call failed. The index shows the results that follow. The record is read only if some of several
    /// calls of a tool at once failed and others did not.
    pub(super) fn is_failed_call(
        &mut self,
        session_row: i64,
        number: u64,
    ) -> Result<bool, IndexError> {
        if let Some(known) = self.failures.get(&(session_row, number)) {
            return Ok(*known);
        }
        let group = CallGroup::around(&self.entries_around(session_row, number)?, number);
        let is_failed = match group.is_failed() {
            Some(is_failed) => is_failed,
            None => self.read_record(session_row)?.failed.contains(&number),
        };
        self.failures.insert((session_row, number), is_failed);
        Ok(is_failed)
    }

    /// The entries of the same speaker before and after a call.
    fn entries_around(&self, session_row: i64, number: u64) -> Result<Vec<EntryFacts>, IndexError> {
        let first = number.saturating_sub(CALLS_BEFORE);
        let mut entries = self.index.entries_from(session_row, first, RESULT_WINDOW)?;
        let call = entries.iter().find(|entry| entry.number == number);
        let source = call.map(|call| call.source.clone()).unwrap_or_default();
        entries.retain(|entry| entry.source == source);
        Ok(entries)
    }

    fn read_record(&mut self, row: i64) -> Result<Rc<RecordedCalls>, IndexError> {
        if let Some(known) = self.records.get(&row) {
            return Ok(Rc::clone(known));
        }
        let mut calls = RecordedCalls::default();
        if let Some(session) = self.session(row)?
            && let Ok(agent) = session.facts.agent.parse()
        {
            let transcript = self.vault.session_dir(&agent, &session.facts.id).read_transcript()?;
            let failed = failed_call_ids(&transcript.entries);
            for (number, entry) in transcript.entries.iter().enumerate() {
                let Some(input) = &entry.tool_input else { continue };
                if entry.tool_call_id.as_deref().is_some_and(|id| failed.contains(id)) {
                    calls.failed.insert(number as u64);
                }
                let edits = RecordedEdit::from_call(entry.tool_name.as_deref(), input);
                if !edits.is_empty() {
                    calls.edits.insert(number as u64, Rc::new(edits));
                }
            }
        }
        let calls = Rc::new(calls);
        self.records.insert(row, Rc::clone(&calls));
        Ok(calls)
    }
}

/// Calls at the same time, and their results.
#[derive(Debug, Default)]
struct CallGroup {
    /// How many calls there are of the tool in question, and how many of their results are errors.
    calls: usize,
    results: usize,
    failures: usize,
}

impl CallGroup {
    /// The calls at the same time as the call with this number.
    fn around(entries: &[EntryFacts], number: u64) -> Self {
        let tool = entries.iter().find(|entry| entry.number == number);
        let tool = tool.and_then(|call| call.tool.as_deref());
        // A result without a name may be of any tool.
        let is_of_tool = |entry: &EntryFacts| entry.tool.is_none() || entry.tool.as_deref() == tool;
        let (mut group, mut open_calls, mut has_results) = (Self::default(), 0, false);
        for entry in entries {
            let counts = usize::from(is_of_tool(entry));
            match entry.kind {
                EntryKind::ToolResult if entry.number < number => {
                    (group, open_calls) = (Self::default(), 0);
                }
                EntryKind::ToolCall if entry.number > number && has_results => break,
                EntryKind::ToolCall => {
                    open_calls += 1;
                    group.calls += counts;
                }
                EntryKind::ToolResult => {
                    (open_calls, has_results) = (open_calls - 1, true);
                    group.results += counts;
                    group.failures += counts * usize::from(entry.is_failure);
                }
                _ => {}
            }
            if has_results && open_calls <= 0 {
                break;
            }
        }
        group
    }

    /// Whether the call failed; `None` if other calls of the tool had another result.
    fn is_failed(&self) -> Option<bool> {
        match self.failures {
            0 => Some(false),
            failures if failures >= self.calls.max(self.results) => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(entries: &[(EntryKind, &str, bool)], number: u64) -> Option<bool> {
        let to_facts = |(number, (kind, tool, is_failure)): (usize, &(EntryKind, &str, bool))| {
            let number = number as u64;
            let tool = Some((*tool).to_owned());
            let (role, source) = ("assistant".to_owned(), "primary".to_owned());
            let (kind, is_failure) = (*kind, *is_failure);
            EntryFacts { number, role, kind, tool, model: None, source, is_failure, text_row: None }
        };
        let entries: Vec<_> = entries.iter().enumerate().map(to_facts).collect();
        CallGroup::around(&entries, number).is_failed()
    }

    #[test]
    fn a_result_belongs_to_the_only_call() {
        use EntryKind::{ToolCall, ToolResult};
        let one = [
            (ToolCall, "Read", false),
            (ToolResult, "Read", true),
            (ToolCall, "Edit", false),
            (ToolResult, "Edit", false),
        ];
        assert_eq!((group(&one, 0), group(&one, 2)), (Some(true), Some(false)));
        let two = [
            (ToolCall, "Edit", false),
            (ToolCall, "Bash", false),
            (ToolResult, "Bash", true),
            (ToolResult, "Edit", false),
        ];
        assert_eq!((group(&two, 0), group(&two, 1)), (Some(false), Some(true)));
        let same = [
            (ToolCall, "Edit", false),
            (ToolCall, "Edit", false),
            (ToolResult, "Edit", true),
            (ToolResult, "Edit", false),
        ];
        assert_eq!((group(&same, 0), group(&same, 1)), (None, None));
    }
}
