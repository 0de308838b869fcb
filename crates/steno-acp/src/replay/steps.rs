//! Turns entries into the updates that an agent sends: the reverse of parsing a recorded connection.

use std::collections::HashSet;

use serde_json::{Value, json};
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role};
use steno_model::json::Object;

use super::script::{ScriptAction, ScriptStep, ToolCondition, UsedMessageIds, is_failure};

/// The most chunks of one text.
const MAX_CHUNKS: usize = 64;

/// The shortest chunk, in bytes.
const MIN_CHUNK_BYTES: usize = 64;

/// Builds the steps of a script.
pub(super) struct StepBuilder {
    steps: Vec<ScriptStep>,
    used_ids: UsedMessageIds,
    /// The model of the last entry.
    model: Option<String>,
    /// Tool calls that have a result.
    answered: HashSet<String>,
    /// The last tool call, for results without an id.
    last_call: String,
    call_count: usize,
    /// The condition of the next steps.
    condition: Option<ToolCondition>,
}

/// The metadata field of a message that holds a tool, and the text to send instead if that tool was denied.
const IF_DENIED: &str = "if_denied";

impl StepBuilder {
    pub(super) fn new(model: Option<String>, answered: HashSet<String>) -> Self {
        let (steps, used_ids, last_call) = (Vec::new(), UsedMessageIds::new(), String::new());
        Self { steps, used_ids, model, answered, last_call, call_count: 0, condition: None }
    }

    /// The steps of the finished turn.
    pub(super) fn take_steps(&mut self) -> Vec<ScriptStep> {
        std::mem::take(&mut self.steps)
    }

    /// Adds the steps of an entry.
    pub(super) fn add_entry(&mut self, entry: &Entry) {
        self.push_model_change(entry);
        match (entry.kind, &entry.role) {
            (EntryKind::ToolCall, _) => self.push_tool_call(entry),
            (EntryKind::ToolResult, _) => self.push_tool_result(entry),
            (EntryKind::Error, _) if entry.tool_call_id.is_some() => self.push_tool_result(entry),
            _ if entry.source != PRIMARY_SOURCE || is_failure(entry) => {}
            (EntryKind::Text, Role::Assistant) => self.push_conditional_text(entry),
            (EntryKind::Thinking, _) => self.push_text("agent_thought_chunk", entry),
            (EntryKind::Compaction, _) => self.push_compaction(entry),
            (EntryKind::Notice, _) => self.push_notice(entry),
            (EntryKind::Other, _) => self.push_other(entry),
            _ => {}
        }
    }

    fn push_update(&mut self, entry: &Entry, update: Value) {
        let (at, condition) = (entry.created_at, self.condition.clone());
        self.steps.push(ScriptStep { at, action: ScriptAction::Update(update), condition });
    }

    /// Adds a message, or two if the message has another text for a denied tool.
    fn push_conditional_text(&mut self, entry: &Entry) {
        let other = entry.metadata.as_ref().and_then(|metadata| metadata.get(IF_DENIED));
        let text = |name: &str| other?.get(name)?.as_str();
        let Some((tool, content)) = text("tool").zip(text("content")) else {
            return self.push_text("agent_message_chunk", entry);
        };
        let denied = Entry { content: content.to_owned(), ..entry.clone() };
        for (entry, is_denied) in [(entry, false), (&denied, true)] {
            self.condition = Some(ToolCondition { tool: tool.to_owned(), is_denied });
            self.push_text("agent_message_chunk", entry);
        }
        self.condition = None;
    }

    /// Adds a model change, unless a `_meta` field reports it.
    fn push_model_change(&mut self, entry: &Entry) {
        let Some(model) = entry.model.as_ref().filter(|_| entry.model != self.model) else {
            return;
        };
        let is_told = meta_values(entry).iter().any(|meta| meta.get("_claude/model").is_some());
        if is_told {
            return;
        }
        self.model = Some(model.clone());
        let option = json!({
            "id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": model, "options": [{ "value": model, "name": model }],
        });
        let update = json!({ "sessionUpdate": "config_option_update", "configOptions": [option] });
        self.push_update(entry, update);
    }

