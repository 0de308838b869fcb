//! Reads aider's chats from `.aider.chat.history.md`, a Markdown file to which aider appends all chats of a repository.
//!
//! `#### ` lines are the user's, `> ` lines aider's, all others the model's. Aider splits them the same way, so an
//! answer that quotes such lines is split too. Each chat is a session, named by its start time. Token counts are
//! the rounded ones that aider prints.

mod find;
mod usage;

use std::borrow::Cow;
use std::io::Read;
use std::mem;
use std::path::{Path, PathBuf};

use self::find::list_chats;
use self::usage::{AiderTokenReport, parse_model};
use crate::agent::Agent;
use crate::agent::resume::{FolderRule, ResumeRule};
use crate::decoding::document;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::{FileError, OnPath};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::lines::{LineReader, MAX_LINE_LENGTH};
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionId};
use steno_vault::{SessionBundle, SessionFile};

/// The agent's name.
pub const AGENT_NAME: &str = "aider";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about Aider.
pub(crate) const AGENT: Agent = Agent {
    locations: |user| {
        // A relative path is searched in each project instead.
        let history = user.path_variable(HISTORY_VARIABLE).filter(|path| path.is_absolute());
        history.into_iter().collect()
    },
    project_locations: |user, projects| {
        let history = user.path_variable(HISTORY_VARIABLE);
        let history = history.unwrap_or_else(|| PathBuf::from(".aider.chat.history.md"));
        projects.iter().map(|project| project.join(&history)).collect()
    },
    resume: Some(ResumeRule {
        program: "aider",
        arguments: &["--restore-chat-history"],
        folder: FolderRule::Inside,
    }),
    earlier_session_id: Some(legacy_history_id),
    ..Agent::new("Aider", &READER)
};

/// The variable with the path of Aider's history, absolute or relative to the project.
const HISTORY_VARIABLE: &str = "AIDER_CHAT_HISTORY_FILE";

/// The prefix of the first line of each chat.
const CHAT_START_PREFIX: &str = "# aider chat started at ";

/// How many bytes of a file are read to recognize it.
const PROBED_BYTES: u64 = 4096;

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        let bundle = SessionBundle::from_file(file);
        let history = &bundle.files[0];
        if is_history(history)? {
            bundles.extend(list_chats(history)?.into_iter().map(|chat| SessionBundle {
                files: vec![history.byte_range(chat.range)],
                key: Some(chat.name),
                ..bundle.clone()
            }));
        }
    }
    Ok(bundles)
}

/// Whether the file begins with a chat, or has a history's name and a chat near its beginning.
fn is_history(source: &SessionFile) -> Result<bool, FileError> {
    let mut start = Vec::new();
    source.open()?.take(PROBED_BYTES).read_to_end(&mut start).on("read", source.path())?;
    let start = String::from_utf8_lossy(&start);
    let name = source.name();
    let is_named = name.ends_with("chat.history.md") || name.ends_with("chat-history.md");
    let mut lines = start.lines().filter(|line| !line.trim().is_empty());
    Ok(lines
        .position(|line| line.starts_with(CHAT_START_PREFIX))
        .is_some_and(|at| at == 0 || is_named))
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let source = &chat_section(bundle)?;
    let native_id = native_id(bundle, source);
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, &native_id), AGENT_NAME);
    if source.name() == ".aider.chat.history.md" {
        session.project = source.path().parent().map(|folder| folder.display().to_string());
    }
    let mut history = AiderHistoryDecoder::new(EntryEmitter::new(AGENT_NAME, &native_id, emit));
    session.native_id = Some(native_id);
    for line in LineReader::new(source.open()?) {
        let line = line.on("read", source.path())?;
        history.decode_line(&String::from_utf8_lossy(&line.bytes));
    }
    session.totals.cost = history.finish();
    Ok(session)
}

/// Empties a whole history, as version 0.1 kept it, once each of its chats is kept as a session, so that nothing counts
/// twice. Such a bundle has no key.
pub fn clear_if_chats_kept(
    bundle: &mut SessionBundle,
    is_kept: impl Fn(&SessionId) -> bool,
) -> Result<(), FileError> {
    let [history] = bundle.files.as_mut_slice() else { return Ok(()) };
    let chats = list_chats(history)?;
    let is_kept =
        |name: &str| is_kept(&SessionId::for_native(AGENT_NAME, &format!("{AGENT_NAME}-{name}")));
    if !chats.is_empty() && chats.iter().all(|chat| is_kept(&chat.name)) {
        *history = history.byte_range(0..0);
    }
    Ok(())
}

/// The id under which version 0.1 kept a whole history.
pub fn legacy_history_id(path: &Path) -> SessionId {
    SessionId::for_native(AGENT_NAME, &path.display().to_string())
}

