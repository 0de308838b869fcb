//! Counts the contents of a session file, and keeps nothing.
//!
//! A prompt is a message that a person wrote; an answer is one API message of the model. Tool calls and results count
//! once per id, tokens once per message. Subagents in the same file are not counted, except for agents that bill both
//! together. If a file has only subagents, they get a row of their own.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::agent::copilot;
use crate::entry::{Entry, Kind, PRIMARY, Role, Usage};
use crate::format::{FormatError, Found, Item};
use crate::problem::{Problem, ProblemList};
use crate::sums::SumSet;
use crate::timestamp::Timestamp;
use crate::usage::{Ledger, Tally};
use steno_vault::{Source, Wanted};

/// The key of the row for subagents.
const SUBAGENTS: &str = "subagents";

/// Agents that report the tokens of a session together with those of subagents in the same file.
const TOGETHER: [&str; 1] = [copilot::AGENT];

/// The counts of one session file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Inspection {
    /// The session file, or the folder of a session.
    pub path: PathBuf,
    /// Which session, if the file holds several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The agent that wrote it.
    pub agent: String,
    /// The agent's own id for the session.
    pub session_id: Option<String>,
    /// The title in the file.
    pub title: Option<String>,
    /// Messages that a person wrote.
    pub user_prompts: u64,
    /// Messages that the model wrote.
    pub assistant_messages: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Tool results.
    pub tool_results: u64,
    /// Billed tokens.
    pub tokens: Usage,
    /// The part of `tokens` that [`Total::add`] has already counted in other files.
    pub tokens_repeated: Usage,
    /// The models that answered, sorted.
    pub models: Vec<String>,
    /// The first time in the file. All times are printed in the same format.
    #[serde(serialize_with = "serialize_time")]
    pub first_timestamp: Option<Timestamp>,
    /// The last time in the file.
    #[serde(serialize_with = "serialize_time")]
    pub last_timestamp: Option<Timestamp>,
    /// Compactions of the context.
    pub compactions: u64,
    /// Session files of subagents.
    pub subagent_files: u64,
    /// Records that could not be read.
    pub bad_lines: u64,
    /// The first of those, with their locations.
    #[serde(skip)]
    pub problems: Vec<Problem>,
    /// Tokens by message.
    #[serde(skip)]
    tally: Tally,
    /// The counts of subagents in the file.
    #[serde(skip)]
    subagents: Option<Box<Inspection>>,
}

impl Inspection {
    /// Whether nothing was counted.
    fn is_silent(&self) -> bool {
        let said =
            self.user_prompts + self.assistant_messages + self.tool_calls + self.tool_results;
        said == 0 && self.tokens.is_empty()
    }
}

/// Prints a time in UTC with milliseconds: `2026-01-19T11:42:00.000Z`.
fn serialize_time<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(|at| Timestamp::from_instant(at.instant(), 3)).serialize(serializer)
}

/// The total of several session files. A message copied from one file to another counts once.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Total {
    /// Always true, to mark the total.
    total: bool,
    /// Number of session files.
    pub sources: u64,
    /// Billed tokens.
    pub tokens: Usage,
    /// Tokens that are repeated in further files, and not in `tokens`.
    pub tokens_repeated: Usage,
    /// Records that could not be read.
    pub bad_lines: u64,
    #[serde(skip)]
    ledger: Ledger,
}

impl Total {
    /// Adds one session file, and sets its repeated tokens.
    pub fn add(&mut self, inspection: &mut Inspection) {
        let tally = std::mem::take(&mut inspection.tally);
        let repeated = self.ledger.repeated(&inspection.agent, tally);
        inspection.tokens_repeated = repeated;
        self.total = true;
        self.sources += 1;
        self.tokens.add(&inspection.tokens.minus(&repeated));
        self.tokens_repeated.add(&repeated);
        self.bad_lines += inspection.bad_lines;
    }
}

/// Counts one session, without its subagents' files.
pub fn inspect(found: &Found) -> Result<Inspection, FormatError> {
    let (main, parts) = split(found);
    count_main(found, &main, &parts).map(|inspection| settled(inspection, found))
}

/// An empty file has started no subagents, even if there are files that name it.
fn settled(mut inspection: Inspection, found: &Found) -> Inspection {
    if std::fs::metadata(&found.bundle.root).is_ok_and(|file| file.is_file() && file.len() == 0) {
        inspection.subagent_files = 0;
    }
    inspection
}

/// Counts one session, then each subagent's file as a session of its own.
pub fn inspect_all(found: &Found) -> Result<Vec<Inspection>, FormatError> {
    let (main, parts) = split(found);
    let mut first = count_main(found, &main, &parts)?;
    let alone = first.subagents.take().filter(|_| first.is_silent());
    let mut inspections = vec![first];
    inspections.extend(alone.map(|subagents| *subagents).filter(|it| !it.is_silent()));
    if inspections[0].subagent_files > 0 {
        for part in &parts {
            inspections.push(count(part)?);
        }
        if !parts.is_empty() && !found.bundle.root.exists() {
            // Only subagents exist.
            inspections.remove(0);
        }
    }
    let mut inspections = inspections.into_iter();
    let first = inspections.next().map(|first| settled(first, found));
    Ok(first.into_iter().chain(inspections).collect())
}

/// Counts a session without its parts, unless the parts are not subagents.
fn count_main(found: &Found, main: &Found, parts: &[Found]) -> Result<Inspection, FormatError> {
    match count(main) {
        Ok(inspection) if parts.is_empty() || inspection.subagent_files > 0 => Ok(inspection),
        _ => count(found),
    }
}

