//! Decodes one request of a chat: the prompt and the answer.

use std::collections::VecDeque;

use crate::agent::entries;
use crate::agent::fields;
use crate::agent::record;
use crate::agent::telling::Telling;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

/// Emits the entries of a request.
pub(super) fn tell(emitter: &mut Telling<'_>, request: &Object) {
    let at = fields::time(request, "timestamp");
    emitter.time(at);
    let id = fields::text(request, "requestId").map(str::to_owned);
    let answer_id = fields::text(request, "responseId").map(str::to_owned);
    let answer_id = answer_id.or_else(|| id.as_ref().map(|id| format!("{id} answer")));
    let model = fields::text(request, "modelId");
    let mut prompt = Entry::new(Role::User, Kind::Text, prompt_text(request));
    prompt.message_id = id;
    prompt.created_at = at;
    emitter.entry(prompt);
    for mut entry in answer(request) {
        entry.message_id.clone_from(&answer_id);
        entry.created_at = at;
        entry.model = model.filter(|_| entry.role == Role::Assistant).map(str::to_owned);
        emitter.entry(entry);
    }
}

fn prompt_text(request: &Object) -> String {
    match request.get("message") {
        Some(Value::Object(message)) => {
            fields::text(message, "text").unwrap_or_default().to_owned()
        }
        Some(text) => record::said(text),
        None => String::new(),
    }
}

fn answer(request: &Object) -> Vec<Entry> {
    let result = fields::object(request, "result");
    let metadata = result.and_then(|result| fields::object(result, "metadata"));
    let mut answer = Answer { calls: calls(metadata), ..Answer::default() };
    answer.from_rounds = !answer.calls.is_empty();
    let results = metadata.and_then(|metadata| fields::object(metadata, "toolCallResults"));
    for part in fields::list(request, "response") {
        answer.part(part, results);
    }
    answer.end_text();
    while let Some(call) = answer.calls.pop_front() {
        answer.call(call, results);
    }
    if let Some(details) = result.and_then(|result| fields::object(result, "errorDetails")) {
        let message = fields::text(details, "message").unwrap_or_default();
        answer.entries.push(Entry::new(Role::System, Kind::Error, message));
    }
    answer.entries
}

/// The tool calls of the model, from all rounds.
fn calls(metadata: Option<&Object>) -> VecDeque<&Object> {
    let rounds = metadata.map_or(&[][..], |metadata| fields::list(metadata, "toolCallRounds"));
    let rounds = rounds.iter().filter_map(Value::as_object);
    rounds.flat_map(|round| fields::list(round, "toolCalls")).filter_map(Value::as_object).collect()
}

#[derive(Default)]
struct Answer<'a> {
    entries: Vec<Entry>,
    /// Markdown chunks and references, joined until another part follows.
    text: String,
    /// Calls without an entry yet.
    calls: VecDeque<&'a Object>,
    /// Whether calls come from the rounds. Otherwise they come from the parts shown in the chat.
    from_rounds: bool,
}

impl<'a> Answer<'a> {
    fn part(&mut self, value: &'a Value, results: Option<&Object>) {
        if let Some(text) = value.as_str() {
            self.text.push_str(text);
        }
        let Some(part) = value.as_object() else { return };
        let kind = fields::text(part, "kind");
        match kind {
            None | Some("markdownContent") => self.text.push_str(&markdown(part)),
            Some("inlineReference") => self.text.push_str(&reference(part)),
            _ => self.end_text(),
        }
        match kind {
            Some("thinking") => {
                let thought = part.get("value").map(record::said).unwrap_or_default();
                if !thought.is_empty() {
                    self.entries.push(Entry::new(Role::Assistant, Kind::Thinking, thought));
                }
            }
            Some("toolInvocationSerialized") => self.invocation(part, results),
            None | Some("markdownContent" | "inlineReference" | "undoStop" | "codeblockUri") => {}
            Some(_) => self.entries.push(entries::unknown(part.clone())),
        }
    }

    /// Adds a call shown in the chat. The round's record of the call is preferred, because it is complete.
    fn invocation(&mut self, shown: &'a Object, results: Option<&Object>) {
        if !self.from_rounds {
            let id = fields::text(shown, "toolCallId");
            let mut call = entries::tool_call(fields::text(shown, "toolId"), id, None);
            call.metadata = Some(shown.clone());
            return self.entries.push(call);
        }
        let id = fields::text(shown, "toolCallId");
        let same =
            self.calls.iter().position(|call| id.is_some() && fields::text(call, "id") == id);
        if let Some(call) = self.calls.remove(same.unwrap_or(0)) {
            self.call(call, results);
        }
    }

    fn call(&mut self, call: &Object, results: Option<&Object>) {
        let id = fields::text(call, "id");
        let input = match fields::text(call, "arguments").map(serde_json::from_str::<Value>) {
            Some(Ok(input)) => Some(input),
            _ => call.get("arguments").cloned(),
        };
        self.entries.push(entries::tool_call(fields::text(call, "name"), id, input.as_ref()));
        let result = id.and_then(|id| fields::object(results?, id));
        if let Some(result) = result {
            let content = result.get("content").map(record::said).unwrap_or_default();
            let mut entry = entries::tool_result(id, content, false);
            entry.tool_name = fields::text(call, "name").map(str::to_owned);
            self.entries.push(entry);
        }
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.entries.push(Entry::new(Role::Assistant, Kind::Text, text));
        }
    }
}

fn markdown(part: &Object) -> String {
    let content = fields::object(part, "content").unwrap_or(part);
    match content.get("value") {
        Some(Value::Object(inner)) => fields::text(inner, "value").unwrap_or_default().to_owned(),
        Some(value) => record::said(value),
        None => String::new(),
    }
}

/// The name of a file or symbol that the text refers to.
fn reference(part: &Object) -> String {
    let target = fields::object(part, "inlineReference");
    let name = fields::text(part, "name").or_else(|| fields::text(target?, "name"));
    let path = target.and_then(|target| {
        let location = fields::object(target, "uri").or(fields::object(target, "location"));
        fields::text(location.unwrap_or(target), "path")
    });
    let last = path.and_then(|path| path.rsplit('/').next());
    name.or(last).map(|name| format!("`{name}`")).unwrap_or_default()
}
