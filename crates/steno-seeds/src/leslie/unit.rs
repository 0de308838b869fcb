//! Converts entries to conversation units and back.
//!
//! A unit is a user message and everything up to the next one; entries before the first user message belong to the
//! first unit. The format has no field for thoughts, notices, compactions and texts of other roles, so they are
//! omitted.

use serde_json::json;

use super::file::{MAX_TOOL_CHARS, UnitFile, UnitHeader, UnitItem, truncate_chars};
use super::slug::unit_file_stem;
use steno_agents::protocols::acp;
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role};
use steno_model::json::{JsonStyle, Value};
use steno_model::prompt::without_thread_blocks;
use steno_model::session::{Session, Transcript};
use steno_model::timestamp::Timestamp;

/// Extra field of each entry that was read from a file: the file's name.
const FILE_NAME_KEY: &str = "leslie_file";
/// Extra field of the first entry of a file: its header.
const HEADER_KEY: &str = "leslie_header";
/// Extra field of a session: the agent mode from the headers.
pub const AGENT_MODE_KEY: &str = "agent_mode";
/// Extra field of a session: the command that started the agent.
const LAUNCH_KEY: &str = "launch";
const UNNAMED_TOOL: &str = "unknown";
/// The stop reason of a turn that the agent did not finish.
pub(super) const ERROR_STOP_REASON: &str = "error";

/// One unit as a file, and the file's name.
#[derive(Debug)]
pub(super) struct NamedUnitFile {
    pub(super) file: UnitFile,
    /// The name without `.txt`, and without the number that is appended to duplicates.
    pub(super) stem: String,
    /// The file's name when it was read.
    pub(super) name: Option<String>,
}

/// Whether `steno run` created the session. Its prompts start with a description of the thread.
pub(super) fn is_thread_run(session: &Session) -> bool {
    let is_named = |name| session.extra.contains_key(name);
    session.thread.is_some() && (is_named(acp::AGENT_NAME) || is_named(LAUNCH_KEY))
}

/// Splits a transcript into units. `now` is used if no time is known.
pub(super) fn units_from_transcript(
    transcript: &Transcript,
    now: Option<Timestamp>,
) -> Vec<NamedUnitFile> {
    let groups = split_into_groups(&transcript.entries);
    let mut units = Vec::new();
    let mut before = transcript.session.started.or(now);
    for (index, group) in groups.iter().enumerate() {
        let last = index + 1 == groups.len();
        let mut range =
            UnitTimeRange::from_group(group, before, transcript.session.ended.filter(|_| last));
        if is_thread_run(&transcript.session) {
            range.start = find_prompt(group).and_then(|prompt| prompt.created_at).or(range.start);
        }
        before = range.end.or(before);
        let unit = build_unit(&transcript.session, group, range, last);
        if !unit.file.items.is_empty() {
            units.push(unit);
        }
    }
    units
}

/// Converts a file to entries. `own` is true if the file is exactly as Steno would write it.
pub(super) fn entries_from_file(file: &UnitFile, name: &str, own: bool) -> Vec<Entry> {
    let mut entries: Vec<_> = file.items.iter().map(entry_from_item).collect();
    for entry in &mut entries {
        entry.extra.insert(FILE_NAME_KEY.to_owned(), name.into());
    }
    if let Some(last) = entries.last_mut() {
        last.created_at = file.header.end.parse().ok();
    }
    if let Some(first) = entries.first_mut() {
        first.created_at = file.header.start.parse().ok();
        first.extra.insert(HEADER_KEY.to_owned(), header_to_value(file, own));
    }
    entries
}

/// Splits entries at each user message, and where the file that they were read from changes.
fn split_into_groups(entries: &[Entry]) -> Vec<&[Entry]> {
    let mut groups = Vec::new();
    let mut start = 0;
    let mut has_prompt = false;
    for at in 0..entries.len() {
        let (here, previous) = (&entries[at], entries[..at].last());
        let opens = match (file_name_of(here), previous.and_then(file_name_of)) {
            (Some(name), Some(before)) => name != before,
            (Some(_), None) => at > 0,
            (None, _) => is_user_prompt(here) && has_prompt && !continues_message(here, previous),
        };
        if opens {
            groups.push(&entries[start..at]);
            start = at;
            has_prompt = false;
        }
        has_prompt |= is_user_prompt(here) || file_name_of(here).is_some();
    }
    groups.push(&entries[start..]);
    groups.retain(|group| !group.is_empty());
    groups
}

