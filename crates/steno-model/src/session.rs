//! The session: one recorded conversation with one agent, and its transcript.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::Uuid;

use crate::entry::{Entry, EntryError, EntryKind, Role, take_object, take_string, take_timestamp};
use crate::json::Object;
use crate::note::Note;
use crate::problem::Problem;
use crate::prompt::{continued_session_id, without_agent_blocks, without_thread_blocks};
use crate::timestamp::Timestamp;
use crate::unique_id::new_unique_id;
use crate::usage::Usage;
use crate::usage_tally::UsageTally;

/// How many entries at the start of a session may name the session that it continues.
const MAX_ORIGIN_POSITION: u64 = 16;

/// The agent of sessions that state none.
pub const STENO_AGENT: &str = "steno";

/// The id of a session: letters, digits, `.`, `_` and `-`, so that it is a valid folder name.
///
/// Clones share the text, because a scan of a home folder holds the ids of all its sessions in several lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Arc<str>);

/// An invalid session id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a session id (letters, digits, '.', '_' and '-', at most 128, no '.' in front): {0:?}"
)]
pub struct SessionIdError(pub String);

impl SessionId {
    /// A new id for a live session that starts at `at`. Later ids sort after earlier ones.
    pub fn new_unique(at: Timestamp) -> Self {
        Self(new_unique_id(at).hyphenated().to_string().into())
    }

    /// The id of an imported session: the agent's own id if it is valid, otherwise a UUID derived from it.
    pub fn for_native(agent: &str, native: &str) -> Self {
        native.parse().unwrap_or_else(|_| {
            let name = format!("steno:{agent}\n{native}");
            let uuid = Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes());
            Self(uuid.hyphenated().to_string().into())
        })
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The bytes allowed in an id, as a table because scans parse thousands of ids.
const IS_ID_BYTE: [bool; 256] = {
    let (mut plain, mut byte) = ([false; 256], 0);
    while byte < plain.len() {
        let character = byte as u8;
        plain[byte] = character.is_ascii_alphanumeric() || matches!(character, b'.' | b'_' | b'-');
        byte += 1;
    }
    plain
};

impl FromStr for SessionId {
    type Err = SessionIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.bytes().all(|byte| IS_ID_BYTE[usize::from(byte)])
            && (1..=128).contains(&text.len())
            && !text.starts_with('.')
        {
            Ok(Self(text.into()))
        } else {
            Err(SessionIdError(text.to_owned()))
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The status of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionStatus {
    /// A recorder has it open, or the agent has not marked its end.
    Running,
    /// Ended normally.
    #[default]
    Completed,
    /// Ended by an error or a crash.
    Failed,
    /// Ended by the user.
    Canceled,
}

impl SessionStatus {
    /// The status's name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            SessionStatus::Running => "running",
            SessionStatus::Completed => "completed",
            SessionStatus::Failed => "failed",
            SessionStatus::Canceled => "canceled",
        }
    }
}

impl fmt::Display for SessionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One recorded conversation with one agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Session {
    /// Steno's id of the session.
    pub id: SessionId,
    /// The agent's name.
    pub agent: String,
    /// The agent's own id of the session.
    pub native_id: Option<String>,
    /// The project folder.
    pub project: Option<String>,
    /// The branch checked out there.
    pub branch: Option<String>,
    /// The title, or the first line of the first prompt.
    pub title: Option<String>,
    /// When it started.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Its status.
    pub status: SessionStatus,
    /// Why the model stopped, or what failed.
    pub stop_reason: Option<String>,
    /// Every model used, in order of appearance.
    pub models: Vec<String>,
    /// Totals over all entries.
    pub totals: SessionTotals,
    /// The thread it belongs to.
    pub thread: Option<String>,
    /// The session that it continues or that spawned it.
    pub parent: Option<String>,
    /// Number of subagent files.
    pub subagent_files: u64,
    /// Fields of the agent's record without a field above.
    #[serde(skip_serializing_if = "Object::is_empty")]
    pub extra: Object,
}

/// Totals of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionTotals {
    /// Number of entries of all sources.
    pub entries: u64,
    /// Tokens, counting each API message once.
    pub usage: Usage,
    /// Cost in dollars, if the agent states it.
    pub cost: Option<f64>,
}

impl Session {
    /// Reads a session from Steno's own JSON.
    pub fn from_object(mut object: Object) -> Result<Self, EntryError> {
        let id = take_string(&mut object, "id")?.ok_or(EntryError::MissingField("id"))?;
        let agent = take_string(&mut object, "agent")?.unwrap_or_else(|| STENO_AGENT.to_owned());
        let mut session = Self::new(SessionId::for_native(&agent, &id), agent);
        session.native_id = take_string(&mut object, "native_id")?.or(Some(id));
        session.project = take_string(&mut object, "project")?;
        session.branch = take_string(&mut object, "branch")?;
        session.title = take_string(&mut object, "title")?;
        session.started = take_timestamp(&mut object, "started")?;
        session.ended = take_timestamp(&mut object, "ended")?;
        session.stop_reason = take_string(&mut object, "stop_reason")?;
        session.thread = take_string(&mut object, "thread")?;
        session.parent = take_string(&mut object, "parent")?;
        session.status = match object.shift_remove("status") {
            None => SessionStatus::default(),
            Some(status) => serde_json::from_value(status)
                .map_err(|_| EntryError::WrongType { field: "status", expected: "a status" })?,
        };
        let totals = take_object(&mut object, "totals")?;
        session.totals.cost = totals.and_then(|totals| totals.get("cost")?.as_f64());
        session.extra = take_object(&mut object, "extra")?.unwrap_or_default();
        Ok(session)
    }

