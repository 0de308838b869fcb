//! Decodes one agent's wire log into entries.

use crate::decoding::json_lines::for_each_object;
use crate::decoding::session_emitter::SessionEmitter;
use crate::decoding::{attachment, entries, json_fields, json_records};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role, Usage};
use steno_model::json::{Object, Value};
use steno_model::timestamp::Timestamp;
use steno_vault::SessionFile;

/// How many typed prompts are remembered until they are sent to the model. The oldest are dropped.
const MAX_PENDING_PROMPTS: usize = 100;

/// Decodes one log. The entries of a step are held until its end, which has the usage.
pub(super) struct KimiWireDecoder<'t, 'a> {
    emitter: &'t mut SessionEmitter<'a>,
    model: Option<String>,
    /// Emitted prompts that the model has not received yet.
    prompts: Vec<String>,
    step: Option<Vec<Entry>>,
}

impl<'t, 'a> KimiWireDecoder<'t, 'a> {
    pub(super) fn new(emitter: &'t mut SessionEmitter<'a>) -> Self {
        Self { emitter, model: None, prompts: Vec::new(), step: None }
    }

    pub(super) fn read_log(mut self, source: &SessionFile) -> Result<(), FileError> {
        for_each_object(source, |object, line| match object {
            Ok(object) => self.decode_record(object, line),
            Err(problem) => self.emitter.emit_problem(problem),
        })?;
        self.end_step();
        Ok(())
    }

    fn decode_record(&mut self, object: Object, line: u64) {
        let at = json_fields::time_field(&object, "time")
            .or_else(|| json_fields::time_field(&object, "created_at"));
        self.emitter.note_time(at);
        for mut entry in self.decode_entries(object) {
            entry.created_at = at;
            entry.message_id = entry.message_id.or_else(|| Some(format!("line {line}")));
            if entry.role == Role::Assistant {
                entry.model.clone_from(&self.model);
            }
            match &mut self.step {
                Some(held) => held.push(entry),
                None => self.emitter.emit_entry(entry),
            }
        }
    }

    fn decode_entries(&mut self, object: Object) -> Vec<Entry> {
        match json_fields::text_field(&object, "type").unwrap_or_default() {
            "metadata" | "full_compaction.begin" | "full_compaction.complete" => Vec::new(),
            "config.update" | "profile.bind" => self.apply_config(&object),
            "llm.request" => {
                self.model = json_fields::text_field(&object, "model").map(str::to_owned);
                Vec::new()
            }
            "turn.prompt" | "turn.steer" => self.decode_prompt(&object),
            "context.append_message" => self.decode_message(&object),
            "context.append_loop_event" => match json_fields::object_field(&object, "event") {
                Some(event) => self.decode_event(event, json_fields::time_field(&object, "time")),
                None => vec![entries::unknown_entry(object)],
            },
            "context.apply_compaction" => compaction_entries(object),
            "turn.cancel" => vec![Entry::new(Role::User, EntryKind::Notice, "turn cancelled")],
            "usage.record" => decode_usage_record(object),
            _ => vec![entries::unknown_entry(object)],
        }
    }

    fn apply_config(&mut self, object: &Object) -> Vec<Entry> {
        if let (Some(folder), PRIMARY_SOURCE) =
            (json_fields::text_field(object, "cwd"), &*self.emitter.source)
        {
            self.emitter.session.project.get_or_insert_with(|| folder.to_owned());
        }
        let prompt = json_fields::text_field(object, "systemPrompt");
        prompt.map(|text| Entry::new(Role::System, EntryKind::Text, text)).into_iter().collect()
    }

    fn decode_prompt(&mut self, object: &Object) -> Vec<Entry> {
        self.end_step();
        let content = json_fields::list_field(object, "input");
        if self.prompts.len() == MAX_PENDING_PROMPTS {
            self.prompts.remove(0);
        }
        self.prompts.push(parts_text(content));
        decode_blocks(content, &Role::User, is_typed(object))
    }

    /// Decodes a message added to the model's context, unless it is an emitted prompt.
    fn decode_message(&mut self, object: &Object) -> Vec<Entry> {
        let Some(message) = json_fields::object_field(object, "message") else {
            return vec![entries::unknown_entry(object.clone())];
        };
        let content = json_fields::list_field(message, "content");
        let text = parts_text(content);
        if let Some(at) = self.prompts.iter().position(|prompt| *prompt == text) {
            self.prompts.remove(at);
            return Vec::new();
        }
        let role = Role::from(json_fields::text_field(message, "role").unwrap_or("user"));
        decode_blocks(content, &role, role == Role::Assistant || is_typed(message))
    }