    fn push_text(&mut self, kind: &str, entry: &Entry) {
        let metas = meta_values(entry);
        if entry.content.is_empty() && metas.is_empty() {
            return;
        }
        let id = self.unique_message_id(entry);
        let chunk = |text: &str, meta: Option<&Value>| {
            let content = json!({ "type": "text", "text": text });
            let mut chunk = json!({ "sessionUpdate": kind, "content": content });
            let fields = [("messageId", id.clone().map(Value::from)), ("_meta", meta.cloned())];
            insert_fields(&mut chunk, fields);
            chunk
        };
        let mut metas = metas.iter();
        for piece in text_chunks(&entry.content) {
            let chunk = chunk(piece, metas.next());
            self.push_update(entry, chunk);
        }
        for meta in metas {
            let chunk = chunk("", Some(meta));
            self.push_update(entry, chunk);
        }
    }

    /// An unused message id. A message without an id gets one only if it would merge with the message before it.
    fn unique_message_id(&mut self, entry: &Entry) -> Option<String> {
        let key = |id: String| (entry.role.clone(), entry.kind, id);
        let Some(id) = entry.message_id.clone() else {
            let follows = self.steps.last().is_some_and(|step| is_chunk_of(step, entry.kind));
            return follows.then(|| entry.entry_id.to_string());
        };
        let names = (2..).map(|number| format!("{id}-{number}"));
        let free = std::iter::once(id.clone())
            .chain(names)
            .find(|id| !self.used_ids.contains(&key(id.clone())));
        let id = free.unwrap_or(id);
        self.used_ids.insert(key(id.clone()));
        Some(id)
    }

    fn push_tool_call(&mut self, entry: &Entry) {
        self.call_count += 1;
        self.last_call =
            entry.tool_call_id.clone().unwrap_or_else(|| format!("call-{}", self.call_count));
        if entry.source == PRIMARY_SOURCE
            && let Some(message) = entry.text_beside_call()
        {
            let mut text = entry.clone();
            text.content = message.to_owned();
            self.push_text("agent_message_chunk", &text);
        }
        let about = entry.metadata.clone().unwrap_or_default();
        let field = |name: &str| about.get(name).cloned();
        let name = entry.tool_name.clone().unwrap_or_else(|| "tool".to_owned());
        let mut call = json!({
            "sessionUpdate": "tool_call",
            "toolCallId": self.last_call,
            "title": field("title").unwrap_or_else(|| tool_title(&name, entry).into()),
            "name": name,
            "kind": field("kind").unwrap_or_else(|| tool_kind(&name).into()),
            "status": "pending",
        });
        let mut metas = meta_values(entry);
        if metas.is_empty()
            && let Some(parent) = entry.source.strip_prefix("subagent:")
        {
            metas.push(json!({ "claudeCode": { "parentToolUseId": parent } }));
        }
        let mut metas = metas.into_iter();
        let input = entry.tool_input.clone();
        let fields =
            [("rawInput", input), ("locations", field("locations")), ("_meta", metas.next())];
        insert_fields(&mut call, fields);
        self.push_update(entry, call);
        for meta in metas {
            let id = &self.last_call;
            let more =
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "_meta": meta });
            self.push_update(entry, more);
        }
        self.push_unfinished_status(entry, field("status"));
    }

    /// A tool call without a result keeps its last status.
    fn push_unfinished_status(&mut self, entry: &Entry, status: Option<Value>) {
        let is_answered = entry.tool_call_id.as_ref().is_none_or(|id| self.answered.contains(id));
        let status = status.filter(|status| status == "in_progress" && !is_answered);
        if let Some(status) = status {
            let id = &self.last_call;
            let update =
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status });
            self.push_update(entry, update);
        }
    }

    fn push_tool_result(&mut self, entry: &Entry) {
        let id = entry.tool_call_id.as_ref().unwrap_or(&self.last_call);
        let status = if entry.is_tool_error() { "failed" } else { "completed" };
        let mut update =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status });
        let text = json!({ "type": "text", "text": entry.content });
        let content = json!([{ "type": "content", "content": text }]);
        insert_fields(
            &mut update,
            [("content", Some(content).filter(|_| !entry.content.is_empty()))],
        );
        self.push_update(entry, update);
    }

    fn push_compaction(&mut self, entry: &Entry) {
        let mut update = json!({ "sessionUpdate": "compaction_update", "status": "completed" });
        let id = entry.message_id.clone().unwrap_or_else(|| entry.entry_id.to_string());
        let summary = json!([{ "type": "text", "text": entry.content }]);
        let summary = Some(summary).filter(|_| !entry.content.is_empty());
        insert_fields(&mut update, [("compactionId", Some(id.into())), ("summary", summary)]);
        if let Some(update) = update.as_object_mut() {
            let fields = entry.metadata.iter().flatten();
            let known = ["compactionId", "status", "summary", "error", "_meta"];
            let fields = fields.filter(|(name, _)| known.contains(&name.as_str()));
            update.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
        }
        self.push_update(entry, update);
    }

    fn push_notice(&mut self, entry: &Entry) {
        let about = entry.metadata.as_ref();
        let object_field = |name| about.and_then(|about| about.get(name)?.as_object()).cloned();
        if let Some(mut request) = object_field("permission") {
            request.shift_remove("result");
            request.shift_remove("waited_ms");
            let id = entry.tool_call_id.as_ref().unwrap_or(&self.last_call);
            request.insert("toolCall".to_owned(), json!({ "toolCallId": id }));
            let (at, action) = (entry.created_at, ScriptAction::RequestPermission(request));
            self.steps.push(ScriptStep { at, action, condition: None });
        }
        for kind in ["plan", "notice"] {
            if let Some(body) = object_field(kind) {
                self.push_update(entry, update_of_kind(kind, body));
            }
        }
    }

    /// Repeats an update of an unknown kind as it was recorded.
    fn push_other(&mut self, entry: &Entry) {
        let known = entry.metadata.as_ref().filter(|about| about.contains_key("sessionUpdate"));
        if let Some(update) = known {
            self.push_update(entry, Value::Object(update.clone()));
        }
    }
}