    /// A session with only its id and agent.
    pub fn new(id: SessionId, agent: impl Into<String>) -> Self {
        Self {
            id,
            agent: agent.into(),
            native_id: None,
            project: None,
            branch: None,
            title: None,
            started: None,
            ended: None,
            status: SessionStatus::default(),
            stop_reason: None,
            models: Vec::new(),
            totals: SessionTotals::default(),
            thread: None,
            parent: None,
            subagent_files: 0,
            extra: Object::new(),
        }
    }

    /// Counts an entry with its tokens, and fills in missing session fields from it.
    pub fn add_entry(&mut self, entry: &Entry, tally: &mut UsageTally) {
        tally.count_entry(entry);
        self.totals.usage = tally.total();
        self.add_entry_facts(entry);
    }

    /// Like `add_entry`, without the tokens.
    pub fn add_entry_facts(&mut self, entry: &Entry) {
        self.totals.entries += 1;
        if let Some(model) = &entry.model
            && !self.models.contains(model)
        {
            self.models.push(model.clone());
        }
        let is_untitled = self.title.as_deref().is_none_or(|title| title == PICTURE_TITLE);
        if is_untitled && entry.role == Role::User && entry.kind == EntryKind::Text {
            let is_picture = self.title.is_none() && entry.content.starts_with("[image/");
            let fallback = || is_picture.then(|| PICTURE_TITLE.to_owned());
            self.title = title_from_prompt(&entry.content).or(self.title.take()).or_else(fallback);
        }
        if self.parent.is_none()
            && entry.role == Role::User
            && self.totals.entries <= MAX_ORIGIN_POSITION
        {
            self.parent = continued_session_id(&entry.content).map(str::to_owned);
        }
        if let Some(at) = entry.created_at {
            if self.started.is_none_or(|started| at.instant() < started.instant()) {
                self.started = Some(at);
            }
            if self.status != SessionStatus::Running
                && self.ended.is_none_or(|ended| at.instant() > ended.instant())
            {
                self.ended = Some(at);
            }
        }
    }
}

impl Session {
    /// Takes the counts of a session that was built from the entries alone, and its other fields where this one has none.
    pub fn completed_with(mut self, derived: Session) -> Self {
        self.title = self.title.or(derived.title);
        self.parent = self.parent.or(derived.parent);
        for model in derived.models {
            if !self.models.contains(&model) {
                self.models.push(model);
            }
        }
        if let Some(at) = derived.started
            && self.started.is_none_or(|started| at.instant() < started.instant())
        {
            self.started = Some(at);
        }
        if let Some(at) = derived.ended.filter(|_| self.status != SessionStatus::Running)
            && self.ended.is_none_or(|ended| at.instant() > ended.instant())
        {
            self.ended = Some(at);
        }
        self.totals.entries = derived.totals.entries;
        if self.totals.usage.is_empty() {
            self.totals.usage = derived.totals.usage;
        }
        self
    }
}

/// The title of a session whose prompts are pictures without words.
const PICTURE_TITLE: &str = "Picture";

/// The first line of a prompt's task, at most 80 characters. Attachments, which are in a prompt as a type, a size and a
/// hash, are left out.
fn title_from_prompt(prompt: &str) -> Option<String> {
    let task = without_agent_blocks(without_thread_blocks(prompt));
    let lines = task.lines().map(without_attachments);
    let line = lines.map(|line| line.trim().to_owned()).find(|line| !line.is_empty())?;
    if line.chars().count() <= 80 {
        return Some(line);
    }
    let mut short: String = line.chars().take(79).collect();
    short.push('…');
    Some(short)
}

/// The text before the hash of an attachment, and the length of the hash.
const ATTACHMENT_LABEL: &str = " bytes, blake3 ";
const ATTACHMENT_HASH_LENGTH: usize = 64;

/// A line without its attachments, such as `[image/png, 12 bytes, blake3 HEX]`.
fn without_attachments(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(ATTACHMENT_LABEL) {
        let hash_end = after.split_at_checked(ATTACHMENT_HASH_LENGTH);
        let end = hash_end.and_then(|(_, tail)| tail.strip_prefix(']'));
        let begin = before.rfind('[');
        match begin.zip(end) {
            Some((begin, end)) => {
                kept.push_str(&before[..begin]);
                rest = end;
            }
            None => {
                kept.push_str(before);
                kept.push_str(ATTACHMENT_LABEL);
                rest = after;
            }
        }
    }
    kept + rest
}

