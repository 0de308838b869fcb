//! Translates OpenAI's Realtime API into the Responses API: user messages since the last response become its input,
//! transcripts replace audio, and `response.done` ends a response.

use serde_json::json;

use super::socket_exchanges::SocketStep;
use crate::decoding::json_fields::{list_field, object_field, text_field};
use steno_model::json::{Object, Value};

/// The state of a realtime connection.
#[derive(Clone, Debug, Default)]
pub(super) struct RealtimeConversation {
    model: Option<String>,
    instructions: Option<String>,
    /// User messages and tool results since the last response began.
    input: Vec<Value>,
    /// Audio bytes from the client since the last commit.
    audio_bytes: u64,
    /// Whether the user's audio is transcribed.
    is_transcribed: bool,
    /// Ids of user messages without a transcript yet.
    untranscribed: Vec<String>,
    /// Events held back until those transcripts arrive.
    held_events: Vec<Object>,
    /// The id of the previous response.
    previous_response_id: Option<String>,
    is_answering: bool,
}

impl RealtimeConversation {
    /// A connection opened at a path, which may name the model.
    pub(super) fn new(path: &str) -> Self {
        let query = path.split_once('?').map_or("", |(_, query)| query);
        let model = query.split('&').find_map(|pair| pair.strip_prefix("model="));
        Self { model: model.map(str::to_owned), ..Self::default() }
    }

    /// Handles a client message. `omitted` is the number of audio bytes stripped from it.
    pub(super) fn handle_client_message(&mut self, message: &str, omitted: u64) -> Vec<SocketStep> {
        let Ok(event) = serde_json::from_str::<Object>(message) else { return Vec::new() };
        match text_field(&event, "type").unwrap_or_default() {
            "session.update" => self.update_session(&event),
            "input_audio_buffer.append" => self.audio_bytes += omitted,
            "input_audio_buffer.clear" => self.audio_bytes = 0,
            "conversation.item.create" => {
                self.input.extend(
                    object_field(&event, "item").map(|item| replace_item_audio(item, omitted)),
                );
            }
            "response.create" => {
                let input =
                    object_field(&event, "response").map(|response| list_field(response, "input"));
                let items = input.into_iter().flatten().filter_map(Value::as_object);
                self.input.extend(items.map(|item| replace_item_audio(item, 0)));
            }
            _ => {}
        }
        Vec::new()
    }

    /// Handles a server message.
    pub(super) fn handle_server_message(
        &mut self,
        message: &str,
        _omitted: u64,
    ) -> Vec<SocketStep> {
        let Ok(event) = serde_json::from_str::<Object>(message) else { return Vec::new() };
        let kind = text_field(&event, "type").unwrap_or_default();
        let transcription = kind.strip_prefix("conversation.item.input_audio_transcription.");
        match (kind, transcription) {
            ("session.created" | "session.updated", _) => {
                self.update_session(&event);
                Vec::new()
            }
            ("input_audio_buffer.committed", _) => {
                self.commit_audio(text_field(&event, "item_id").unwrap_or_default());
                Vec::new()
            }
            (_, Some("completed")) => {
                self.apply_transcript(&event, text_field(&event, "transcript"))
            }
            (_, Some("failed")) => self.apply_transcript(&event, None),
            ("error", _) => self.handle_error(event),
            _ if kind.starts_with("response.") => self.handle_response_event(event),
            _ => Vec::new(),
        }
    }

    /// Returns the remaining steps when the connection ends.
    pub(super) fn finish(&mut self) -> Vec<SocketStep> {
        self.untranscribed.clear();
        let mut steps = self.release_held_events();
        if !self.input.is_empty() {
            let mut body = self.build_request();
            body.insert("generate".to_owned(), Value::Bool(false));
            steps.extend([SocketStep::Request(body), SocketStep::End]);
        }
        steps
    }

    fn update_session(&mut self, event: &Object) {
        let Some(session) = object_field(event, "session") else { return };
        let session_field = |field: &str| text_field(session, field).map(str::to_owned);
        self.model = session_field("model").or(self.model.take());
        self.instructions = session_field("instructions").or(self.instructions.take());
        let input = object_field(session, "audio").and_then(|audio| object_field(audio, "input"));
        let settings = input.and_then(|input| input.get("transcription"));
        if let Some(settings) = settings.or(session.get("input_audio_transcription")) {
            self.is_transcribed = settings.is_object();
        }
    }

    /// Adds the committed audio as a user message.
    fn commit_audio(&mut self, id: &str) {
        let sound = audio_placeholder(std::mem::take(&mut self.audio_bytes));
        self.input.push(user_message(id, &sound));
        if self.is_transcribed {
            self.untranscribed.push(id.to_owned());
        }
    }

    fn apply_transcript(&mut self, event: &Object, transcript: Option<&str>) -> Vec<SocketStep> {
        let id = text_field(event, "item_id").unwrap_or_default();
        self.untranscribed.retain(|waiting| waiting != id);
        let known = self.input.iter_mut().find(|item| item["id"] == id);
        match (known, transcript) {
            (Some(item), Some(transcript)) => *item = user_message(id, transcript.trim()),
            (None, Some(transcript)) => self.input.push(user_message(id, transcript.trim())),
            (_, None) => {}
        }
        if self.untranscribed.is_empty() { self.release_held_events() } else { Vec::new() }
    }

    fn release_held_events(&mut self) -> Vec<SocketStep> {
        let held = std::mem::take(&mut self.held_events);
        held.into_iter().flat_map(|event| self.handle_response_event(event)).collect()
    }

