//! Handles responses: each completes the entry of its request.

use super::super::block;
use super::terminal::Terminal;
use super::{Asked, Fold};
use crate::agent::fields;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

impl Fold {
    /// Handles the response to a request.
    pub(super) fn answer(&mut self, request: Asked, result: Result<&Value, &Value>) {
        let object = result.ok().and_then(Value::as_object);
        match (request.method.as_str(), result) {
            ("session/prompt", Err(error)) => self.failed(error),
            ("session/prompt", Ok(_)) => self.prompted(&request, object),
            ("session/request_permission", Ok(outcome)) => self.decided(&request, outcome),
            ("initialize", Ok(_)) => {
                let field = |name| object.and_then(|object| object.get(name));
                self.tell("version", field("protocolVersion"));
                self.tell("agent", field("agentInfo").or(field("info")));
            }
            ("session/new" | "session/load" | "session/resume" | "session/fork", Ok(_)) => {
                self.begun(object);
            }
            ("terminal/output", Ok(_)) => self.terminal_output(&request, object),
            ("fs/read_text_file", Ok(_)) => self.served(&request, "content", object),
            ("terminal/create", Ok(_)) => self.served(&request, "terminalId", object),
            (_, Err(error)) => self.refused(&request, error),
            _ => {}
        }
    }

    /// The entry made for a request, unless it was dropped as repeated.
    fn telling(&mut self, request: &Asked) -> Option<&mut Entry> {
        let at = request.entry.filter(|at| !self.repeated.contains(at))?;
        self.entries.get_mut(at)
    }

    fn failed(&mut self, error: &Value) {
        let mut entry = Entry::new(Role::System, Kind::Error, said(error));
        entry.metadata = error.as_object().cloned();
        self.push(entry);
        self.end_turn(None);
    }

    /// Handles the response to a prompt. In version 2 it only acknowledges the prompt and does not end the turn.
    fn prompted(&mut self, request: &Asked, result: Option<&Object>) {
        let Some(result) = result else { return };
        if let Some(id) = fields::text(result, "messageId")
            && let Some(entry) = self.telling(request)
        {
            entry.message_id = Some(id.to_owned());
            self.learn_message_id(request.entry, id);
        }
        if result.contains_key("stopReason") {
            self.end_turn(Some(result));
        }
    }

    /// Writes the outcome of a permission request into its entry.
    fn decided(&mut self, request: &Asked, result: &Value) {
        let outcome = result.get("outcome").unwrap_or(result);
        let chosen = outcome.get("optionId");
        let options = fields::list(&request.params, "options").iter();
        let option = options
            .filter_map(Value::as_object)
            .find(|option| chosen.is_some() && option.get("optionId") == chosen);
        let text = match option {
            Some(option) => {
                let kind = fields::text(option, "kind").unwrap_or("selected");
                let name = fields::text(option, "name").unwrap_or_default();
                format!("{}: {name}", kind.replace('_', " "))
            }
            None => fields::filled(outcome, "outcome").unwrap_or("answered").to_owned(),
        };
        let waited = request
            .at
            .zip(self.at)
            .map(|(sent, now)| now.instant().as_millisecond() - sent.instant().as_millisecond());
        let Some(entry) = self.telling(request) else { return };
        entry.content = text;
        if let Some(Value::Object(about)) =
            entry.metadata.get_or_insert_default().get_mut("permission")
        {
            about.insert("result".to_owned(), result.clone());
            about.extend(waited.map(|waited| ("waited_ms".to_owned(), waited.into())));
        }
    }

    /// Notes the session id and the model from the response.
    fn begun(&mut self, result: Option<&Object>) {
        let Some(result) = result else { return };
        let id = fields::text(result, "sessionId").map(str::to_owned);
        self.facts.native_id = id.or(self.facts.native_id.take());
        let models = fields::object(result, "models");
        let model = models.and_then(|models| fields::text(models, "currentModelId"));
        self.model = model.map(str::to_owned).or(self.model.take());
        self.options(result);
    }

    fn terminal_output(&mut self, request: &Asked, result: Option<&Object>) {
        let output = result.and_then(|result| fields::text(result, "output"));
        if let (Some(id), Some(output)) = (fields::text(&request.params, "terminalId"), output) {
            self.terminals.insert(id.to_owned(), Terminal::of(output));
        }
    }

    /// Stores the result of a client request in the metadata of its entry.
    fn served(&mut self, request: &Asked, field: &str, result: Option<&Object>) {
        let value = result.and_then(|result| result.get(field));
        if let Some(value) = value
            && let Some(entry) = self.telling(request)
        {
            let about = entry.metadata.get_or_insert_default();
            about.insert("result".to_owned(), block::texts(value).into());
        }
    }

    fn refused(&mut self, request: &Asked, error: &Value) {
        let Some(entry) = self.telling(request) else { return };
        entry.content = format!("{}: {}", entry.content, said(error));
        entry.metadata.get_or_insert_default().insert("error".to_owned(), error.clone());
    }
}

/// The message of an error object, or the object as JSON.
fn said(error: &Value) -> String {
    fields::filled(error, "message").map_or_else(|| error.to_string(), str::to_owned)
}
