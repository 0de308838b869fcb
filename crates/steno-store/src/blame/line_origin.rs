//! The answer to the question which session wrote a line.

use serde::Serialize;

use super::blamed_line::BlamedLine;
use steno_model::session::SessionId;
use steno_model::timestamp::Timestamp;

/// How sure an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OriginCertainty {
    /// No session is known to have written the line.
    Unknown,
    /// A session wrote the line or one like it, but somebody else may have written it too.
    Likely,
    /// One session, and no other, wrote the line before anybody is known to have seen it.
    Certain,
}

/// Which session wrote a line.
#[derive(Clone, Debug)]
pub struct LineOrigin {
    /// The line and its commit.
    pub line: BlamedLine,
    /// How sure the answer is.
    pub certainty: OriginCertainty,
    /// The entry that wrote it.
    pub entry: Option<OriginEntry>,
    /// The reasons, in words.
    pub evidence: Vec<String>,
}

/// The entry that wrote a line.
#[derive(Clone, Debug, PartialEq)]
pub struct OriginEntry {
    /// The session.
    pub session: SessionId,
    /// The agent.
    pub agent: String,
    /// The session's title.
    pub title: Option<String>,
    /// The entry's number in the session, from 0.
    pub number: u64,
    /// When it was written.
    pub time: Option<Timestamp>,
    /// The model that wrote it.
    pub model: Option<String>,
    /// The prompt that led to it.
    pub prompt: Option<OriginPrompt>,
}

/// A prompt of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginPrompt {
    /// The entry's number in the session, from 0.
    pub number: u64,
    /// The text.
    pub text: String,
}

impl OriginCertainty {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }
}

impl OriginEntry {
    /// The entry as `steno show` takes it.
    pub fn link(&self) -> String {
        format!("{}:{}", self.session, self.number)
    }
}

/// One line of `steno blame --json`.
#[derive(Debug, Serialize)]
pub struct LineOriginRow<'a> {
    file: &'a str,
    line: usize,
    text: &'a str,
    commit: Option<&'a str>,
    original_file: Option<&'a str>,
    original_line: Option<usize>,
    certainty: OriginCertainty,
    session: Option<&'a str>,
    agent: Option<&'a str>,
    title: Option<&'a str>,
    entry: Option<u64>,
    link: Option<String>,
    time: Option<String>,
    model: Option<&'a str>,
    prompt: Option<&'a str>,
    prompt_entry: Option<u64>,
    evidence: &'a [String],
}

impl<'a> LineOriginRow<'a> {
    /// The row of a line of `file`.
    pub fn new(file: &'a str, origin: &'a LineOrigin) -> Self {
        let LineOrigin { line, certainty, entry, evidence } = origin;
        let commit = line.commit.as_deref();
        let entry = entry.as_ref();
        let prompt = entry.and_then(|entry| entry.prompt.as_ref());
        Self {
            file,
            line: line.number,
            text: &line.text,
            commit,
            original_file: commit.map(|_| line.original_path.as_str()),
            original_line: commit.map(|_| line.original_number),
            certainty: *certainty,
            session: entry.map(|entry| entry.session.as_str()),
            agent: entry.map(|entry| entry.agent.as_str()),
            title: entry.and_then(|entry| entry.title.as_deref()),
            entry: entry.map(|entry| entry.number),
            link: entry.map(OriginEntry::link),
            time: entry.and_then(|entry| entry.time).map(|time| time.to_string()),
            model: entry.and_then(|entry| entry.model.as_deref()),
            prompt: prompt.map(|prompt| prompt.text.as_str()),
            prompt_entry: prompt.map(|prompt| prompt.number),
            evidence,
        }
    }
}