    fn handle_response_event(&mut self, mut event: Object) -> Vec<SocketStep> {
        if !self.untranscribed.is_empty() && !self.is_answering {
            self.held_events.push(event);
            return Vec::new();
        }
        let kind = text_field(&event, "type").unwrap_or_default().to_owned();
        let mut steps = Vec::new();
        if !self.is_answering {
            self.is_answering = true;
            steps.push(SocketStep::Request(self.build_request()));
        }
        match kind.as_str() {
            "response.done" => {
                self.is_answering = false;
                let id = object_field(&event, "response")
                    .and_then(|response| text_field(response, "id"));
                self.previous_response_id =
                    id.map(str::to_owned).or(self.previous_response_id.take());
                self.normalize_response(&mut event);
                steps
                    .extend([SocketStep::Event(Value::Object(event).to_string()), SocketStep::End]);
            }
            // Audio itself is not recorded.
            "response.output_audio.delta" | "response.audio.delta" => {}
            _ => {
                normalize_event(&mut event, &kind);
                steps.push(SocketStep::Event(Value::Object(event).to_string()));
            }
        }
        steps
    }

    /// Most errors do not end the current response, so they become exchanges of their own.
    fn handle_error(&mut self, event: Object) -> Vec<SocketStep> {
        let input = std::mem::take(&mut self.input);
        let mut body = self.build_request();
        self.input = input;
        body.insert("generate".to_owned(), Value::Bool(false));
        vec![SocketStep::Failure(body, Value::Object(event).to_string())]
    }

    /// Builds the request of the next response from the input so far.
    fn build_request(&mut self) -> Object {
        let input = std::mem::take(&mut self.input);
        let mut body = Object::new();
        let mut add = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body.insert(name.to_owned(), value);
            }
        };
        add("model", self.model.clone().map(Value::from));
        add("instructions", self.instructions.clone().map(Value::from));
        add("previous_response_id", self.previous_response_id.clone().map(Value::from));
        add("input", Some(Value::Array(input)));
        body
    }

    /// Converts `response.done` into the final event of the Responses API.
    fn normalize_response(&self, event: &mut Object) {
        let Some(Value::Object(response)) = event.get_mut("response") else { return };
        let kind = match text_field(response, "status") {
            Some("failed") => "response.failed",
            Some("cancelled" | "incomplete") => "response.incomplete",
            _ => "response.completed",
        };
        if let Some(model) = &self.model {
            response.entry("model").or_insert_with(|| json!(model));
        }
        let details = object_field(response, "status_details").cloned().unwrap_or_default();
        if let Some(reason) = text_field(&details, "reason") {
            let reason = json!({"reason": reason});
            response.insert("incomplete_details".to_owned(), reason);
        }
        if let Some(error) = details.get("error").filter(|error| error.is_object()) {
            response.insert("error".to_owned(), error.clone());
        }
        if let Some(Value::Array(items)) = response.get_mut("output") {
            items.iter_mut().for_each(normalize_item);
        }
        if let Some(Value::Object(usage)) = response.get_mut("usage") {
            for name in ["input", "output"] {
                if let Some(details) = usage.shift_remove(&format!("{name}_token_details")) {
                    usage.insert(format!("{name}_tokens_details"), details);
                }
            }
        }
        event.insert("type".to_owned(), json!(kind));
    }
}

/// Renames an event to its Responses API type.
fn normalize_event(event: &mut Object, kind: &str) {
    let text_deltas = [
        "response.output_audio_transcript.delta",
        "response.audio_transcript.delta",
        "response.text.delta",
    ];
    if text_deltas.contains(&kind) {
        event.insert("type".to_owned(), json!("response.output_text.delta"));
    }
    if let Some(item) = event.get_mut("item") {
        normalize_item(item);
    }
}

/// Replaces audio parts of an item by their transcripts.
fn normalize_item(item: &mut Value) {
    let Some(Value::Array(parts)) = item.get_mut("content") else { return };
    for part in parts.iter_mut().filter_map(Value::as_object_mut) {
        let kind = text_field(part, "type").unwrap_or_default();
        if kind.ends_with("audio") {
            let transcript =
                text_field(part, "transcript").unwrap_or("[audio without a transcript]").to_owned();
            *part = Object::from_iter([
                ("type".to_owned(), json!("output_text")),
                ("text".to_owned(), json!(transcript)),
            ]);
        }
    }
}

/// Replaces audio parts of a client's item by their transcripts or a placeholder.
fn replace_item_audio(item: &Object, omitted: u64) -> Value {
    let mut item = item.clone();
    if let Some(Value::Array(parts)) = item.get_mut("content") {
        for part in parts.iter_mut().filter_map(Value::as_object_mut) {
            if text_field(part, "type").is_some_and(|kind| kind.ends_with("audio")) {
                let transcript = text_field(part, "transcript")
                    .map_or_else(|| audio_placeholder(omitted), str::to_owned);
                *part = Object::from_iter([
                    ("type".to_owned(), json!("input_text")),
                    ("text".to_owned(), json!(transcript)),
                ]);
            }
        }
    }
    Value::Object(item)
}

fn audio_placeholder(bytes: u64) -> String {
    format!("[{bytes} bytes of audio, not recorded]")
}

fn user_message(id: &str, content: &str) -> Value {
    json!({"type": "message", "id": id, "role": "user", "content": [{"type": "input_text", "text": content}]})
}