/// The section of the history with the bundle's chat. A bundle of version 0.1 has no key, and is the whole history.
fn chat_section(bundle: &SessionBundle) -> Result<SessionFile, FormatError> {
    let source = document::only_file(bundle)?;
    let Some(key) = &bundle.key else { return Ok(source.clone()) };
    let mut chats = list_chats(source)?;
    let at = chats.iter().position(|chat| chat.name == *key);
    match at.or((chats.len() == 1).then_some(0)) {
        Some(at) => Ok(source.byte_range(chats.swap_remove(at).range)),
        None => {
            Err(FormatError::Invalid(Problem::for_file(source.path(), format!("no chat {key}"))))
        }
    }
}

/// The native id of a chat. It does not depend on the path of the project.
fn native_id(bundle: &SessionBundle, history: &SessionFile) -> String {
    let folder = history.path().parent().and_then(Path::file_name);
    let name = bundle.key.as_deref().map(Cow::from);
    let name = name.or(folder.map(|folder| folder.to_string_lossy()));
    format!("{AGENT_NAME}-{}", name.unwrap_or_default())
}

/// Who wrote a block of lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AiderSpeaker {
    Person,
    Aider,
    Model,
}

/// Decodes lines into entries, one per block of lines by the same speaker.
struct AiderHistoryDecoder<'a> {
    output: EntryEmitter<'a>,
    speaker: AiderSpeaker,
    block: String,
    model: Option<String>,
    /// The last answer, held until it is known whether a token report follows.
    answer: Option<Entry>,
    cost: Option<f64>,
}

impl<'a> AiderHistoryDecoder<'a> {
    fn new(output: EntryEmitter<'a>) -> Self {
        let (model, answer, cost) = (None, None, None);
        let (speaker, block) = (AiderSpeaker::Model, String::new());
        Self { output, speaker, block, model, answer, cost }
    }

    fn decode_line(&mut self, line: &str) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if let Some(time) = line.strip_prefix(CHAT_START_PREFIX) {
            self.start_chat(line, time);
        } else if let Some(text) = line.strip_prefix("#### ") {
            self.push_line(AiderSpeaker::Person, text.trim_end());
        } else if let Some(text) = line.strip_prefix("> ") {
            self.decode_aider_line(text.trim_end());
        } else {
            self.push_line(AiderSpeaker::Model, line);
        }
    }

    fn start_chat(&mut self, line: &str, time: &str) {
        self.end_block();
        let mut entry = Entry::new(Role::System, EntryKind::Notice, line.trim_start_matches("# "));
        entry.created_at = time.trim().parse().ok();
        self.model = None;
        self.push_entry(entry);
    }

    fn decode_aider_line(&mut self, text: &str) {
        self.push_line(AiderSpeaker::Aider, text);
        if let Some(model) = parse_model(text) {
            self.model = Some(model.to_owned());
        }
        if let Some(report) = AiderTokenReport::parse(text) {
            self.apply_report(&report);
        }
    }

    /// Assigns the report's usage to the answer before it, or to a notice of the report if there is none.
    fn apply_report(&mut self, report: &AiderTokenReport) {
        if let Some(cost) = report.cost {
            *self.cost.get_or_insert_default() += cost;
        }
        match &mut self.answer {
            Some(answer) if answer.usage.is_none() => answer.usage = Some(report.usage),
            _ => {
                self.end_block();
                let mut entry = Entry::new(Role::System, EntryKind::Notice, report.text.clone());
                entry.usage = Some(report.usage);
                self.push_entry(entry);
            }
        }
    }

    fn push_line(&mut self, speaker: AiderSpeaker, text: &str) {
        if self.speaker != speaker || self.block.len() > MAX_LINE_LENGTH {
            self.end_block();
            self.speaker = speaker;
        }
        self.block.push_str(text);
        self.block.push('\n');
    }

    fn end_block(&mut self) {
        let block = mem::take(&mut self.block);
        let text = block.trim_matches('\n');
        // The user may send an empty prompt; other blank blocks are separators.
        if block.is_empty() || (text.trim().is_empty() && self.speaker != AiderSpeaker::Person) {
            return;
        }
        match self.speaker {
            AiderSpeaker::Person => self.push_entry(prompt_entry(text)),
            AiderSpeaker::Aider => {
                self.push_entry(Entry::new(Role::System, EntryKind::Notice, text))
            }
            AiderSpeaker::Model => {
                let mut answer = Entry::new(Role::Assistant, EntryKind::Text, text);
                answer.model.clone_from(&self.model);
                self.flush_answer();
                self.answer = Some(answer);
            }
        }
    }

    fn push_entry(&mut self, entry: Entry) {
        self.flush_answer();
        self.output.emit_entry(entry);
    }

    fn flush_answer(&mut self) {
        if let Some(answer) = self.answer.take() {
            self.output.emit_entry(answer);
        }
    }

    fn finish(mut self) -> Option<f64> {
        self.end_block();
        self.flush_answer();
        self.cost
    }
}

/// The entry of typed text: a prompt, or a notice if it is a command to aider.
fn prompt_entry(text: &str) -> Entry {
    let kind = if text.starts_with('/') { EntryKind::Notice } else { EntryKind::Text };
    Entry::new(Role::User, kind, if text == "<blank>" { "" } else { text })
}

#[cfg(test)]
mod tests;