/// The entry with the user's query.
fn find_prompt(group: &[Entry]) -> Option<&Entry> {
    group.iter().find(|entry| is_user_prompt(entry))
}

/// Whether an entry is a user's message to the main agent.
pub fn is_user_prompt(entry: &Entry) -> bool {
    entry.role == Role::User && entry.kind == EntryKind::Text && entry.source == PRIMARY_SOURCE
}

/// Whether an entry is another block of the previous message.
fn continues_message(entry: &Entry, previous: Option<&Entry>) -> bool {
    previous.is_some_and(|previous| {
        is_user_prompt(previous)
            && entry.message_id.is_some()
            && previous.message_id == entry.message_id
    })
}

/// When a unit started and ended.
#[derive(Clone, Copy)]
struct UnitTimeRange {
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

impl UnitTimeRange {
    fn from_group(group: &[Entry], before: Option<Timestamp>, ended: Option<Timestamp>) -> Self {
        let start = group.iter().find_map(|entry| entry.created_at).or(before);
        let last = group.iter().rev().find_map(|entry| entry.created_at);
        Self { start, end: last.or(ended).or(start) }
    }
}

fn build_unit(
    session: &Session,
    group: &[Entry],
    range: UnitTimeRange,
    last: bool,
) -> NamedUnitFile {
    let read = group[0].extra.get(HEADER_KEY).and_then(Value::as_object);
    // Only files that Steno wrote keep the count; see `header_to_value`.
    let own = read.and_then(|header| header.get("tool_calls")).and_then(Value::as_u64);
    let is_run = is_thread_run(session);
    let mut file = UnitFile {
        header: build_header(session, group, range, last),
        items: group
            .iter()
            .flat_map(|entry| items_from_entry(entry, own.is_some(), is_run))
            .collect(),
        is_truncated: own.is_some() && read.is_some_and(|header| header.get("cut").is_some()),
    };
    file.header.tool_calls = own.unwrap_or_else(|| file.count_tool_calls());
    let start = range.start.unwrap_or_else(unix_epoch);
    NamedUnitFile {
        stem: unit_file_stem(start, file.first_query().unwrap_or_default()),
        name: own
            .and_then(|_| file_name_of(&group[0]))
            .filter(|name| is_safe_file_name(name))
            .map(str::to_owned),
        file,
    }
}

fn build_header(
    session: &Session,
    group: &[Entry],
    range: UnitTimeRange,
    last: bool,
) -> UnitHeader {
    let read = group[0].extra.get(HEADER_KEY).and_then(Value::as_object);
    let text = |name: &str| read?.get(name)?.as_str().map(str::to_owned);
    let stated = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
    let given_in =
        find_prompt(group).and_then(|prompt| acp::wire_metadata(prompt, acp::PROMPT_MODE_KEY));
    let mode = given_in.or(session.extra.get(AGENT_MODE_KEY).and_then(Value::as_str));
    let chat = session.native_id.as_deref().unwrap_or(session.id.as_str());
    let stop = || match is_thread_run(session) || session.extra.contains_key(acp::AGENT_NAME) {
        true => find_turn_end(group).map(str::to_owned),
        false => session.stop_reason.clone().filter(|_| last && read.is_none()),
    };
    let other = read.and_then(|header| header.get("other")).and_then(Value::as_array);
    UnitHeader {
        thread_id: session.thread.clone().unwrap_or_default(),
        chat_id: chat.to_owned(),
        start: text("start").unwrap_or_else(|| stated(range.start)),
        end: text("end").unwrap_or_else(|| stated(range.end)),
        agent_mode: text("agent_mode").unwrap_or_else(|| mode.unwrap_or("agent").to_owned()),
        stop_reason: text("stop_reason").or_else(stop),
        tool_calls: 0,
        other: other.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

/// The stop reason of a turn as the agent protocol (ACP) stated it; `None` while the turn is running.
fn find_turn_end(group: &[Entry]) -> Option<&str> {
    let own = || group.iter().rev().filter(|entry| entry.source == PRIMARY_SOURCE);
    let stated = own().find_map(|entry| acp::wire_metadata(entry, acp::STOP_REASON_KEY));
    let has_failed = |entry: &Entry| entry.kind == EntryKind::Error && entry.tool_call_id.is_none();
    stated.or_else(|| own().any(has_failed).then_some(ERROR_STOP_REASON))
}

/// The header fields that the first entry of a file keeps.
///
/// The stated number of tool calls is kept only if the file is exactly as Steno would write it, so that it is written
/// back byte for byte. In any other file the number is corrected when it is written again.
fn header_to_value(file: &UnitFile, own: bool) -> Value {
    let header = &file.header;
    let mut value = json!({
        "start": header.start,
        "end": header.end,
        "agent_mode": header.agent_mode,
    });
    if let Some(reason) = &header.stop_reason {
        value["stop_reason"] = reason.clone().into();
    }
    if !header.other.is_empty() {
        value["other"] = header.other.clone().into();
    }
    if own {
        value["tool_calls"] = header.tool_calls.into();
    }
    if file.is_truncated {
        value["cut"] = true.into();
    }
    value
}

/// Converts an entry to items. The text of a message with a tool call comes before the call.
fn items_from_entry(entry: &Entry, verbatim: bool, is_run: bool) -> Vec<UnitItem> {
    if is_run && is_user_prompt(entry) {
        return vec![UnitItem::User(without_thread_blocks(&entry.content).to_owned())];
    }
    let text = entry.text_beside_call().map(|text| UnitItem::Assistant(text.to_owned()));
    text.into_iter().chain(item_from_entry(entry, verbatim)).collect()
}

fn item_from_entry(entry: &Entry, verbatim: bool) -> Option<UnitItem> {
    let short = |text: &str| {
        if verbatim { text.to_owned() } else { truncate_chars(text, MAX_TOOL_CHARS) }
    };
    let tool = || match entry.tool_name.as_deref() {
        None | Some("") => UNNAMED_TOOL.to_owned(),
        Some(name) => name.to_owned(),
    };
    match (entry.kind, &entry.role) {
        (EntryKind::Text, Role::User) => Some(UnitItem::User(entry.content.clone())),
        (EntryKind::Text, Role::Assistant) => Some(UnitItem::Assistant(entry.content.clone())),
        (EntryKind::ToolCall, _) => Some(UnitItem::ToolCall(tool(), short(&arguments_text(entry)))),
        (EntryKind::ToolResult, _) => Some(UnitItem::ToolResult(tool(), short(&entry.content))),
        (EntryKind::Error, _) => Some(UnitItem::Error(short(&entry.content))),
        _ => None,
    }
}

/// A tool call's arguments as text.
fn arguments_text(entry: &Entry) -> String {
    match &entry.tool_input {
        Some(Value::String(text)) if entry.content.is_empty() => text.clone(),
        Some(input) if entry.content.is_empty() => JsonStyle::COMPACT.print(input),
        Some(input) if entry.text_beside_call().is_some() => JsonStyle::COMPACT.print(input),
        _ => entry.content.clone(),
    }
}

fn entry_from_item(item: &UnitItem) -> Entry {
    let named = |role, kind, name: &String, text: &String| {
        let mut entry = Entry::new(role, kind, text);
        entry.tool_name = Some(name.clone()).filter(|name| name != UNNAMED_TOOL);
        entry
    };
    match item {
        UnitItem::User(text) => Entry::new(Role::User, EntryKind::Text, text),
        UnitItem::Assistant(text) => Entry::new(Role::Assistant, EntryKind::Text, text),
        UnitItem::ToolCall(name, text) => {
            let mut entry = named(Role::Assistant, EntryKind::ToolCall, name, text);
            entry.tool_input = serde_json::from_str(text).ok().filter(Value::is_object);
            entry
        }
        UnitItem::ToolResult(name, text) => named(Role::Tool, EntryKind::ToolResult, name, text),
        UnitItem::Error(text) => Entry::new(Role::System, EntryKind::Error, text),
        UnitItem::Unmarked(text) => Entry::new(Role::System, EntryKind::Notice, text),
    }
}

fn file_name_of(entry: &Entry) -> Option<&str> {
    entry.extra.get(FILE_NAME_KEY).and_then(Value::as_str)
}

/// Whether a name from a transcript is safe as a file name.
fn is_safe_file_name(name: &str) -> bool {
    let hidden = name.starts_with('.') || name.len() > 255;
    name.ends_with(".txt") && !hidden && !name.contains(['/', '\\', '\0'])
}

fn unix_epoch() -> Timestamp {
    Timestamp::from_unix(0).expect("the epoch is a time")
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_model::session::SessionId;

    fn transcript(entries: Vec<Entry>) -> Transcript {
        let mut session = Session::new("chat-1".parse::<SessionId>().unwrap(), "x");
        session.thread = Some("thread-1".to_owned());
        session.stop_reason = Some("end_turn".to_owned());
        let mut transcript = Transcript::new(session);
        entries.into_iter().for_each(|entry| transcript.push(entry));
        transcript
    }

    fn new_entry(role: Role, text: &str, at: &str) -> Entry {
        let mut entry = Entry::new(role, EntryKind::Text, text);
        entry.created_at = at.parse().ok();
        entry
    }

    #[test]
    fn each_question_opens_a_unit() {
        let mut block = new_entry(Role::User, "and this", "");
        block.message_id = Some("m".to_owned());
        let mut first = new_entry(Role::User, "one", "2026-01-01T10:00:00+02:00");
        first.message_id = Some("m".to_owned());
        let mut subagent = new_entry(Role::User, "go", "");
        subagent.source = "subagent:a".to_owned();
        let given = transcript(vec![
            new_entry(Role::Assistant, "welcome", "2026-01-01T09:59:00+02:00"),
            first,
            block,
            subagent,
            new_entry(Role::User, "two", "2026-01-01T10:05:00+02:00"),
            new_entry(Role::System, "hidden", ""),
            new_entry(Role::Assistant, "done", "2026-01-01T10:06:00+02:00"),
        ]);
        let units = units_from_transcript(&given, None);
        let stems: Vec<_> = units.iter().map(|unit| unit.stem.as_str()).collect();
        assert_eq!(stems, ["20260101-0959-one", "20260101-1005-two"]);
        assert_eq!(units[0].file.items.len(), 4);
        assert_eq!(units[1].file.items.len(), 2);
        let stops: Vec<_> =
            units.iter().map(|unit| unit.file.header.stop_reason.as_deref()).collect();
        assert_eq!(stops, [None, Some("end_turn")]);
        assert_eq!(units[1].file.header.end, "2026-01-01T10:06:00+02:00");
    }

    #[test]
    fn tools_are_named_counted_and_shortened() {
        let mut call = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        call.tool_input = Some(json!({"path": "é".repeat(300)}));
        let result = Entry::new(Role::Tool, EntryKind::ToolResult, "r".repeat(201));
        let error = Entry::new(Role::Assistant, EntryKind::Error, "e".repeat(201));
        let units = units_from_transcript(&transcript(vec![call, result, error]), None);
        let file = &units[0].file;
        assert_eq!(file.header.tool_calls, 1);
        let UnitItem::ToolCall(name, params) = &file.items[0] else {
            panic!("not a call");
        };
        assert_eq!((name.as_str(), params.chars().count()), ("unknown", 200));
        assert!(params.starts_with("{\"path\":\"é") && params.ends_with("é..."));
        assert_eq!(file.items[1], UnitItem::ToolResult("unknown".into(), "r".repeat(197) + "..."));
        assert_eq!(file.items[2], UnitItem::Error("e".repeat(197) + "..."));
        assert_eq!(units[0].stem, "19700101-0000-task");
    }

    #[test]
    fn names_from_transcripts_stay_in_the_folder() {
        assert!(is_safe_file_name("20260208-1430-a.txt"));
        for name in ["../a.txt", ".a.txt", "a", "/etc/a.txt", "a\\b.txt"] {
            assert!(!is_safe_file_name(name), "{name}");
        }
    }
}
