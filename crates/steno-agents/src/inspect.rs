//! Counts the contents of a session file, and keeps nothing.
//!
//! A prompt is a message that a person wrote; an answer is one API message of the model. Tool calls and results count
//! once per id, tokens once per message. Subagents in the same file are not counted, except for agents that bill both
//! together; they get a row of their own, so that rows add up to all tokens of the file.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::reader::{FormatError, FoundSession, ReaderItem};
use crate::registry;
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role, Usage};
use steno_model::name_hash::CompactNameSet;
use steno_model::problem::{Problem, ProblemList};
use steno_model::timestamp::Timestamp;
use steno_model::usage_tally::{UsageLedger, UsageTally};
use steno_vault::{ReadDetail, SessionFile};

/// The key of the row for subagents.
const SUBAGENTS_KEY: &str = "subagents";

/// The counts of one session file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SessionInspection {
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
    /// The part of `tokens` that [`InspectionTotal::add_inspection`] has already counted in other files.
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
    tally: UsageTally,
    /// Whether `tokens` is a total that the session states.
    #[serde(skip)]
    states_total: bool,
    /// The counts of subagents in the file.
    #[serde(skip)]
    subagents: Option<Box<SessionInspection>>,
}

impl SessionInspection {
    /// Whether these are the counts of subagents in a session's own file.
    pub fn is_of_subagents(&self) -> bool {
        self.key.as_deref() == Some(SUBAGENTS_KEY)
    }

    /// Whether nothing was counted.
    fn has_no_messages(&self) -> bool {
        let messages =
            self.user_prompts + self.assistant_messages + self.tool_calls + self.tool_results;
        messages == 0 && self.tokens.is_empty()
    }
}

/// Prints a time in UTC with milliseconds: `2026-01-19T11:42:00.000Z`.
fn serialize_time<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(|at| Timestamp::from_instant(at.instant(), 3)).serialize(serializer)
}

/// The total of several session files. A message copied from one file to another counts once.
#[derive(Clone, Debug, Default, Serialize)]
pub struct InspectionTotal {
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
    ledger: UsageLedger,
}

impl InspectionTotal {
    /// Adds one session file, and sets its repeated tokens.
    pub fn add_inspection(&mut self, inspection: &mut SessionInspection) {
        let tally = std::mem::take(&mut inspection.tally);
        let repeated = self.ledger.add_tally(&inspection.agent, tally);
        inspection.tokens_repeated = repeated;
        self.total = true;
        self.sources += 1;
        self.tokens.add(&inspection.tokens.subtract(&repeated));
        self.tokens_repeated.add(&repeated);
        self.bad_lines += inspection.bad_lines;
    }
}

/// Counts one session, without its subagents' files.
pub fn inspect_session(found: &FoundSession) -> Result<SessionInspection, FormatError> {
    let (main, parts) = split_subagents(found);
    count_main(found, &main, &parts)
        .map(|inspection| clear_subagents_of_empty_file(inspection, found))
}

/// An empty file has started no subagents, even if there are files that name it.
fn clear_subagents_of_empty_file(
    mut inspection: SessionInspection,
    found: &FoundSession,
) -> SessionInspection {
    if std::fs::metadata(&found.bundle.root).is_ok_and(|file| file.is_file() && file.len() == 0) {
        inspection.subagent_files = 0;
    }
    inspection
}

/// Counts one session, then its subagents in the same file, then each subagent's file as a session of its own.
pub fn inspect_with_subagents(found: &FoundSession) -> Result<Vec<SessionInspection>, FormatError> {
    let (main, parts) = split_subagents(found);
    let mut first = count_main(found, &main, &parts)?;
    let subagents = first.subagents.take().filter(|row| !row.has_no_messages());
    if let Some(subagents) = subagents.as_ref().filter(|_| first.states_total) {
        // The stated total includes them.
        first.tokens = first.tokens.subtract(&subagents.tokens);
    }
    let mut inspections = vec![first];
    inspections.extend(subagents.map(|subagents| *subagents));
    if inspections[0].subagent_files > 0 {
        for part in &parts {
            inspections.push(count_session(part)?);
        }
        if !parts.is_empty() && !found.bundle.root.exists() {
            // Only subagents exist.
            inspections.remove(0);
        }
    }
    let mut inspections = inspections.into_iter();
    let first = inspections.next().map(|first| clear_subagents_of_empty_file(first, found));
    Ok(first.into_iter().chain(inspections).collect())
}

/// Counts a session without its parts, unless the parts are not subagents.
fn count_main(
    found: &FoundSession,
    main: &FoundSession,
    parts: &[FoundSession],
) -> Result<SessionInspection, FormatError> {
    match count_session(main) {
        Ok(inspection) if parts.is_empty() || inspection.subagent_files > 0 => Ok(inspection),
        _ => count_session(found),
    }
}

