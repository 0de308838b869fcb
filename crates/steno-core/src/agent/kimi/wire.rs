//! One agent's wire log as entries.

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

/// The model gets a prompt soon after it was typed; of more than these the oldest are forgotten.
const AWAITED_PROMPTS: usize = 100;

/// Tells of one log. What a step of the model says is held until its end, which tells what it took.
pub(super) struct Wire<'t, 'a> {
    telling: &'t mut Telling<'a>,
    model: Option<String>,
    /// Prompts that were told, and that the model has not got yet.
    prompts: Vec<String>,
    step: Option<Vec<Entry>>,
}

impl<'t, 'a> Wire<'t, 'a> {
    pub(super) fn new(telling: &'t mut Telling<'a>) -> Self {
        Self { telling, model: None, prompts: Vec::new(), step: None }
    }

    pub(super) fn read(mut self, source: &Source) -> Result<(), FileError> {
        each_object(source, |object, line| match object {
            Ok(object) => self.tell(object, line),
            Err(problem) => self.telling.problem(problem),
        })?;
        self.end_step();
        Ok(())
    }

    fn tell(&mut self, object: Object, line: u64) {
        let at = fields::time(&object, "time").or_else(|| fields::time(&object, "created_at"));
        self.telling.time(at);
        for mut entry in self.entries(object) {
            entry.created_at = at;
            entry.message_id = entry.message_id.or_else(|| Some(format!("line {line}")));
            if entry.role == Role::Assistant {
                entry.model.clone_from(&self.model);
            }
            match &mut self.step {
                Some(held) => held.push(entry),
                None => self.telling.entry(entry),
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
        if let (Some(folder), PRIMARY) = (fields::text(object, "cwd"), &*self.telling.speaker) {
            self.telling.session.project.get_or_insert_with(|| folder.to_owned());
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

    /// What was added to the model's context; a prompt that was told is not told again.
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

    /// Ends a step with what it took.
    fn bill(&mut self, event: &Object, at: Option<Timestamp>) {
        let mut held = self.step.take().unwrap_or_default();
        let answers = |entry: &&mut Entry| entry.role == Role::Assistant;
        if !held.iter_mut().any(|entry| answers(&entry)) {
            let mut silence = Entry::new(Role::Assistant, Kind::Text, "");
            silence.message_id = fields::text(event, "uuid").map(str::to_owned);
            silence.created_at = at;
            silence.model.clone_from(&self.model);
            held.push(silence);
        }
        if let Some(answer) = held.iter_mut().find(answers) {
            answer.usage = fields::object(event, "usage").map(usage);
        }
        self.step = Some(held);
        self.end_step();
    }

    fn end_step(&mut self) {
        for entry in self.step.take().unwrap_or_default() {
            self.telling.entry(entry);
        }
    }
}

/// Whether a person typed it.
fn is_typed(object: &Object) -> bool {
    let origin = fields::object(object, "origin");
    origin.is_none_or(|origin| fields::text(origin, "kind") == Some("user"))
}

fn said(content: &[Value]) -> String {
    content.iter().map(|part| block(part, &Role::User).content).collect::<Vec<_>>().join("\n")
}

pub(super) fn blocks(content: &[Value], role: &Role, spoken: bool) -> Vec<Entry> {
    let mut entries: Vec<_> = content.iter().map(|part| block(part, role)).collect();
    for entry in entries.iter_mut().filter(|entry| entry.kind == Kind::Text && !spoken) {
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

/// What stands for a file that is linked, or that its link holds.
fn linked(url: &str) -> String {
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((mime, data)) => attachment::media(Some(mime), data),
        None => format!("[{url}]"),
    }
}

fn result(event: &Object) -> Entry {
    let result = fields::object(event, "result");
    let output = result.and_then(|result| result.get("output"));
    let failed = result.and_then(|result| result.get("isError")?.as_bool()) == Some(true);
    let content = match output {
        Some(Value::Array(parts)) => said(parts),
        Some(output) => record::said(output),
        None => String::new(),
    };
    entries::tool_result(fields::text(event, "toolCallId"), content, failed)
}

fn compaction(mut object: Object) -> Vec<Entry> {
    let summary = object.shift_remove("summary").map(|summary| record::said(&summary));
    let mut seam = Entry::new(Role::System, Kind::Compaction, "");
    seam.metadata = Some(object);
    vec![seam, Entry::new(Role::User, Kind::Notice, summary.unwrap_or_default())]
}

/// What was spent outside of steps, such as on a compaction; steps tell theirs themselves.
fn spent(object: Object) -> Vec<Entry> {
    if fields::text(&object, "usageScope") != Some("session") {
        return Vec::new();
    }
    let usage = fields::object(&object, "usage").map(usage);
    let mut entry = entries::unknown(object);
    entry.usage = usage;
    vec![entry]
}

fn usage(stated: &Object) -> Usage {
    let count = |field| fields::count(stated, field);
    Usage {
        input: count("inputOther"),
        cache_read: count("inputCacheRead"),
        cache_write: count("inputCacheCreation"),
        output: count("output"),
        ..Usage::default()
    }
}
