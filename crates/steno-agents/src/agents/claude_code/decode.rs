//! Decodes records into entries, and fills in their ids, times, sources and parents.

use std::mem;

use uuid::Uuid;

use super::billing::ClaudeMessageUsage;
use super::blocks::{self, ClaudeToolCalls};
use super::lenient_value::LenientValue;
use super::links::ClaudeRecordLinks;
use super::prompt;
use super::record::{self, ClaudeMessage, ClaudeRecord};
use super::usage::parse_usage;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::Object;
use steno_model::name_hash::CompactNameSet;
use steno_model::numbering::EntryNumbering;
use steno_model::timestamp::Timestamp;

/// The model of messages that Claude Code itself writes in the model's name.
const SYNTHETIC_MODEL: &str = "<synthetic>";

/// Record types without an entry: state, titles, checkpoints, copies of API requests.
const SKIPPED_TYPES: [&str; 26] = [
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
const ENVELOPE_FIELDS: [&str; 14] = [
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
pub(super) struct ClaudeLine<'a> {
    pub(super) record: ClaudeRecord<'a>,
    /// The bytes of the record.
    pub(super) raw: &'a [u8],
    /// The line number, from 1.
    pub(super) number: u64,
    pub(super) at: Option<Timestamp>,
}

/// Decodes the records of one session, file by file.
#[derive(Debug)]
pub(super) struct ClaudeRecordDecoder {
    numbering: EntryNumbering,
    pub(super) tools: ClaudeToolCalls,
    links: ClaudeRecordLinks,
    used: CompactNameSet,
    /// Queued prompts without an `origin` field, since the last typed prompt.
    queued: CompactNameSet,
    /// The source of all records of the current file. If none, each record's links decide.
    pub(super) source: Option<String>,
}

impl ClaudeRecordDecoder {
    pub(super) fn new(numbering: EntryNumbering) -> Self {
        Self {
            numbering,
            tools: ClaudeToolCalls::default(),
            links: ClaudeRecordLinks::default(),
            used: CompactNameSet::default(),
            queued: CompactNameSet::default(),
            source: None,
        }
    }

    /// Decodes a line into entries, and the usage that it reports for its message.
    pub(super) fn decode_line(
        &mut self,
        line: ClaudeLine<'_>,
    ) -> (Vec<Entry>, Option<ClaudeMessageUsage>) {
        if is_skipped(&line.record) {
            self.links.skip_record(&line.record);
            return (Vec::new(), None);
        }
        let source = match &self.source {
            Some(speaker) => speaker.clone(),
            None => self.links.find_source(&line.record),
        };
        let parent = self.links.find_parent(&line.record);
        let uuid = line.record.uuid.text().and_then(|uuid| Uuid::parse_str(uuid).ok());
        let at = line.at;
        let (mut entries, bill) = self.decode_content(line);
        for (index, entry) in entries.iter_mut().enumerate() {
            entry.source.clone_from(&source);
            entry.parent_id.clone_from(&parent);
            entry.created_at = at;
            if let (0, Some(uuid)) = (index, uuid)
                && self.used.insert(uuid)
            {
                entry.entry_id = uuid;
            }
            self.numbering.assign_number(entry);
        }
        (entries, bill)
    }

    fn decode_content(
        &mut self,
        mut line: ClaudeLine<'_>,
    ) -> (Vec<Entry>, Option<ClaudeMessageUsage>) {
        let record = &mut line.record;
        let entries = match record.kind() {
            "assistant" => {
                if let Some(message) = take_message(record) {
                    return self.decode_assistant(message, &line);
                }
                vec![unknown_entry(line.raw)]
            }
            "user" => self.decode_user(line),
            "system" => vec![decode_system(line)],
            "attachment" => self.decode_attachment(line),
            "queue-operation" => {
                let text = blocks::flatten_content(mem::take(&mut record.content));
                vec![Entry::new(Role::User, EntryKind::Notice, text)]
            }
            "pr-link" => vec![link_notice(record.pr_url.text())],
            "frame-link" => vec![link_notice(record.frame_url.text())],
            _ => vec![unknown_entry(line.raw)],
        };
        (entries, None)
    }

    fn decode_assistant(
        &mut self,
        message: ClaudeMessage<'_>,
        line: &ClaudeLine<'_>,
    ) -> (Vec<Entry>, Option<ClaudeMessageUsage>) {
        let record = &line.record;
        let mut entries = blocks::decode_assistant_blocks(message.content, &mut self.tools);
        if entries.is_empty() {
            entries.push(Entry::new(Role::Assistant, EntryKind::Text, ""));
        }
        let native_id = message.id.owned_text().or(record.request_id.owned_text());
        let message_id = native_id.unwrap_or_else(|| fallback_message_id(line));
        let model = message.model.owned_text();
        let is_synthetic = model.as_deref() == Some(SYNTHETIC_MODEL);
        for entry in &mut entries {
            entry.message_id = Some(message_id.clone());
            if is_synthetic {
                let is_error = record.is_api_error_message.is_true();
                entry.kind = if is_error { EntryKind::Error } else { EntryKind::Notice };
                continue;
            }
            entry.model.clone_from(&model);
            if entry.kind == EntryKind::Other {
                entry.metadata = Some(record::parse_object(line.raw));
            }
        }
        if let Some(request) = record.request_id.text() {
            entries[0].extra.insert("requestId".to_owned(), request.into());
        }
        let usage = message.usage.filter(|_| !is_synthetic).map(parse_usage);
        (entries, usage.map(|usage| ClaudeMessageUsage { message_id, usage }))
    }

    fn decode_user(&mut self, mut line: ClaudeLine<'_>) -> Vec<Entry> {
        let message = match mem::take(&mut line.record.message) {
            LenientValue::Object(message) => message,
            LenientValue::Text(text) => {
                return vec![Entry::new(Role::User, EntryKind::Notice, text)];
            }
            _ => return vec![unknown_entry(line.raw)],
        };
        let record = &line.record;
        let is_typed = prompt::is_typed(record, &message.content);
        let kind = if is_typed { EntryKind::Text } else { EntryKind::Notice };
        let mut entries = blocks::decode_user_blocks(message.content, kind, &self.tools);
        if is_typed {
            self.demote_queued_prompt(&mut entries);
        }
        let is_one = entries.len() == 1;
        for entry in &mut entries {
            match (entry.kind, record.tool_use_result.object()) {
                (EntryKind::ToolResult, Some(details)) if is_one => {
                    blocks::add_result_details(entry, details)
                }
                (EntryKind::Other, _) => entry.metadata = Some(record::parse_object(line.raw)),
                (EntryKind::Text, _) if !is_one => entry.message_id = Some(prompt_id(&line)),
                _ => {}
            }
        }
        entries
    }

    /// Turns a typed prompt into a notice if it repeats a queued one: Claude Code writes a queued prompt again
    /// when it is sent.
    fn demote_queued_prompt(&mut self, prompt: &mut [Entry]) {
        let queued = mem::take(&mut self.queued);
        if queued.contains(prompt_text(prompt).as_str()) {
            let texts = prompt.iter_mut().filter(|entry| entry.kind == EntryKind::Text);
            texts.for_each(|entry| entry.kind = EntryKind::Notice);
        }
    }

    /// Decodes an attachment: a prompt queued while the model worked, or added context.
    fn decode_attachment(&mut self, mut line: ClaudeLine<'_>) -> Vec<Entry> {
        let LenientValue::Object(attachment) = mem::take(&mut line.record.attachment) else {
            return vec![unknown_entry(line.raw)];
        };
        let attachment = *attachment;
        if attachment.kind.text() == Some("queued_command") {
            let is_prompt = prompt::is_queued_prompt(&attachment);
            let kind = if is_prompt { EntryKind::Text } else { EntryKind::Notice };
            let mut entries =
                blocks::decode_user_blocks(attachment.prompt, kind, &ClaudeToolCalls::default());
            if is_prompt && attachment.origin.is_absent() {
                self.queued.insert(prompt_text(&entries).as_str());
            }
            if entries.len() > 1 {
                entries.iter_mut().for_each(|entry| entry.message_id = Some(prompt_id(&line)));
            }
            return entries;
        }
        let text = attachment.text.into_text();
        let text = text.unwrap_or_else(|| blocks::flatten_content(attachment.content));
        let mut entry = Entry::new(Role::System, EntryKind::Notice, text);
        entry.metadata = Some(fields_beyond_envelope(line.raw));
        vec![entry]
    }
}

/// The text of a prompt, however it is split into blocks.
fn prompt_text(entries: &[Entry]) -> String {
    let texts = entries.iter().filter(|entry| entry.kind == EntryKind::Text);
    texts.map(|entry| entry.content.trim()).collect::<Vec<_>>().join("\n")
}

fn is_skipped(record: &ClaudeRecord<'_>) -> bool {
    let is_queue = record.kind() == "queue-operation" && record.operation.text() != Some("enqueue");
    is_queue || SKIPPED_TYPES.contains(&record.kind())
}

fn take_message<'a>(record: &mut ClaudeRecord<'a>) -> Option<ClaudeMessage<'a>> {
    match mem::take(&mut record.message) {
        LenientValue::Object(message) => Some(*message),
        _ => None,
    }
}

