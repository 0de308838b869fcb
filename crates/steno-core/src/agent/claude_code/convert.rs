//! Decodes records into entries, and fills in their ids, times, sources and parents.

use std::mem;

use uuid::Uuid;

use super::billing::Bill;
use super::blocks::{self, Tools};
use super::links::Links;
use super::loose::Loose;
use super::prompt;
use super::record::{self, Message, Record};
use super::usage::usage;
use crate::entry::{Entry, Kind, Numbering, Role};
use crate::json::Object;
use crate::sums::SumSet;
use crate::timestamp::Timestamp;

/// The model of messages that Claude Code itself writes in the model's name.
const SYNTHETIC: &str = "<synthetic>";

/// Record types without an entry: state, titles, checkpoints, copies of API requests.
const SILENT: [&str; 26] = [
    "agent-color",
    "agent-name",
    "agent-setting",
    "agent_metadata",
    "ai-title",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "bridge-session",
    "content-replacement",
    "cost-state",
    "custom-title",
    "file-history-delta",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "progress",
    "relocated",
    "result",
    "started",
    "summary",
    "tag",
    "tools-used",
    "worktree-state",
];

/// Fields that every record has. Entries have fields of their own for them.
const ENVELOPE: [&str; 14] = [
    "cwd",
    "entrypoint",
    "gitBranch",
    "isMeta",
    "isSidechain",
    "logicalParentUuid",
    "parentUuid",
    "sessionId",
    "slug",
    "timestamp",
    "type",
    "userType",
    "uuid",
    "version",
];

/// One parsed line of a session file.
pub(super) struct Line<'a> {
    pub(super) record: Record<'a>,
    /// The bytes of the record.
    pub(super) raw: &'a [u8],
    /// The line number, from 1.
    pub(super) number: u64,
    pub(super) at: Option<Timestamp>,
}

/// Decodes the records of one session, file by file.
#[derive(Debug)]
pub(super) struct Converter {
    numbering: Numbering,
    pub(super) tools: Tools,
    links: Links,
    used: SumSet,
    /// Queued prompts without an `origin` field, since the last typed prompt.
    queued: SumSet,
    /// The source of all records of the current file. If none, each record's links decide.
    pub(super) speaker: Option<String>,
}

impl Converter {
    pub(super) fn new(numbering: Numbering) -> Self {
        Self {
            numbering,
            tools: Tools::default(),
            links: Links::default(),
            used: SumSet::default(),
            queued: SumSet::default(),
            speaker: None,
        }
    }

    /// Decodes a line into entries, and the usage that it reports for its message.
    pub(super) fn convert(&mut self, line: Line<'_>) -> (Vec<Entry>, Option<Bill>) {
        if is_silent(&line.record) {
            self.links.skip(&line.record);
            return (Vec::new(), None);
        }
        let source = match &self.speaker {
            Some(speaker) => speaker.clone(),
            None => self.links.source(&line.record),
        };
        let parent = self.links.parent(&line.record);
        let uuid = line.record.uuid.text().and_then(|uuid| Uuid::parse_str(uuid).ok());
        let at = line.at;
        let (mut entries, bill) = self.contents(line);
        for (index, entry) in entries.iter_mut().enumerate() {
            entry.source.clone_from(&source);
            entry.parent_id.clone_from(&parent);
            entry.created_at = at;
            if let (0, Some(uuid)) = (index, uuid)
                && self.used.insert(uuid)
            {
                entry.entry_id = uuid;
            }
            self.numbering.assign(entry);
        }
        (entries, bill)
    }

    fn contents(&mut self, mut line: Line<'_>) -> (Vec<Entry>, Option<Bill>) {
        let record = &mut line.record;
        let entries = match record.kind() {
            "assistant" => {
                if let Some(message) = take_message(record) {
                    return self.answer(message, &line);
                }
                vec![other(line.raw)]
            }
            "user" => self.asked(line),
            "system" => vec![told(line)],
            "attachment" => self.attached(line),
            "queue-operation" => {
                let text = blocks::flat(mem::take(&mut record.content));
                vec![Entry::new(Role::User, Kind::Notice, text)]
            }
            "pr-link" => vec![link(record.pr_url.text())],
            "frame-link" => vec![link(record.frame_url.text())],
            _ => vec![other(line.raw)],
        };
        (entries, None)
    }

    fn answer(&mut self, message: Message<'_>, line: &Line<'_>) -> (Vec<Entry>, Option<Bill>) {
        let record = &line.record;
        let mut entries = blocks::answer(message.content, &mut self.tools);
        if entries.is_empty() {
            entries.push(Entry::new(Role::Assistant, Kind::Text, ""));
        }
        let native_id = message.id.owned().or(record.request_id.owned());
        let message_id = native_id.unwrap_or_else(|| own_id(line));
        let model = message.model.owned();
        let is_synthetic = model.as_deref() == Some(SYNTHETIC);
        for entry in &mut entries {
            entry.message_id = Some(message_id.clone());
            if is_synthetic {
                let is_error = record.is_api_error_message.is_true();
                entry.kind = if is_error { Kind::Error } else { Kind::Notice };
                continue;
            }
            entry.model.clone_from(&model);
            if entry.kind == Kind::Other {
                entry.metadata = Some(record::whole(line.raw));
            }
        }
        if let Some(request) = record.request_id.text() {
            entries[0].extra.insert("requestId".to_owned(), request.into());
        }
        let usage = message.usage.filter(|_| !is_synthetic).map(usage);
        (entries, usage.map(|usage| Bill { message_id, usage }))
    }

