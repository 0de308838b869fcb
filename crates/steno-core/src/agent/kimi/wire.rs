//! Decodes one agent's wire log into entries.

use crate::agent::attachment;
use crate::agent::entries;
use crate::agent::fields;
use crate::agent::json_lines::each_object;
use crate::agent::record;
use crate::agent::telling::Telling;
use crate::durable::FileError;
use crate::entry::{Entry, Kind, PRIMARY, Role, Usage};
use crate::json::{Object, Value};
use crate::timestamp::Timestamp;
use steno_vault::Source;

/// How many typed prompts are remembered until they are sent to the model. The oldest are dropped.
const AWAITED_PROMPTS: usize = 100;

/// Decodes one log. The entries of a step are held until its end, which has the usage.
pub(super) struct Wire<'t, 'a> {
    emitter: &'t mut Telling<'a>,
    model: Option<String>,
    /// Emitted prompts that the model has not received yet.
    prompts: Vec<String>,
    step: Option<Vec<Entry>>,
}

impl<'t, 'a> Wire<'t, 'a> {
    pub(super) fn new(emitter: &'t mut Telling<'a>) -> Self {
        Self { emitter, model: None, prompts: Vec::new(), step: None }
    }

    pub(super) fn read(mut self, source: &Source) -> Result<(), FileError> {
        each_object(source, |object, line| match object {
            Ok(object) => self.tell(object, line),
            Err(problem) => self.emitter.problem(problem),
        })?;
        self.end_step();
        Ok(())
    }

    fn tell(&mut self, object: Object, line: u64) {
        let at = fields::time(&object, "time").or_else(|| fields::time(&object, "created_at"));
        self.emitter.time(at);
        for mut entry in self.entries(object) {
            entry.created_at = at;
            entry.message_id = entry.message_id.or_else(|| Some(format!("line {line}")));
            if entry.role == Role::Assistant {
                entry.model.clone_from(&self.model);
            }
            match &mut self.step {
                Some(held) => held.push(entry),
                None => self.emitter.entry(entry),
            }
        }
    }

    fn entries(&mut self, object: Object) -> Vec<Entry> {
        match fields::text(&object, "type").unwrap_or_default() {
            "metadata" | "full_compaction.begin" | "full_compaction.complete" => Vec::new(),
            "config.update" | "profile.bind" => self.configure(&object),
            "llm.request" => {
                self.model = fields::text(&object, "model").map(str::to_owned);
                Vec::new()
            }
            "turn.prompt" | "turn.steer" => self.prompt(&object),
            "context.append_message" => self.message(&object),
            "context.append_loop_event" => match fields::object(&object, "event") {
                Some(event) => self.event(event, fields::time(&object, "time")),
                None => vec![entries::unknown(object)],
            },
            "context.apply_compaction" => compaction(object),
            "turn.cancel" => vec![Entry::new(Role::User, Kind::Notice, "turn cancelled")],
            "usage.record" => spent(object),
            _ => vec![entries::unknown(object)],
        }
    }

    fn configure(&mut self, object: &Object) -> Vec<Entry> {
        if let (Some(folder), PRIMARY) = (fields::text(object, "cwd"), &*self.emitter.speaker) {
            self.emitter.session.project.get_or_insert_with(|| folder.to_owned());
        }
        let prompt = fields::text(object, "systemPrompt");
        prompt.map(|text| Entry::new(Role::System, Kind::Text, text)).into_iter().collect()
    }

    fn prompt(&mut self, object: &Object) -> Vec<Entry> {
        self.end_step();
        let content = fields::list(object, "input");
        if self.prompts.len() == AWAITED_PROMPTS {
            self.prompts.remove(0);
        }
        self.prompts.push(said(content));
        blocks(content, &Role::User, is_typed(object))
    }

    /// Decodes a message added to the model's context, unless it is an emitted prompt.
    fn message(&mut self, object: &Object) -> Vec<Entry> {
        let Some(message) = fields::object(object, "message") else {
            return vec![entries::unknown(object.clone())];
        };
        let content = fields::list(message, "content");
        let text = said(content);
        if let Some(at) = self.prompts.iter().position(|prompt| *prompt == text) {
            self.prompts.remove(at);
            return Vec::new();
        }
        let role = Role::from(fields::text(message, "role").unwrap_or("user"));
        blocks(content, &role, role == Role::Assistant || is_typed(message))
    }

