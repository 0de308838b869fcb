//! What an agent tells, made of entries: the reverse of the fold.

use std::collections::HashSet;

use serde_json::{Value, json};
use steno_core::entry::{Entry, Kind, PRIMARY, Role};
use steno_core::json::Object;

use super::script::{Act, Step, Told, ToolCondition, is_failure};

/// Pieces into which a text is cut at most, as models write them.
const PIECES: usize = 64;

/// Letters of a piece at least.
const PIECE: usize = 64;

/// Steps that are being made.
pub(super) struct Steps {
    steps: Vec<Step>,
    told: Told,
    /// The model that was named last.
    model: Option<String>,
    /// Tools that have an answer.
    answered: HashSet<String>,
    /// The tool that was called last, for answers that name none.
    call: String,
    calls: usize,
    /// What the steps that are being made depend on.
    condition: Option<ToolCondition>,
}

/// Beside a message: a tool, and what is said instead where that was denied.
const IF_DENIED: &str = "if_denied";

impl Steps {
    pub(super) fn new(model: Option<String>, answered: HashSet<String>) -> Self {
        let (steps, told, call) = (Vec::new(), Told::new(), String::new());
        Self { steps, told, model, answered, call, calls: 0, condition: None }
    }

    /// The steps of a turn that is over.
    pub(super) fn take(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    /// Adds what an entry tells.
    pub(super) fn add(&mut self, entry: &Entry) {
        self.name_model(entry);
        match (entry.kind, &entry.role) {
            (Kind::ToolCall, _) => self.tool_call(entry),
            (Kind::ToolResult, _) => self.tool_result(entry),
            (Kind::Error, _) if entry.tool_call_id.is_some() => self.tool_result(entry),
            _ if entry.source != PRIMARY || is_failure(entry) => {}
            (Kind::Text, Role::Assistant) => self.say_as_permitted(entry),
            (Kind::Thinking, _) => self.say("agent_thought_chunk", entry),
            (Kind::Compaction, _) => self.compaction(entry),
            (Kind::Notice, _) => self.notice(entry),
            (Kind::Other, _) => self.other(entry),
            _ => {}
        }
    }

    fn update(&mut self, entry: &Entry, update: Value) {
        let (at, condition) = (entry.created_at, self.condition.clone());
        self.steps.push(Step { at, act: Act::Update(update), condition });
    }

    /// Says a message, or what stands beside it for the case that a tool was denied.
    fn say_as_permitted(&mut self, entry: &Entry) {
        let other = entry.metadata.as_ref().and_then(|metadata| metadata.get(IF_DENIED));
        let text = |name: &str| other?.get(name)?.as_str();
        let Some((tool, content)) = text("tool").zip(text("content")) else {
            return self.say("agent_message_chunk", entry);
        };
        let denied = Entry { content: content.to_owned(), ..entry.clone() };
        for (entry, is_denied) in [(entry, false), (&denied, true)] {
            self.condition = Some(ToolCondition { tool: tool.to_owned(), is_denied });
            self.say("agent_message_chunk", entry);
        }
        self.condition = None;
    }

    /// Names the model where it changes and nothing else tells.
    fn name_model(&mut self, entry: &Entry) {
        let Some(model) = entry.model.as_ref().filter(|_| entry.model != self.model) else {
            return;
        };
        let is_told = metas(entry).iter().any(|meta| meta.get("_claude/model").is_some());
        if is_told {
            return;
        }
        self.model = Some(model.clone());
        let option = json!({
            "id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": model, "options": [{ "value": model, "name": model }],
        });
        let update = json!({ "sessionUpdate": "config_option_update", "configOptions": [option] });
        self.update(entry, update);
    }

    fn say(&mut self, kind: &str, entry: &Entry) {
        let metas = metas(entry);
        if entry.content.is_empty() && metas.is_empty() {
            return;
        }
        let id = self.message_id(entry);
        let chunk = |text: &str, meta: Option<&Value>| {
            let content = json!({ "type": "text", "text": text });
            let mut chunk = json!({ "sessionUpdate": kind, "content": content });
            let fields = [("messageId", id.clone().map(Value::from)), ("_meta", meta.cloned())];
            fill(&mut chunk, fields);
            chunk
        };
        let mut metas = metas.iter();
        for piece in pieces(&entry.content) {
            let chunk = chunk(piece, metas.next());
            self.update(entry, chunk);
        }
        for meta in metas {
            let chunk = chunk("", Some(meta));
            self.update(entry, chunk);
        }
    }

    /// The name of a message, which none before it has; one without a name gets one where it would run into another.
    fn message_id(&mut self, entry: &Entry) -> Option<String> {
        let key = |id: String| (entry.role.clone(), entry.kind, id);
        let Some(id) = entry.message_id.clone() else {
            let follows = self.steps.last().is_some_and(|step| is_chunk_of(step, entry.kind));
            return follows.then(|| entry.entry_id.to_string());
        };
        let names = (2..).map(|number| format!("{id}-{number}"));
        let free = std::iter::once(id.clone())
            .chain(names)
            .find(|id| !self.told.contains(&key(id.clone())));
        let id = free.unwrap_or(id);
        self.told.insert(key(id.clone()));
        Some(id)
    }

    fn tool_call(&mut self, entry: &Entry) {
        self.calls += 1;
        self.call = entry.tool_call_id.clone().unwrap_or_else(|| format!("call-{}", self.calls));
        if entry.source == PRIMARY
            && let Some(said) = entry.said_with_call()
        {
            let mut text = entry.clone();
            text.content = said.to_owned();
            self.say("agent_message_chunk", &text);
        }
        let about = entry.metadata.clone().unwrap_or_default();
        let field = |name: &str| about.get(name).cloned();
        let name = entry.tool_name.clone().unwrap_or_else(|| "tool".to_owned());
        let mut call = json!({
            "sessionUpdate": "tool_call",
            "toolCallId": self.call,
            "title": field("title").unwrap_or_else(|| title(&name, entry).into()),
            "name": name,
            "kind": field("kind").unwrap_or_else(|| kind(&name).into()),
            "status": "pending",
        });
        let mut metas = metas(entry);
        if metas.is_empty()
            && let Some(parent) = entry.source.strip_prefix("subagent:")
        {
            metas.push(json!({ "claudeCode": { "parentToolUseId": parent } }));
        }
        let mut metas = metas.into_iter();
        let input = entry.tool_input.clone();
        let fields =
            [("rawInput", input), ("locations", field("locations")), ("_meta", metas.next())];
        fill(&mut call, fields);
        self.update(entry, call);
        for meta in metas {
            let id = &self.call;
            let more =
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "_meta": meta });
            self.update(entry, more);
        }
        self.leave_undone(entry, field("status"));
    }

    /// A tool that never answered stays as far as it came.
    fn leave_undone(&mut self, entry: &Entry, status: Option<Value>) {
        let is_answered = entry.tool_call_id.as_ref().is_none_or(|id| self.answered.contains(id));
        let status = status.filter(|status| status == "in_progress" && !is_answered);
        if let Some(status) = status {
            let id = &self.call;
            let update =
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status });
            self.update(entry, update);
        }
    }

    fn tool_result(&mut self, entry: &Entry) {
        let id = entry.tool_call_id.as_ref().unwrap_or(&self.call);
        let status = if entry.is_tool_error() { "failed" } else { "completed" };
        let mut update =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status });
        let text = json!({ "type": "text", "text": entry.content });
        let content = json!([{ "type": "content", "content": text }]);
        fill(&mut update, [("content", Some(content).filter(|_| !entry.content.is_empty()))]);
        self.update(entry, update);
    }

    fn compaction(&mut self, entry: &Entry) {
        let mut update = json!({ "sessionUpdate": "compaction_update", "status": "completed" });
        let id = entry.message_id.clone().unwrap_or_else(|| entry.entry_id.to_string());
        let summary = json!([{ "type": "text", "text": entry.content }]);
        let summary = Some(summary).filter(|_| !entry.content.is_empty());
        fill(&mut update, [("compactionId", Some(id.into())), ("summary", summary)]);
        if let Some(update) = update.as_object_mut() {
            let told = entry.metadata.iter().flatten();
            let known = ["compactionId", "status", "summary", "error", "_meta"];
            let told = told.filter(|(name, _)| known.contains(&name.as_str()));
            update.extend(told.map(|(name, value)| (name.clone(), value.clone())));
        }
        self.update(entry, update);
    }

    fn notice(&mut self, entry: &Entry) {
        let about = entry.metadata.as_ref();
        let told = |name| about.and_then(|about| about.get(name)?.as_object()).cloned();
        if let Some(mut request) = told("permission") {
            request.shift_remove("result");
            request.shift_remove("waited_ms");
            let id = entry.tool_call_id.as_ref().unwrap_or(&self.call);
            request.insert("toolCall".to_owned(), json!({ "toolCallId": id }));
            let (at, act) = (entry.created_at, Act::Ask(request));
            self.steps.push(Step { at, act, condition: None });
        }
        for kind in ["plan", "notice"] {
            if let Some(body) = told(kind) {
                self.update(entry, kinded(kind, body));
            }
        }
    }

    /// What nobody knew is told as it came.
    fn other(&mut self, entry: &Entry) {
        let known = entry.metadata.as_ref().filter(|about| about.contains_key("sessionUpdate"));
        if let Some(update) = known {
            self.update(entry, Value::Object(update.clone()));
        }
    }
}

