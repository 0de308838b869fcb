//! How Steno writes a session of one agent that continues a session of another.
//!
//! The writer of an agent is beside its reader, in `continue_session.rs`. It returns bytes; the caller writes them to
//! disk after [`check_files`] has read them back with the agent's own reader.

pub mod context_cut;
pub mod conversation;
pub mod image_segments;
pub mod notice;

use std::path::{Path, PathBuf};

use uuid::Uuid;

use self::conversation::{ContinuedConversation, NoticeHandling};
use self::image_segments::ImageLookup;
use super::resume::ResumeLocationError;
use super::user_folders::UserFolders;
use crate::reader::{self, FormatError, FormatReader};
use steno_model::durable::FileError;
use steno_model::session::Transcript;
use steno_model::timestamp::Timestamp;
use steno_vault::{SessionBundle, SessionFile};

/// How sessions of an agent are written.
#[derive(Debug)]
pub struct ContinuationRule {
    /// The versions of the agent that were seen to continue a written session.
    pub tested_versions: &'static [&'static str],
    /// The context of the agent's usual model, in tokens.
    pub context_tokens: u64,
    /// Makes the files.
    pub write: fn(&ContinuationRequest<'_>) -> Result<ContinuationFiles, ContinuationError>,
    /// The agent's command that imports the file, if it keeps its sessions in a database. `{file}` is replaced.
    pub import_arguments: Option<&'static [&'static str]>,
    /// The arguments that start a new session with a prompt. `{prompt}` is replaced.
    pub prompt_arguments: &'static [&'static str],
}

/// What to write, and where.
pub struct ContinuationRequest<'a> {
    /// The conversation so far.
    pub conversation: &'a ContinuedConversation,
    /// The text that precedes it: where it comes from, and what was left out.
    pub notice: &'a str,
    /// The title for agents that store one.
    pub title: &'a str,
    /// The agent of the continued session.
    pub origin_agent: &'a str,
    /// Finds the images that the conversation names.
    pub images: ImageLookup<'a>,
    /// The folder to continue in.
    pub folder: &'a Path,
    /// The branch that is checked out there.
    pub branch: Option<&'a str>,
    /// The home folder and variables of the user.
    pub user: &'a UserFolders<'a>,
    /// The version of the agent.
    pub version: &'a str,
    /// What the ids of the new session are made of. It sorts by time.
    pub id: Uuid,
    /// The present time.
    pub now: Timestamp,
}

/// The files of a session to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinuationFiles {
    /// The agent's id of the session.
    pub session_id: String,
    /// The session file. If the agent imports it, only its name counts.
    pub session_file: ContinuationFile,
    /// Further files that the agent needs, which must be written first.
    pub other_files: Vec<ContinuationFile>,
}

/// One file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinuationFile {
    /// Where.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// Why a session cannot be continued in an agent.
#[derive(Debug, thiserror::Error)]
pub enum ContinuationError {
    /// The agent would not find the session in this folder.
    #[error(transparent)]
    Location(#[from] ResumeLocationError),
    /// Reading a file of the agent failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// Reading the written session back failed.
    #[error("the written session cannot be read back")]
    Unreadable(#[source] FormatError),
    /// The written session reads differently.
    #[error("the written session reads differently: {0}")]
    Different(String),
}

impl ContinuationFiles {
    /// Files of a session with one file.
    pub(crate) fn with_session_file(session_id: String, path: PathBuf, bytes: Vec<u8>) -> Self {
        let session_file = ContinuationFile { path, bytes };
        Self { session_id, session_file, other_files: Vec::new() }
    }
}

impl ContinuationRequest<'_> {
    /// The id of the new session in the form of a random UUID, which some agents insist on.
    pub(crate) fn random_session_id(&self) -> String {
        let hash = blake3::hash(self.id.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.as_bytes()[..16]);
        uuid::Builder::from_random_bytes(bytes).into_uuid().hyphenated().to_string()
    }

    /// A hexadecimal name that only this session and `number` have, of at most 64 digits.
    pub(crate) fn unique_hex(&self, number: usize, digits: usize) -> String {
        let hash = blake3::hash(format!("{} {number}", self.id).as_bytes()).to_hex();
        hash[..digits.min(hash.len())].to_owned()
    }

    /// A UUID that only this session and `number` have.
    pub(crate) fn unique_uuid(&self, number: usize) -> String {
        Uuid::new_v5(&self.id, number.to_string().as_bytes()).hyphenated().to_string()
    }

    /// The time of each item in order. Times that are missing or go back are those of the item before.
    pub(crate) fn item_times(&self) -> Vec<Timestamp> {
        let times = || self.conversation.items.iter().map(|item| item.created_at);
        let mut last = times().flatten().next().unwrap_or(self.now);
        let mut ordered = Vec::with_capacity(self.conversation.items.len());
        for at in times() {
            match at {
                Some(at)
                    if at.instant() >= last.instant() && at.instant() <= self.now.instant() =>
                {
                    last = at;
                }
                _ => {}
            }
            ordered.push(last);
        }
        ordered
    }

    /// The time of the notice, which is first.
    pub(crate) fn first_time(&self) -> Timestamp {
        self.item_times().first().copied().unwrap_or(self.now)
    }
}

/// A time in the form `2026-01-05T09:15:32.500Z`.
pub(crate) fn utc_millis(at: Timestamp) -> String {
    format!("{:.3}", at.instant())
}

/// Reads files back with the agent's reader before they are written, and compares them with the conversation.
pub fn check_files(
    reader: &FormatReader,
    files: &ContinuationFiles,
    expected: &ContinuedConversation,
) -> Result<(), ContinuationError> {
    let ContinuationFile { path, bytes } = &files.session_file;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let file = SessionFile::in_memory(name, path, bytes.clone());
    check_bundle(reader, &SessionBundle::new(path, vec![file]), expected)
}

/// Reads a written session with the agent's reader, and compares it with the conversation.
pub fn check_bundle(
    reader: &FormatReader,
    bundle: &SessionBundle,
    expected: &ContinuedConversation,
) -> Result<(), ContinuationError> {
    let transcript =
        reader::read_transcript(reader, bundle).map_err(ContinuationError::Unreadable)?;
    check_transcript(&transcript, expected)
}

fn check_transcript(
    transcript: &Transcript,
    expected: &ContinuedConversation,
) -> Result<(), ContinuationError> {
    if let Some(problem) = transcript.problems.first() {
        return Err(ContinuationError::Different(problem.to_string()));
    }
    let read = ContinuedConversation::from_entries(&transcript.entries, NoticeHandling::AsPrompts);
    match expected.first_difference(&read) {
        Some(difference) => Err(ContinuationError::Different(difference)),
        None => Ok(()),
    }
}
