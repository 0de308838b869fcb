//! Handles responses: each completes the entry of its request.

use super::super::content_block;
use super::terminal::AcpTerminal;
use super::{AcpConversationBuilder, PendingRequest};
use crate::decoding::json_fields;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

impl AcpConversationBuilder {
    /// Handles the response to a request.
    pub(super) fn handle_response(
        &mut self,
        request: PendingRequest,
        result: Result<&Value, &Value>,
    ) {
        let object = result.ok().and_then(Value::as_object);
        match (request.method.as_str(), result) {
            ("session/prompt", Err(error)) => self.fail_prompt(error),
            ("session/prompt", Ok(_)) => self.finish_prompt(&request, object),
            ("session/request_permission", Ok(outcome)) => self.record_decision(&request, outcome),
            ("initialize", Ok(_)) => {
                let field = |name| object.and_then(|object| object.get(name));
                self.note_detail("version", field("protocolVersion"));
                self.note_detail("agent", field("agentInfo").or(field("info")));
            }
            ("session/new" | "session/load" | "session/resume" | "session/fork", Ok(_)) => {
                self.record_session(object);
            }
            ("terminal/output", Ok(_)) => self.record_terminal_output(&request, object),
            ("fs/read_text_file", Ok(_)) => self.record_client_result(&request, "content", object),
            ("terminal/create", Ok(_)) => self.record_client_result(&request, "terminalId", object),
            (_, Err(error)) => self.record_request_error(&request, error),
            _ => {}
        }
    }

    /// The entry made for a request, unless it was dropped as repeated.
    fn request_entry(&mut self, request: &PendingRequest) -> Option<&mut Entry> {
        let at = request.entry.filter(|at| !self.repeated.contains(at))?;
        self.entries.get_mut(at)
    }

    fn fail_prompt(&mut self, error: &Value) {
        let mut entry = Entry::new(Role::System, EntryKind::Error, error_message(error));
        entry.metadata = error.as_object().cloned();
        self.push_entry(entry);
        self.end_turn(None);
    }

    /// Handles the response to a prompt. In version 2 it only acknowledges the prompt and does not end the turn.
    fn finish_prompt(&mut self, request: &PendingRequest, result: Option<&Object>) {
        let Some(result) = result else { return };
        if let Some(id) = json_fields::text_field(result, "messageId")
            && let Some(entry) = self.request_entry(request)
        {
            entry.message_id = Some(id.to_owned());
            self.learn_message_id(request.entry, id);
        }
        if result.contains_key("stopReason") {
            self.end_turn(Some(result));
        }
    }

    /// Writes the outcome of a permission request into its entry.
    fn record_decision(&mut self, request: &PendingRequest, result: &Value) {
        let outcome = result.get("outcome").unwrap_or(result);
        let chosen = outcome.get("optionId");
        let options = json_fields::list_field(&request.params, "options").iter();
        let option = options
            .filter_map(Value::as_object)
            .find(|option| chosen.is_some() && option.get("optionId") == chosen);
        let text = match option {
            Some(option) => {
                let kind = json_fields::text_field(option, "kind").unwrap_or("selected");
                let name = json_fields::text_field(option, "name").unwrap_or_default();
                format!("{}: {name}", kind.replace('_', " "))
            }
            None => json_fields::nonempty_text(outcome, "outcome").unwrap_or("answered").to_owned(),
        };
        let waited = request
            .at
            .zip(self.at)
            .map(|(sent, now)| now.instant().as_millisecond() - sent.instant().as_millisecond());
        let Some(entry) = self.request_entry(request) else { return };
        entry.content = text;
        if let Some(Value::Object(about)) =
            entry.metadata.get_or_insert_default().get_mut("permission")
        {
            about.insert("result".to_owned(), result.clone());
            about.extend(waited.map(|waited| ("waited_ms".to_owned(), waited.into())));
        }
    }

    /// Notes the session id and the model from the response.
    fn record_session(&mut self, result: Option<&Object>) {
        let Some(result) = result else { return };
        let id = json_fields::text_field(result, "sessionId").map(str::to_owned);
        self.facts.native_id = id.or(self.facts.native_id.take());
        let models = json_fields::object_field(result, "models");
        let model = models.and_then(|models| json_fields::text_field(models, "currentModelId"));
        self.model = model.map(str::to_owned).or(self.model.take());
        self.note_model_option(result);
    }

    fn record_terminal_output(&mut self, request: &PendingRequest, result: Option<&Object>) {
        let output = result.and_then(|result| json_fields::text_field(result, "output"));
        if let (Some(id), Some(output)) =
            (json_fields::text_field(&request.params, "terminalId"), output)
        {
            self.terminals.insert(id.to_owned(), AcpTerminal::from_text(output));
        }
    }

    /// Stores the result of a client request in the metadata of its entry.
    fn record_client_result(
        &mut self,
        request: &PendingRequest,
        field: &str,
        result: Option<&Object>,
    ) {
        let value = result.and_then(|result| result.get(field));
        if let Some(value) = value
            && let Some(entry) = self.request_entry(request)
        {
            let about = entry.metadata.get_or_insert_default();
            about.insert("result".to_owned(), content_block::blocks_text(value).into());
        }
    }

    fn record_request_error(&mut self, request: &PendingRequest, error: &Value) {
        let Some(entry) = self.request_entry(request) else { return };
        entry.content = format!("{}: {}", entry.content, error_message(error));
        entry.metadata.get_or_insert_default().insert("error".to_owned(), error.clone());
    }
}

/// The message of an error object, or the object as JSON.
fn error_message(error: &Value) -> String {
    json_fields::nonempty_text(error, "message").map_or_else(|| error.to_string(), str::to_owned)
}
