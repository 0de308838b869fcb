//! Decodes one request of a chat: the prompt and the answer.

use std::collections::VecDeque;

use crate::decoding::session_emitter::SessionEmitter;
use crate::decoding::{entries, json_fields, json_records};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

/// Emits the entries of a request.
pub(super) fn emit_request(emitter: &mut SessionEmitter<'_>, request: &Object) {
    let at = json_fields::time_field(request, "timestamp");
    emitter.note_time(at);
    let id = json_fields::text_field(request, "requestId").map(str::to_owned);
    let answer_id = json_fields::text_field(request, "responseId").map(str::to_owned);
    let answer_id = answer_id.or_else(|| id.as_ref().map(|id| format!("{id} answer")));
    let model = json_fields::text_field(request, "modelId");
    let mut prompt = Entry::new(Role::User, EntryKind::Text, prompt_text(request));
    prompt.message_id = id;
    prompt.created_at = at;
    emitter.emit_entry(prompt);
    for mut entry in answer_entries(request) {
        entry.message_id.clone_from(&answer_id);
        entry.created_at = at;
        entry.model = model.filter(|_| entry.role == Role::Assistant).map(str::to_owned);
        emitter.emit_entry(entry);
    }
}

fn prompt_text(request: &Object) -> String {
    match request.get("message") {
        Some(Value::Object(message)) => {
            json_fields::text_field(message, "text").unwrap_or_default().to_owned()
        }
        Some(text) => json_records::value_text(text),
        None => String::new(),
    }
}

fn answer_entries(request: &Object) -> Vec<Entry> {
    let result = json_fields::object_field(request, "result");
    let metadata = result.and_then(|result| json_fields::object_field(result, "metadata"));
    let mut answer = ChatAnswer { calls: model_calls(metadata), ..ChatAnswer::default() };
    answer.from_rounds = !answer.calls.is_empty();
    let results =
        metadata.and_then(|metadata| json_fields::object_field(metadata, "toolCallResults"));
    for part in json_fields::list_field(request, "response") {
        answer.add_part(part, results);
    }
    answer.flush_text();
    while let Some(call) = answer.calls.pop_front() {
        answer.add_call(call, results);
    }
    if let Some(details) =
        result.and_then(|result| json_fields::object_field(result, "errorDetails"))
    {
        let message = json_fields::text_field(details, "message").unwrap_or_default();
        answer.entries.push(Entry::new(Role::System, EntryKind::Error, message));
    }
    answer.entries
}

/// The tool calls of the model, from all rounds.
fn model_calls(metadata: Option<&Object>) -> VecDeque<&Object> {
    let rounds =
        metadata.map_or(&[][..], |metadata| json_fields::list_field(metadata, "toolCallRounds"));
    let rounds = rounds.iter().filter_map(Value::as_object);
    rounds
        .flat_map(|round| json_fields::list_field(round, "toolCalls"))
        .filter_map(Value::as_object)
        .collect()
}

#[derive(Default)]
struct ChatAnswer<'a> {
    entries: Vec<Entry>,
    /// Markdown chunks and references, joined until another part follows.
    text: String,
    /// Calls without an entry yet.
    calls: VecDeque<&'a Object>,
    /// Whether calls come from the rounds. Otherwise they come from the parts shown in the chat.
    from_rounds: bool,
}

impl<'a> ChatAnswer<'a> {
    fn add_part(&mut self, value: &'a Value, results: Option<&Object>) {
        if let Some(text) = value.as_str() {
            self.text.push_str(text);
        }
        let Some(part) = value.as_object() else { return };
        let kind = json_fields::text_field(part, "kind");
        match kind {
            None | Some("markdownContent") => self.text.push_str(&markdown_text(part)),
            Some("inlineReference") => self.text.push_str(&reference_text(part)),
            _ => self.flush_text(),
        }
        match kind {
            Some("thinking") => {
                let thought = part.get("value").map(json_records::value_text).unwrap_or_default();
                if !thought.is_empty() {
                    self.entries.push(Entry::new(Role::Assistant, EntryKind::Thinking, thought));
                }
            }
            Some("toolInvocationSerialized") => self.add_invocation(part, results),
            None | Some("markdownContent" | "inlineReference" | "undoStop" | "codeblockUri") => {}
            Some(_) => self.entries.push(entries::unknown_entry(part.clone())),
        }
    }

    /// Adds a call shown in the chat. The round's record of the call is preferred, because it is complete.
    fn add_invocation(&mut self, shown: &'a Object, results: Option<&Object>) {
        if !self.from_rounds {
            let id = json_fields::text_field(shown, "toolCallId");
            let mut call = entries::tool_call(json_fields::text_field(shown, "toolId"), id, None);
            call.metadata = Some(shown.clone());
            return self.entries.push(call);
        }
        let id = json_fields::text_field(shown, "toolCallId");
        let same = self
            .calls
            .iter()
            .position(|call| id.is_some() && json_fields::text_field(call, "id") == id);
        if let Some(call) = self.calls.remove(same.unwrap_or(0)) {
            self.add_call(call, results);
        }
    }

    fn add_call(&mut self, call: &Object, results: Option<&Object>) {
        let id = json_fields::text_field(call, "id");
        let input =
            match json_fields::text_field(call, "arguments").map(serde_json::from_str::<Value>) {
                Some(Ok(input)) => Some(input),
                _ => call.get("arguments").cloned(),
            };
        self.entries.push(entries::tool_call(
            json_fields::text_field(call, "name"),
            id,
            input.as_ref(),
        ));
        let result = id.and_then(|id| json_fields::object_field(results?, id));
        if let Some(result) = result {
            let content = result.get("content").map(json_records::value_text).unwrap_or_default();
            let mut entry = entries::tool_result(id, content, false);
            entry.tool_name = json_fields::text_field(call, "name").map(str::to_owned);
            self.entries.push(entry);
        }
    }

    fn flush_text(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.entries.push(Entry::new(Role::Assistant, EntryKind::Text, text));
        }
    }
}

fn markdown_text(part: &Object) -> String {
    let content = json_fields::object_field(part, "content").unwrap_or(part);
    match content.get("value") {
        Some(Value::Object(inner)) => {
            json_fields::text_field(inner, "value").unwrap_or_default().to_owned()
        }
        Some(value) => json_records::value_text(value),
        None => String::new(),
    }
}

/// The name of a file or symbol that the text refers to.
fn reference_text(part: &Object) -> String {
    let target = json_fields::object_field(part, "inlineReference");
    let name =
        json_fields::text_field(part, "name").or_else(|| json_fields::text_field(target?, "name"));
    let path = target.and_then(|target| {
        let location = json_fields::object_field(target, "uri")
            .or(json_fields::object_field(target, "location"));
        json_fields::text_field(location.unwrap_or(target), "path")
    });
    let last = path.and_then(|path| path.rsplit('/').next());
    name.or(last).map(|name| format!("`{name}`")).unwrap_or_default()
}