/// A session with its entries, problems and notes.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// The session.
    pub session: Session,
    /// Its entries, in chronological order.
    pub entries: Vec<Entry>,
    /// Records that could not be read. Their bytes stay in the session files.
    pub problems: Vec<Problem>,
    /// Notes of users.
    pub notes: Vec<Note>,
    tally: UsageTally,
}

impl Transcript {
    /// A transcript without entries.
    pub fn new(session: Session) -> Self {
        let (entries, problems, notes) = (Vec::new(), Vec::new(), Vec::new());
        Self { session, entries, problems, notes, tally: UsageTally::default() }
    }

    /// Appends an entry and counts it.
    pub fn push(&mut self, entry: Entry) {
        self.session.add_entry(&entry, &mut self.tally);
        self.entries.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_cannot_leave_their_folder() {
        for bad in ["", ".", "..", "a/b", "a\\b", ".hidden", "a b", "ü", &"x".repeat(129)] {
            assert!(bad.parse::<SessionId>().is_err(), "{bad:?}");
        }
        assert_eq!(SessionId::for_native("chibi", "default").as_str(), "default");
        let made = SessionId::for_native("chibi", "../x");
        assert_eq!(made, SessionId::for_native("chibi", "../x"));
        assert_eq!(made.as_str().len(), 36);
    }

    #[test]
    fn a_title_never_comes_from_a_block_of_context() {
        let reminder = "<system-reminder>\nbe nice\n</system-reminder>\n";
        assert_eq!(title_from_prompt(reminder), None);
        assert_eq!(
            title_from_prompt(&format!("{reminder}{reminder}Count")).as_deref(),
            Some("Count")
        );
        let context = "<session_context>\nToday\n</session_context>\n\nCount the herons\nplease";
        assert_eq!(title_from_prompt(context).as_deref(), Some("Count the herons"));
        assert_eq!(title_from_prompt("<system-reminder> never closed"), None);
        assert_eq!(title_from_prompt("<b>bold</b>").as_deref(), Some("<b>bold</b>"));
    }

    #[test]
    fn a_picture_gives_no_title_while_there_are_words() {
        let picture = format!("[image/png, 395728 bytes, blake3 {}]", "9f".repeat(32));
        let title_of = |prompts: &[&str]| {
            let mut transcript = Transcript::new(Session::new("s".parse().unwrap(), "x"));
            for prompt in prompts {
                transcript.push(Entry::new(Role::User, EntryKind::Text, *prompt));
            }
            transcript.session.title
        };
        let named = format!("harbour.png {picture} at night\nplease");
        for (prompts, title) in [
            (vec![picture.as_str(), "Make it blue", "Or red"], "Make it blue"),
            (vec![&picture, &picture], "Picture"),
            (vec![&format!("{picture}\n{picture}\nWhat is this?"), "Or that?"], "What is this?"),
            (vec![&named], "harbour.png  at night"),
            (vec!["[a, 5 bytes, blake3 00] is short"], "[a, 5 bytes, blake3 00] is short"),
        ] {
            assert_eq!(title_of(&prompts).as_deref(), Some(title));
        }
        assert_eq!(title_of(&[&picture.replace("image/png", "application/pdf")]), None);
    }

    #[test]
    fn title_is_the_first_line_of_the_first_prompt() {
        let mut transcript = Transcript::new(Session::new("s".parse().unwrap(), "x"));
        transcript.push(Entry::new(Role::System, EntryKind::Text, "You are"));
        transcript.push(Entry::new(Role::User, EntryKind::Text, "\n  Fix it\nplease"));
        assert_eq!(transcript.session.title.as_deref(), Some("Fix it"));
        assert_eq!(transcript.session.totals.entries, 2);
    }

    #[test]
    fn the_first_notice_names_the_session_that_is_continued() {
        let notice =
            "<continued_session agent=\"codex\" session=\"old\">\nText\n</continued_session>";
        let mut transcript = Transcript::new(Session::new("s".parse().unwrap(), "x"));
        transcript.push(Entry::new(Role::User, EntryKind::Notice, notice));
        assert_eq!(transcript.session.parent.as_deref(), Some("old"));
        assert_eq!(transcript.session.title, None);
        let mut quoting = Transcript::new(Session::new("s".parse().unwrap(), "x"));
        quoting.push(Entry::new(Role::Assistant, EntryKind::Text, notice));
        (0..20).for_each(|_| quoting.push(Entry::new(Role::User, EntryKind::Text, "Go")));
        quoting.push(Entry::new(Role::User, EntryKind::Text, notice));
        assert_eq!(quoting.session.parent, None);
    }

    #[test]
    fn tokens_count_once_per_message() {
        let mut transcript = Transcript::new(Session::new("s".parse().unwrap(), "x"));
        for (message, output) in
            [(Some("m1"), 1), (Some("m1"), 20), (Some("m2"), 5), (None, 3), (None, 3)]
        {
            let mut entry = Entry::new(Role::Assistant, EntryKind::Text, "hi");
            entry.message_id = message.map(str::to_owned);
            entry.usage = Some(Usage { input: 10, output, ..Usage::default() });
            transcript.push(entry);
        }
        let usage = transcript.session.totals.usage;
        assert_eq!((usage.input, usage.output), (40, 31));
    }
}