/// The message id of a message without one: the record's UUID or line number.
fn fallback_message_id(line: &ClaudeLine<'_>) -> String {
    line.record.uuid.owned_text().unwrap_or_else(|| format!("line-{}", line.number))
}

/// The message id of a prompt with several blocks. It includes the line number, so that a repeated record counts
/// as another prompt, as a repeated prompt of one block does.
fn prompt_id(line: &ClaudeLine<'_>) -> String {
    format!("{} line {}", fallback_message_id(line), line.number)
}

/// Decodes a `system` record.
fn decode_system(line: ClaudeLine<'_>) -> Entry {
    let kind = match line.record.subtype.text() {
        Some("compact_boundary") => EntryKind::Compaction,
        Some("api_error" | "error") => EntryKind::Error,
        _ => EntryKind::Notice,
    };
    let mut entry = Entry::new(Role::System, kind, blocks::flatten_content(line.record.content));
    entry.metadata = Some(fields_beyond_envelope(line.raw));
    entry
}

fn link_notice(url: Option<&str>) -> Entry {
    Entry::new(Role::System, EntryKind::Notice, url.unwrap_or_default())
}

/// The entry of a record of unknown type. Its metadata is the whole record.
fn unknown_entry(raw: &[u8]) -> Entry {
    let mut entry = Entry::new(Role::System, EntryKind::Other, "");
    entry.metadata = Some(record::parse_object(raw));
    entry
}

fn fields_beyond_envelope(raw: &[u8]) -> Object {
    let mut object = record::parse_object(raw);
    object.retain(|name, _| !ENVELOPE_FIELDS.contains(&name.as_str()));
    object
}