    fn decode_event(&mut self, event: &Object, at: Option<Timestamp>) -> Vec<Entry> {
        let text = |field| json_fields::text_field(event, field);
        let mut entries = match text("type") {
            Some("step.begin") => {
                self.end_step();
                self.step = Some(Vec::new());
                return Vec::new();
            }
            Some("step.end") => {
                self.end_step_with_usage(event, at);
                return Vec::new();
            }
            Some("content.part") => event
                .get("part")
                .map(|part| decode_block(part, &Role::Assistant))
                .into_iter()
                .collect(),
            Some("tool.call") => {
                vec![entries::tool_call(text("name"), text("toolCallId"), event.get("args"))]
            }
            Some("tool.result") => vec![decode_tool_result(event)],
            _ => vec![entries::unknown_entry(event.clone())],
        };
        for entry in &mut entries {
            entry.message_id = text("stepUuid").map(str::to_owned);
        }
        entries
    }

    /// Assigns the usage of a step to its first assistant entry, and ends the step.
    fn end_step_with_usage(&mut self, event: &Object, at: Option<Timestamp>) {
        let mut held = self.step.take().unwrap_or_default();
        let is_answer = |entry: &&mut Entry| entry.role == Role::Assistant;
        if !held.iter_mut().any(|entry| is_answer(&entry)) {
            let mut empty_answer = Entry::new(Role::Assistant, EntryKind::Text, "");
            empty_answer.message_id = json_fields::text_field(event, "uuid").map(str::to_owned);
            empty_answer.created_at = at;
            empty_answer.model.clone_from(&self.model);
            held.push(empty_answer);
        }
        if let Some(answer) = held.iter_mut().find(is_answer) {
            answer.usage = json_fields::object_field(event, "usage").map(parse_usage);
        }
        self.step = Some(held);
        self.end_step();
    }

    fn end_step(&mut self) {
        for entry in self.step.take().unwrap_or_default() {
            self.emitter.emit_entry(entry);
        }
    }
}

/// Whether a person typed the message.
fn is_typed(object: &Object) -> bool {
    let origin = json_fields::object_field(object, "origin");
    origin.is_none_or(|origin| json_fields::text_field(origin, "kind") == Some("user"))
}

fn parts_text(content: &[Value]) -> String {
    content
        .iter()
        .map(|part| decode_block(part, &Role::User).content)
        .collect::<Vec<_>>()
        .join("\n")
}

pub(super) fn decode_blocks(content: &[Value], role: &Role, is_spoken: bool) -> Vec<Entry> {
    let mut entries: Vec<_> = content.iter().map(|part| decode_block(part, role)).collect();
    for entry in entries.iter_mut().filter(|entry| entry.kind == EntryKind::Text && !is_spoken) {
        entry.kind = EntryKind::Notice;
    }
    entries
}

fn decode_block(part: &Value, role: &Role) -> Entry {
    let Some(object) = part.as_object() else {
        return Entry::new(role.clone(), EntryKind::Text, json_records::value_text(part));
    };
    let text = |field| json_fields::text_field(object, field);
    match (text("type"), object.values().find_map(|value| value.get("url")?.as_str())) {
        (Some("text"), _) => {
            Entry::new(role.clone(), EntryKind::Text, text("text").unwrap_or_default())
        }
        (Some("think"), _) => {
            Entry::new(role.clone(), EntryKind::Thinking, text("think").unwrap_or_default())
        }
        (_, Some(url)) => Entry::new(role.clone(), EntryKind::Text, describe_link(url)),
        _ => entries::unknown_entry(object.clone()),
    }
}

/// Describes a linked file, or the file in a `data:` URL.
fn describe_link(url: &str) -> String {
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((mime, data)) => attachment::describe_base64(Some(mime), data),
        None => format!("[{url}]"),
    }
}

fn decode_tool_result(event: &Object) -> Entry {
    let result = json_fields::object_field(event, "result");
    let output = result.and_then(|result| result.get("output"));
    let is_error = result.and_then(|result| result.get("isError")?.as_bool()) == Some(true);
    let content = match output {
        Some(Value::Array(parts)) => parts_text(parts),
        Some(output) => json_records::value_text(output),
        None => String::new(),
    };
    entries::tool_result(json_fields::text_field(event, "toolCallId"), content, is_error)
}

fn compaction_entries(mut object: Object) -> Vec<Entry> {
    let summary = object.shift_remove("summary").map(|summary| json_records::value_text(&summary));
    let mut boundary = Entry::new(Role::System, EntryKind::Compaction, "");
    boundary.metadata = Some(object);
    vec![boundary, Entry::new(Role::User, EntryKind::Notice, summary.unwrap_or_default())]
}

/// Decodes usage outside of steps, such as that of a compaction. Steps report their own usage.
fn decode_usage_record(object: Object) -> Vec<Entry> {
    if json_fields::text_field(&object, "usageScope") != Some("session") {
        return Vec::new();
    }
    let usage = json_fields::object_field(&object, "usage").map(parse_usage);
    let mut entry = entries::unknown_entry(object);
    entry.usage = usage;
    vec![entry]
}

fn parse_usage(tokens: &Object) -> Usage {
    let count = |field| json_fields::count_field(tokens, field);
    Usage {
        input: count("inputOther"),
        cache_read: count("inputCacheRead"),
        cache_write: count("inputCacheCreation"),
        output: count("output"),
        ..Usage::default()
    }
}