/// An update of this kind.
fn update_of_kind(kind: &str, body: Object) -> Value {
    let kind = [("sessionUpdate".to_owned(), kind.into())];
    Value::Object(kind.into_iter().chain(body).collect())
}

fn insert_fields<const N: usize>(object: &mut Value, fields: [(&str, Option<Value>); N]) {
    if let Some(object) = object.as_object_mut() {
        let present =
            fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        object.extend(present);
    }
}

/// The `_meta` values of an entry.
fn meta_values(entry: &Entry) -> Vec<Value> {
    match entry.metadata.as_ref().and_then(|about| about.get("_meta")) {
        Some(Value::Array(metas)) => metas.clone(),
        Some(meta @ Value::Object(_)) => vec![meta.clone()],
        _ => Vec::new(),
    }
}

fn is_chunk_of(step: &ScriptStep, kind: EntryKind) -> bool {
    let expected = match kind {
        EntryKind::Thinking => "agent_thought_chunk",
        _ => "agent_message_chunk",
    };
    matches!(&step.action, ScriptAction::Update(update) if update["sessionUpdate"] == expected)
}

/// Splits a text into chunks, as a model streams it.
fn text_chunks(text: &str) -> Vec<&str> {
    let size = MIN_CHUNK_BYTES.max(text.len() / MAX_CHUNKS);
    let (mut pieces, mut rest) = (Vec::new(), text);
    while rest.len() > size {
        let at = (0..=size).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(0);
        let at = rest[..at].rfind(char::is_whitespace).filter(|at| *at > 0).unwrap_or(at);
        let (piece, more) = rest.split_at(at);
        pieces.push(piece);
        rest = more;
    }
    pieces.push(rest);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// The title of a tool call, for agents that sent none.
fn tool_title(name: &str, entry: &Entry) -> String {
    let input = entry.tool_input.as_ref().and_then(Value::as_object);
    let telling = ["command", "cmd", "file_path", "path", "pattern", "url", "query"];
    let what = telling.iter().find_map(|field| input?.get(*field)?.as_str());
    what.map_or_else(|| name.to_owned(), |what| format!("{name} {what}"))
}

/// The protocol's kind of a tool, guessed from its name.
fn tool_kind(name: &str) -> &'static str {
    let name = name.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match () {
        () if has(&["bash", "shell", "exec", "terminal", "run"]) => "execute",
        () if has(&["edit", "write", "patch", "replace", "create"]) => "edit",
        () if has(&["grep", "glob", "search", "find", "list", "ls"]) => "search",
        () if has(&["read", "view", "cat", "open"]) => "read",
        () if has(&["fetch", "web", "http", "url"]) => "fetch",
        () if has(&["think", "task", "agent", "todo", "plan"]) => "think",
        () => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_concatenate_to_the_text() {
        for text in ["", "short", &"word ".repeat(900), &"é".repeat(500), &"x".repeat(10_000)] {
            let pieces = text_chunks(text);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.len() <= MAX_CHUNKS * 2 + 1, "{}", pieces.len());
        }
    }
}