/// An update with its kind in front.
fn kinded(kind: &str, body: Object) -> Value {
    let kind = [("sessionUpdate".to_owned(), kind.into())];
    Value::Object(kind.into_iter().chain(body).collect())
}

fn fill<const N: usize>(object: &mut Value, fields: [(&str, Option<Value>); N]) {
    if let Some(object) = object.as_object_mut() {
        let told = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        object.extend(told);
    }
}

/// What was told beside an entry.
fn metas(entry: &Entry) -> Vec<Value> {
    match entry.metadata.as_ref().and_then(|about| about.get("_meta")) {
        Some(Value::Array(metas)) => metas.clone(),
        Some(meta @ Value::Object(_)) => vec![meta.clone()],
        _ => Vec::new(),
    }
}

fn is_chunk_of(step: &Step, kind: Kind) -> bool {
    let wanted = match kind {
        Kind::Thinking => "agent_thought_chunk",
        _ => "agent_message_chunk",
    };
    matches!(&step.act, Act::Update(update) if update["sessionUpdate"] == wanted)
}

/// A text in pieces as a model would write it.
fn pieces(text: &str) -> Vec<&str> {
    let size = PIECE.max(text.len() / PIECES);
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

/// What a tool is called on a screen, where nobody has said.
fn title(name: &str, entry: &Entry) -> String {
    let input = entry.tool_input.as_ref().and_then(Value::as_object);
    let telling = ["command", "cmd", "file_path", "path", "pattern", "url", "query"];
    let what = telling.iter().find_map(|field| input?.get(*field)?.as_str());
    what.map_or_else(|| name.to_owned(), |what| format!("{name} {what}"))
}

/// The kind of a tool in the words of the protocol, told by its name.
fn kind(name: &str) -> &'static str {
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
    fn pieces_make_the_whole() {
        for text in ["", "short", &"word ".repeat(900), &"é".repeat(500), &"x".repeat(10_000)] {
            let pieces = pieces(text);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.len() <= PIECES * 2 + 1, "{}", pieces.len());
        }
    }
}