fn count_session(found: &FoundSession) -> Result<SessionInspection, FormatError> {
    let agent = registry::agent_named(found.reader.agent);
    let together = agent.is_some_and(|agent| agent.bills_subagents_together);
    let mut counter =
        InspectionCounter { counts_subagents: together, ..InspectionCounter::default() };
    let brief = found.bundle.clone().with_detail(ReadDetail::ShortTexts);
    let session = (found.reader.read)(&brief, &mut |item| counter.count_item(item))?;
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
        inspection.states_total = true;
    }
    counter.models.extend(session.models);
    inspection.models.extend(counter.models);
    inspection.subagent_files = session.subagent_files;
    inspection.subagents = counter.subagents.map(|subagents| {
        let mut row = subagents.inspection;
        row.tokens = subagents.tally.total();
        row.tally = subagents.tally;
        row.models.extend(subagents.models);
        row.key = Some(SUBAGENTS_KEY.to_owned());
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
fn split_subagents(found: &FoundSession) -> (FoundSession, Vec<FoundSession>) {
    let mut main = found.clone();
    let mut parts = Vec::new();
    let root = &found.bundle.root;
    if root.is_dir() {
        return (main, parts);
    }
    for source in main.bundle.files.iter_mut().filter(|source| source.path() != root) {
        let mut alone = found.reader.find_at(source.path()).unwrap_or_default();
        alone.retain(|bundle| bundle.root == source.path());
        if !alone.is_empty() {
            *source = SessionFile::in_memory(source.name(), source.path(), Vec::new());
        }
        parts.extend(alone.into_iter().map(|bundle| FoundSession { reader: found.reader, bundle }));
    }
    (main, parts)
}

#[derive(Default)]
struct InspectionCounter {
    inspection: SessionInspection,
    /// Whether subagents are counted too.
    counts_subagents: bool,
    /// Ids seen so far, as hashes: a file of hundreds of megabytes may have millions.
    seen_ids: CompactNameSet,
    tally: UsageTally,
    models: BTreeSet<String>,
    problems: ProblemList,
    /// Counts subagents separately, unless they are counted too.
    subagents: Option<Box<InspectionCounter>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum CountedItem {
    Prompt,
    Answer,
    Call,
    Result,
}

impl InspectionCounter {
    fn count_item(&mut self, item: ReaderItem) {
        match item {
            ReaderItem::Entry(entry) if self.counts_subagents || entry.source == PRIMARY_SOURCE => {
                self.count_entry(&entry)
            }
            ReaderItem::Entry(mut entry) => {
                PRIMARY_SOURCE.clone_into(&mut entry.source);
                self.subagents.get_or_insert_default().count_entry(&entry);
            }
            ReaderItem::Problem(problem) => self.problems.push(problem),
        }
    }

    /// Whether this is the first entry with this id. An entry without an id always is.
    fn is_first_of_id(&mut self, what: CountedItem, id: Option<&String>) -> bool {
        id.is_none_or(|id| self.seen_ids.insert((what, id)))
    }

    fn count_entry(&mut self, entry: &Entry) {
        let (message, tool) = (entry.message_id.as_ref(), entry.tool_call_id.as_ref());
        match (&entry.role, entry.kind) {
            (Role::User, EntryKind::Text)
                if entry.source == PRIMARY_SOURCE
                    && self.is_first_of_id(CountedItem::Prompt, message) =>
            {
                self.inspection.user_prompts += 1
            }
            (_, EntryKind::ToolResult) if self.is_first_of_id(CountedItem::Result, tool) => {
                self.inspection.tool_results += 1
            }
            (_, EntryKind::Compaction) => self.inspection.compactions += 1,
            _ => {}
        }
        if entry.kind == EntryKind::ToolCall && self.is_first_of_id(CountedItem::Call, tool) {
            self.inspection.tool_calls += 1;
        }
        // A thought or call without a message id, as in Codex, is not a message. A message that only calls a server's
        // tool is one.
        let part =
            matches!(entry.kind, EntryKind::Thinking | EntryKind::ToolCall | EntryKind::Other);
        let answers = entry.kind == EntryKind::Text || (part && entry.message_id.is_some());
        if entry.role == Role::Assistant
            && answers
            && self.is_first_of_id(CountedItem::Answer, message)
        {
            self.inspection.assistant_messages += 1;
        }
        self.tally.count_entry(entry);
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
            let inspection = SessionInspection {
                first_timestamp: text.parse().ok(),
                ..SessionInspection::default()
            };
            let printed = serde_json::to_value(&inspection).unwrap();
            assert_eq!(printed["first_timestamp"], "2026-01-19T11:42:00.000Z", "{text}");
            assert!(printed["last_timestamp"].is_null());
        }
    }
}