    fn asked(&mut self, mut line: Line<'_>) -> Vec<Entry> {
        let message = match mem::take(&mut line.record.message) {
            Loose::Object(message) => message,
            Loose::Text(text) => return vec![Entry::new(Role::User, Kind::Notice, text)],
            _ => return vec![other(line.raw)],
        };
        let record = &line.record;
        let is_typed = prompt::is_typed(record, &message.content);
        let kind = if is_typed { Kind::Text } else { Kind::Notice };
        let mut entries = blocks::asked(message.content, kind, &self.tools);
        if is_typed {
            self.leave_out_queued(&mut entries);
        }
        let is_one = entries.len() == 1;
        for entry in &mut entries {
            match (entry.kind, record.tool_use_result.object()) {
                (Kind::ToolResult, Some(details)) if is_one => blocks::add_details(entry, details),
                (Kind::Other, _) => entry.metadata = Some(record::whole(line.raw)),
                (Kind::Text, _) if !is_one => entry.message_id = Some(prompt_id(&line)),
                _ => {}
            }
        }
        entries
    }

    /// Turns a typed prompt into a notice if it repeats a queued one: Claude Code writes a queued prompt again
    /// when it is sent.
    fn leave_out_queued(&mut self, prompt: &mut [Entry]) {
        let queued = mem::take(&mut self.queued);
        if queued.contains(said(prompt).as_str()) {
            let texts = prompt.iter_mut().filter(|entry| entry.kind == Kind::Text);
            texts.for_each(|entry| entry.kind = Kind::Notice);
        }
    }

    /// Decodes an attachment: a prompt queued while the model worked, or added context.
    fn attached(&mut self, mut line: Line<'_>) -> Vec<Entry> {
        let Loose::Object(attachment) = mem::take(&mut line.record.attachment) else {
            return vec![other(line.raw)];
        };
        let attachment = *attachment;
        if attachment.kind.text() == Some("queued_command") {
            let is_prompt = prompt::is_queued(&attachment);
            let kind = if is_prompt { Kind::Text } else { Kind::Notice };
            let mut entries = blocks::asked(attachment.prompt, kind, &Tools::default());
            if is_prompt && attachment.origin.is_absent() {
                self.queued.insert(said(&entries).as_str());
            }
            if entries.len() > 1 {
                entries.iter_mut().for_each(|entry| entry.message_id = Some(prompt_id(&line)));
            }
            return entries;
        }
        let text = attachment.text.into_text();
        let text = text.unwrap_or_else(|| blocks::flat(attachment.content));
        let mut entry = Entry::new(Role::System, Kind::Notice, text);
        entry.metadata = Some(beyond_envelope(line.raw));
        vec![entry]
    }
}

/// The text of a prompt, however it is split into blocks.
fn said(entries: &[Entry]) -> String {
    let texts = entries.iter().filter(|entry| entry.kind == Kind::Text);
    texts.map(|entry| entry.content.trim()).collect::<Vec<_>>().join("\n")
}

fn is_silent(record: &Record<'_>) -> bool {
    let is_queue = record.kind() == "queue-operation" && record.operation.text() != Some("enqueue");
    is_queue || SILENT.contains(&record.kind())
}

fn take_message<'a>(record: &mut Record<'a>) -> Option<Message<'a>> {
    match mem::take(&mut record.message) {
        Loose::Object(message) => Some(*message),
        _ => None,
    }
}

/// The message id of a message without one: the record's UUID or line number.
fn own_id(line: &Line<'_>) -> String {
    line.record.uuid.owned().unwrap_or_else(|| format!("line-{}", line.number))
}

/// The message id of a prompt with several blocks. It includes the line number, so that a repeated record counts
/// as another prompt, as a repeated prompt of one block does.
fn prompt_id(line: &Line<'_>) -> String {
    format!("{} line {}", own_id(line), line.number)
}

/// Decodes a `system` record.
fn told(line: Line<'_>) -> Entry {
    let kind = match line.record.subtype.text() {
        Some("compact_boundary") => Kind::Compaction,
        Some("api_error" | "error") => Kind::Error,
        _ => Kind::Notice,
    };
    let mut entry = Entry::new(Role::System, kind, blocks::flat(line.record.content));
    entry.metadata = Some(beyond_envelope(line.raw));
    entry
}

fn link(url: Option<&str>) -> Entry {
    Entry::new(Role::System, Kind::Notice, url.unwrap_or_default())
}

/// The entry of a record of unknown type. Its metadata is the whole record.
fn other(raw: &[u8]) -> Entry {
    let mut entry = Entry::new(Role::System, Kind::Other, "");
    entry.metadata = Some(record::whole(raw));
    entry
}

fn beyond_envelope(raw: &[u8]) -> Object {
    let mut object = record::whole(raw);
    object.retain(|name, _| !ENVELOPE.contains(&name.as_str()));
    object
}
