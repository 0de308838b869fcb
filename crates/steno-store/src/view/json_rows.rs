//! The objects that `--json` prints and the web API returns. Fields are only ever added.

pub mod cost;
pub mod diff;
pub mod exchange;

use serde::Serialize;

use crate::index::SearchHit;
use crate::index::match_lines::MatchLine;
use steno_model::entry::{Entry, EntryKind};
use steno_model::session::{Session, SessionStatus};
use steno_model::timestamp::Timestamp;
use steno_model::usage::Usage;
use steno_vault::SessionDir;
use steno_vault::notes::Note;

/// A session in a list.
#[derive(Debug, Serialize)]
pub struct SessionRow<'a> {
    id: &'a str,
    native_id: Option<&'a str>,
    agent: &'a str,
    project: Option<&'a str>,
    title: Option<&'a str>,
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
    status: SessionStatus,
    entries: u64,
    tokens: Usage,
    thread: Option<&'a str>,
    parent: Option<&'a str>,
    /// The owner, in the record of a team.
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<&'a str>,
}

impl<'a> SessionRow<'a> {
    /// The row of a session.
    pub fn from_session(session: &'a Session) -> Self {
        Self {
            id: session.id.as_str(),
            native_id: session.native_id.as_deref(),
            agent: &session.agent,
            project: session.project.as_deref(),
            title: session.title.as_deref(),
            started: session.started,
            ended: session.ended,
            status: session.status,
            entries: session.totals.entries,
            tokens: session.totals.usage,
            thread: session.thread.as_deref(),
            parent: session.parent.as_deref(),
            person: None,
        }
    }

    /// The row of a session with this owner.
    pub fn of_person(self, person: Option<&'a str>) -> Self {
        Self { person, ..self }
    }
}

/// An entry with its notes, if any.
#[derive(Debug, Serialize)]
pub struct EntryRow<'a> {
    #[serde(flatten)]
    entry: &'a Entry,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<&'a Note>,
}

impl<'a> EntryRow<'a> {
    /// The row of an entry.
    pub fn from_entry(entry: &'a Entry, notes: &'a [Note]) -> Self {
        Self { entry, notes: Note::for_entry(notes, entry).collect() }
    }
}

/// A note and its session.
#[derive(Debug, Serialize)]
pub struct NoteRow<'a> {
    session: &'a str,
    agent: &'a str,
    #[serde(flatten)]
    note: &'a Note,
    tags: Vec<&'a str>,
}

impl<'a> NoteRow<'a> {
    /// The row of a note.
    pub fn from_note(session: &'a SessionDir, note: &'a Note) -> Self {
        let (id, agent) = (session.id().as_str(), session.agent());
        Self { session: id, agent, note, tags: note.tags().collect() }
    }
}

/// A search hit.
#[derive(Debug, Serialize)]
pub struct HitRow<'a> {
    hit: String,
    session: &'a str,
    agent: &'a str,
    project: Option<&'a str>,
    title: Option<&'a str>,
    entry: u64,
    time: Option<Timestamp>,
    role: &'a str,
    kind: EntryKind,
    tool: Option<&'a str>,
    model: Option<&'a str>,
    source: &'a str,
    copies: u64,
    lines: Vec<HitLineRow<'a>>,
    /// The owner, in the record of a team.
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct HitLineRow<'a> {
    line: usize,
    text: &'a str,
    marks: Vec<[usize; 2]>,
}

impl<'a> HitRow<'a> {
    /// The row of a hit, with its matching lines.
    pub fn from_hit(hit: &'a SearchHit, lines: &'a [MatchLine]) -> Self {
        let line = |line: &'a MatchLine| HitLineRow {
            line: line.number,
            text: &line.text,
            marks: line.marks.iter().map(|mark| [mark.start, mark.end]).collect(),
        };
        Self {
            hit: format!("{}:{}", hit.session, hit.number),
            session: hit.session.as_str(),
            agent: &hit.agent,
            project: hit.project.as_deref(),
            title: hit.title.as_deref(),
            entry: hit.number,
            time: hit.time,
            role: &hit.role,
            kind: hit.kind,
            tool: hit.tool.as_deref(),
            model: hit.model.as_deref(),
            source: &hit.source,
            copies: hit.copies,
            lines: lines.iter().map(line).collect(),
            person: None,
        }
    }

    /// The row of a hit in a session with this owner.
    pub fn of_person(self, person: Option<&'a str>) -> Self {
        Self { person, ..self }
    }
}