    fn event(&mut self, event: &Object, at: Option<Timestamp>) -> Vec<Entry> {
        let text = |field| fields::text(event, field);
        let mut entries = match text("type") {
            Some("step.begin") => {
                self.end_step();
                self.step = Some(Vec::new());
                return Vec::new();
            }
            Some("step.end") => {
                self.bill(event, at);
                return Vec::new();
            }
            Some("content.part") => {
                event.get("part").map(|part| block(part, &Role::Assistant)).into_iter().collect()
            }
            Some("tool.call") => {
                vec![entries::tool_call(text("name"), text("toolCallId"), event.get("args"))]
            }
            Some("tool.result") => vec![result(event)],
            _ => vec![entries::unknown(event.clone())],
        };
        for entry in &mut entries {
            entry.message_id = text("stepUuid").map(str::to_owned);
        }
        entries
    }

    /// Assigns the usage of a step to its first assistant entry, and ends the step.
    fn bill(&mut self, event: &Object, at: Option<Timestamp>) {
        let mut held = self.step.take().unwrap_or_default();
        let is_answer = |entry: &&mut Entry| entry.role == Role::Assistant;
        if !held.iter_mut().any(|entry| is_answer(&entry)) {
            let mut empty_answer = Entry::new(Role::Assistant, Kind::Text, "");
            empty_answer.message_id = fields::text(event, "uuid").map(str::to_owned);
            empty_answer.created_at = at;
            empty_answer.model.clone_from(&self.model);
            held.push(empty_answer);
        }
        if let Some(answer) = held.iter_mut().find(is_answer) {
            answer.usage = fields::object(event, "usage").map(usage);
        }
        self.step = Some(held);
        self.end_step();
    }

    fn end_step(&mut self) {
        for entry in self.step.take().unwrap_or_default() {
            self.emitter.entry(entry);
        }
    }
}

/// Whether a person typed the message.
fn is_typed(object: &Object) -> bool {
    let origin = fields::object(object, "origin");
    origin.is_none_or(|origin| fields::text(origin, "kind") == Some("user"))
}

fn said(content: &[Value]) -> String {
    content.iter().map(|part| block(part, &Role::User).content).collect::<Vec<_>>().join("\n")
}

pub(super) fn blocks(content: &[Value], role: &Role, is_spoken: bool) -> Vec<Entry> {
    let mut entries: Vec<_> = content.iter().map(|part| block(part, role)).collect();
    for entry in entries.iter_mut().filter(|entry| entry.kind == Kind::Text && !is_spoken) {
        entry.kind = Kind::Notice;
    }
    entries
}

fn block(part: &Value, role: &Role) -> Entry {
    let Some(object) = part.as_object() else {
        return Entry::new(role.clone(), Kind::Text, record::said(part));
    };
    let text = |field| fields::text(object, field);
    match (text("type"), object.values().find_map(|value| value.get("url")?.as_str())) {
        (Some("text"), _) => Entry::new(role.clone(), Kind::Text, text("text").unwrap_or_default()),
        (Some("think"), _) => {
            Entry::new(role.clone(), Kind::Thinking, text("think").unwrap_or_default())
        }
        (_, Some(url)) => Entry::new(role.clone(), Kind::Text, linked(url)),
        _ => entries::unknown(object.clone()),
    }
}

/// Describes a linked file, or the file in a `data:` URL.
fn linked(url: &str) -> String {
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((mime, data)) => attachment::media(Some(mime), data),
        None => format!("[{url}]"),
    }
}

fn result(event: &Object) -> Entry {
    let result = fields::object(event, "result");
    let output = result.and_then(|result| result.get("output"));
    let is_error = result.and_then(|result| result.get("isError")?.as_bool()) == Some(true);
    let content = match output {
        Some(Value::Array(parts)) => said(parts),
        Some(output) => record::said(output),
        None => String::new(),
    };
    entries::tool_result(fields::text(event, "toolCallId"), content, is_error)
}

fn compaction(mut object: Object) -> Vec<Entry> {
    let summary = object.shift_remove("summary").map(|summary| record::said(&summary));
    let mut boundary = Entry::new(Role::System, Kind::Compaction, "");
    boundary.metadata = Some(object);
    vec![boundary, Entry::new(Role::User, Kind::Notice, summary.unwrap_or_default())]
}

/// Decodes usage outside of steps, such as that of a compaction. Steps report their own usage.
fn spent(object: Object) -> Vec<Entry> {
    if fields::text(&object, "usageScope") != Some("session") {
        return Vec::new();
    }
    let usage = fields::object(&object, "usage").map(usage);
    let mut entry = entries::unknown(object);
    entry.usage = usage;
    vec![entry]
}

fn usage(tokens: &Object) -> Usage {
    let count = |field| fields::count(tokens, field);
    Usage {
        input: count("inputOther"),
        cache_read: count("inputCacheRead"),
        cache_write: count("inputCacheCreation"),
        output: count("output"),
        ..Usage::default()
    }
}