fn count(found: &Found) -> Result<Inspection, FormatError> {
    let together = TOGETHER.contains(&found.reader.agent);
    let mut counter = Counter { together, ..Counter::default() };
    let brief = found.bundle.clone().wanting(Wanted::Counts);
    let session = (found.reader.read)(&brief, &mut |item| counter.item(item))?;
    let mut inspection = counter.inspection;
    inspection.tokens = counter.tally.total();
    inspection.tally = counter.tally;
    inspection.bad_lines = counter.problems.bad_count();
    inspection.problems = counter.problems.into_problems();
    inspection.path.clone_from(&found.bundle.root);
    inspection.key.clone_from(&found.bundle.key);
    inspection.agent = session.agent;
    inspection.session_id = session.native_id;
    inspection.title = session.title;
    // Facts outside the entries: times of other records, and totals that no message has.
    inspection.first_timestamp = session.started.or(inspection.first_timestamp);
    inspection.last_timestamp = session.ended.or(inspection.last_timestamp);
    if !session.totals.usage.is_empty() {
        inspection.tokens = session.totals.usage;
    }
    counter.models.extend(session.models);
    inspection.models.extend(counter.models);
    inspection.subagent_files = session.subagent_files;
    inspection.subagents = counter.subagents.map(|subagents| {
        let mut row = subagents.inspection;
        row.tokens = subagents.tally.total();
        row.tally = subagents.tally;
        row.models.extend(subagents.models);
        row.key = Some(SUBAGENTS.to_owned());
        row.path.clone_from(&inspection.path);
        row.agent.clone_from(&inspection.agent);
        row.session_id.clone_from(&inspection.session_id);
        Box::new(row)
    });
    Ok(inspection)
}

/// Splits off the files that are sessions of their own, so that none is read twice.
///
/// The session keeps them as empty files, because it counts them.
fn split(found: &Found) -> (Found, Vec<Found>) {
    let mut main = found.clone();
    let mut parts = Vec::new();
    let root = &found.bundle.root;
    if root.is_dir() {
        return (main, parts);
    }
    for source in main.bundle.sources.iter_mut().filter(|source| source.path() != root) {
        let mut alone = found.reader.find_at(source.path()).unwrap_or_default();
        alone.retain(|bundle| bundle.root == source.path());
        if !alone.is_empty() {
            *source = Source::in_memory(source.name(), source.path(), Vec::new());
        }
        parts.extend(alone.into_iter().map(|bundle| Found { reader: found.reader, bundle }));
    }
    (main, parts)
}

#[derive(Default)]
struct Counter {
    inspection: Inspection,
    /// Whether subagents are counted too.
    together: bool,
    /// Ids seen so far, as hashes: a file of hundreds of megabytes may have millions.
    seen: SumSet,
    tally: Tally,
    models: BTreeSet<String>,
    problems: ProblemList,
    /// Counts subagents separately, unless they are counted too.
    subagents: Option<Box<Counter>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    Prompt,
    Answer,
    Call,
    Result,
}

impl Counter {
    fn item(&mut self, item: Item) {
        match item {
            Item::Entry(entry) if self.together || entry.source == PRIMARY => self.entry(&entry),
            Item::Entry(mut entry) => {
                PRIMARY.clone_into(&mut entry.source);
                self.subagents.get_or_insert_default().entry(&entry);
            }
            Item::Problem(problem) => self.problems.push(problem),
        }
    }

    /// Whether this is the first entry with this id. An entry without an id always is.
    fn is_first(&mut self, what: What, id: Option<&String>) -> bool {
        id.is_none_or(|id| self.seen.insert((what, id)))
    }

    fn entry(&mut self, entry: &Entry) {
        let (message, tool) = (entry.message_id.as_ref(), entry.tool_call_id.as_ref());
        match (&entry.role, entry.kind) {
            (Role::User, Kind::Text)
                if entry.source == PRIMARY && self.is_first(What::Prompt, message) =>
            {
                self.inspection.user_prompts += 1
            }
            (_, Kind::ToolResult) if self.is_first(What::Result, tool) => {
                self.inspection.tool_results += 1
            }
            (_, Kind::Compaction) => self.inspection.compactions += 1,
            _ => {}
        }
        if entry.kind == Kind::ToolCall && self.is_first(What::Call, tool) {
            self.inspection.tool_calls += 1;
        }
        // A thought or call without a message id, as in Codex, is not a message. A message that only calls a server's
        // tool is one.
        let part = matches!(entry.kind, Kind::Thinking | Kind::ToolCall | Kind::Other);
        let answers = entry.kind == Kind::Text || (part && entry.message_id.is_some());
        if entry.role == Role::Assistant && answers && self.is_first(What::Answer, message) {
            self.inspection.assistant_messages += 1;
        }
        self.tally.count(entry);
        if let Some(model) = entry.model.as_ref().filter(|model| !self.models.contains(*model)) {
            self.models.insert(model.clone());
        }
        let counted = &mut self.inspection;
        if let Some(at) = entry.created_at {
            if counted.first_timestamp.is_none_or(|first| at.instant() < first.instant()) {
                counted.first_timestamp = Some(at);
            }
            if counted.last_timestamp.is_none_or(|last| at.instant() > last.instant()) {
                counted.last_timestamp = Some(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_alike() {
        for text in [
            "2026-01-19T11:42:00Z",
            "2026-01-19T11:42:00.000000000Z",
            "2026-01-19T12:42:00+01:00",
            "2026-01-19 11:42:00",
        ] {
            let inspection =
                Inspection { first_timestamp: text.parse().ok(), ..Inspection::default() };
            let printed = serde_json::to_value(&inspection).unwrap();
            assert_eq!(printed["first_timestamp"], "2026-01-19T11:42:00.000Z", "{text}");
            assert!(printed["last_timestamp"].is_null());
        }
    }
}
