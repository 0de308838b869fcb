//! Numbers the entries of one session and emits them at once. Readers emit entries in this way, with four exceptions:
//! Claude Code and Codex hold a numbered entry back until its usage or its place is known, Copilot names its session by
//! what it has read so far, and weakincentives keeps the numbers that its files state but derives ids from positions.
//!
//! - [`EntryEmitter`] is for a session with a known id. `SessionEmitter` adds the session and the source to it, and
//!   `AgentMessage` collects entries that share fields of their message.
//! - `emit_next_entry` is for readers that learn the id with the first record, or that read several sessions from
//!   one file.
//! - `emit_transcript` is for documents with totals that depend on all entries (devflow's runs).

use crate::decoding::tool_names::CalledToolNames;
use crate::reader::{ItemSink, ReaderItem};
use steno_model::entry::Entry;
use steno_model::numbering::EntryNumbering;
use steno_model::problem::Problem;

/// Numbers the entries of one session and emits them.
pub struct EntryEmitter<'a> {
    numbering: EntryNumbering,
    emit: ItemSink<'a>,
    /// Names the tools of results, if their format does not.
    tool_names: Option<CalledToolNames>,
}

impl<'a> EntryEmitter<'a> {
    /// An emitter for one session of one agent.
    pub fn new(agent: &str, session: &str, emit: ItemSink<'a>) -> Self {
        Self { numbering: EntryNumbering::new(agent, session), emit, tool_names: None }
    }

    /// Gives results without a tool name that of their call.
    #[must_use]
    pub(crate) fn naming_results(self) -> Self {
        Self { tool_names: Some(CalledToolNames::default()), ..self }
    }

    /// Emits one entry with the next number of its source.
    pub fn emit_entry(&mut self, mut entry: Entry) {
        if let Some(names) = &mut self.tool_names {
            names.name_tool(&mut entry);
        }
        emit_next_entry(entry, &mut self.numbering, self.emit);
    }

    /// Emits one entry that has a number. Only an id is assigned, if it has none.
    pub fn emit_numbered_entry(&mut self, mut entry: Entry) {
        self.numbering.assign_id(&mut entry);
        (self.emit)(ReaderItem::Entry(Box::new(entry)));
    }

    /// Emits the problem of a record that could not be read.
    pub fn emit_problem(&mut self, problem: Problem) {
        (self.emit)(ReaderItem::Problem(problem));
    }
}

/// Emits one entry with the next number of its source in `numbering`.
pub(crate) fn emit_next_entry(
    mut entry: Entry,
    numbering: &mut EntryNumbering,
    emit: ItemSink<'_>,
) {
    numbering.assign_number(&mut entry);
    emit(ReaderItem::Entry(Box::new(entry)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_model::entry::{EntryKind, Role};

    #[test]
    fn entries_are_numbered_unless_they_state_a_number() {
        let mut emitted = Vec::new();
        let mut sink = |item| match item {
            ReaderItem::Entry(entry) => emitted.push((entry.sequence, entry.entry_id)),
            ReaderItem::Problem(problem) => panic!("{problem}"),
        };
        let entry = Entry::new(Role::User, EntryKind::Text, "x");
        let mut output = EntryEmitter::new("agent", "session", &mut sink);
        output.emit_entry(entry.clone());
        output.emit_numbered_entry(Entry { sequence: 7, ..entry.clone() });
        output.emit_entry(entry.clone());
        emit_next_entry(entry, &mut EntryNumbering::new("agent", "session"), &mut sink);
        let numbers: Vec<_> = emitted.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [0, 7, 1, 0]);
        assert_eq!(emitted[0].1, emitted[3].1, "both ways give the same id");
        assert!(emitted.iter().all(|(_, id)| !id.is_nil()));
    }
}
