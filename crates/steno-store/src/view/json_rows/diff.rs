//! The comparison of two sessions as JSON objects.

use serde::Serialize;

use crate::compare::EntryChange;
use crate::compare::facts::{self, SessionFact};
use crate::compare::text_diff::{AlignedLines, pair_lines};
use crate::index::entry_text;
use steno_model::entry::Entry;
use steno_model::json::Value;
use steno_model::session::Transcript;

#[derive(Serialize)]
struct FactDiffRow<'a> {
    fact: &'a str,
    a: &'a str,
    b: &'a str,
}

#[derive(Serialize)]
struct EntryDiffRow<'a> {
    entry: &'static str,
    a: Option<usize>,
    b: Option<usize>,
    heading: String,
    lines: Vec<LineDiffRow<'a>>,
}

#[derive(Serialize)]
struct LineDiffRow<'a> {
    a: Option<&'a str>,
    b: Option<&'a str>,
}

/// The facts of both sessions, then each entry with its changed lines.
pub fn diff_objects(a: &Transcript, b: &Transcript, steps: &[EntryChange]) -> Vec<Value> {
    let facts = facts::compare_facts(&a.session, &b.session, &|at| at.to_string());
    let fact = |SessionFact { name, a, b }: &SessionFact| {
        serde_json::json!(FactDiffRow { fact: name, a, b })
    };
    let entries = steps.iter().map(|step| {
        let pair = EntryPair::from_change(step, &a.entries, &b.entries);
        let texts = pair.texts();
        let lines = pair_lines(&texts[0], &texts[1]).into_iter().filter(|row| !row.is_same());
        serde_json::json!(EntryDiffRow {
            entry: pair.change,
            a: pair.a.map(|(at, _)| at),
            b: pair.b.map(|(at, _)| at),
            heading: pair.heading(),
            lines: lines.map(|AlignedLines { a, b }| LineDiffRow { a, b }).collect(),
        })
    });
    facts.iter().map(fact).chain(entries).collect()
}

/// A pair of matching entries with their numbers, or one entry without a match.
#[derive(Clone, Copy, Debug)]
pub struct EntryPair<'a> {
    /// `same`, `changed`, `removed` or `added`.
    pub change: &'static str,
    /// The first session's entry.
    pub a: Option<(usize, &'a Entry)>,
    /// The second session's entry.
    pub b: Option<(usize, &'a Entry)>,
}

impl<'a> EntryPair<'a> {
    /// The entries of a change.
    pub fn from_change(step: &EntryChange, in_a: &'a [Entry], in_b: &'a [Entry]) -> Self {
        let (change, a, b) = match *step {
            EntryChange::Same(a, b) => ("same", Some(a), Some(b)),
            EntryChange::Changed(a, b) => ("changed", Some(a), Some(b)),
            EntryChange::Removed(a) => ("removed", Some(a), None),
            EntryChange::Added(b) => ("added", None, Some(b)),
        };
        let numbered = |entries: &'a [Entry], at: usize| (at, &entries[at]);
        Self { change, a: a.map(|at| numbered(in_a, at)), b: b.map(|at| numbered(in_b, at)) }
    }

    /// The texts of both entries. If they are equal but the arguments are not, the arguments as JSON.
    pub fn texts(&self) -> [String; 2] {
        let say = |side: Option<(usize, &Entry)>, say: fn(&Entry) -> String| {
            side.map(|(_, entry)| say(entry)).unwrap_or_default()
        };
        let texts =
            [say(self.a, entry_text::searchable_text), say(self.b, entry_text::searchable_text)];
        if self.change == "changed" && texts[0] == texts[1] {
            return [say(self.a, input_text), say(self.b, input_text)];
        }
        texts
    }

    /// The role and kind as a short heading.
    pub fn heading(&self) -> String {
        self.a.or(self.b).map(|(_, entry)| entry.heading()).unwrap_or_default()
    }
}

fn input_text(entry: &Entry) -> String {
    entry.tool_input.as_ref().map(ToString::to_string).unwrap_or_default()
}
