//! Handles requests and notifications of both sides.

use super::super::wire::Side;
use super::super::{PROMPT_MODE, block};
use super::{Fold, about};
use crate::agent::fields;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

/// Methods that make no entry.
const QUIET: [&str; 18] = [
    "authenticate",
    "auth/status",
    "auth/status_update",
    "elicitation/complete",
    "logout",
    "session/archive",
    "session/close",
    "session/delete",
    "session/list",
    "session/set_title",
    "session/status",
    "session/unarchive",
    "providers/disable",
    "providers/list",
    "providers/set",
    "terminal/kill",
    "terminal/output",
    "terminal/release",
];

impl Fold {
    /// Handles a request or notification. Returns the index of its entry.
    pub(super) fn call(&mut self, side: Side, method: &str, params: &Object) -> Option<usize> {
        match (side, method) {
            (Side::Client, "initialize") => {
                self.connected();
                self.tell("client", params.get("clientInfo").or(params.get("info")));
                None
            }
            (Side::Client, "session/new" | "session/load" | "session/resume" | "session/fork") => {
                self.begin(method, params);
                None
            }
            (Side::Client, "session/prompt") => Some(self.prompt(params)),
            (Side::Client, "session/set_mode") => {
                self.set_mode(params.get("modeId"));
                None
            }
            (Side::Client, "session/set_config_option") => {
                let is_mode = fields::text(params, "configId") == Some("mode");
                self.set_mode(params.get("value").filter(|_| is_mode));
                None
            }
            (Side::Client, "session/cancel" | "$/cancel_request") => {
                Some(self.notice(Role::User, "cancelled", meta_of(params)))
            }
            (Side::Agent, "session/update") => {
                self.update(params);
                None
            }
            (Side::Agent, "session/request_permission") => Some(self.permission(params)),
            (Side::Agent, _) if is_service(method) => Some(self.service(method, params)),
            _ if QUIET.contains(&method) || method == "terminal/wait_for_exit" => None,
            _ => {
                let mut call = about("method", method);
                call.insert("params".to_owned(), params.clone().into());
                Some(self.other(call))
            }
        }
    }

    /// Notes a detail of the connection, such as the client's name or the protocol version.
    pub(super) fn tell(&mut self, name: &str, value: Option<&Value>) {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.facts.about.insert(name.to_owned(), value.clone());
        }
    }

    /// Notes the mode that the client sets for the following prompts.
    fn set_mode(&mut self, mode: Option<&Value>) {
        self.tell("set_mode", mode);
        let named = mode.and_then(Value::as_str).map(str::to_owned);
        self.mode = named.or(self.mode.take());
    }

    /// Starts or continues a session. After `session/load` the agent may replay earlier turns.
    fn begin(&mut self, method: &str, params: &Object) {
        let text = |field| fields::text(params, field).map(str::to_owned);
        self.facts.project = text("cwd").or(self.facts.project.take());
        match method {
            "session/fork" => self.facts.parent = text("sessionId"),
            _ => self.facts.native_id = text("sessionId").or(self.facts.native_id.take()),
        }
        if method == "session/load" || params.contains_key("replayFrom") {
            self.begin_replay();
        }
    }

    fn prompt(&mut self, params: &Object) -> usize {
        self.end_turn(None);
        self.settle_replay();
        let prompt = params.get("prompt").unwrap_or(&Value::Null);
        let mut entry = Entry::new(Role::User, Kind::Text, block::texts(prompt));
        let mut metadata = meta_of(params);
        if block::is_rich(prompt) {
            metadata.insert("prompt".to_owned(), block::without_bytes(prompt));
        }
        metadata.extend(self.mode.clone().map(|mode| (PROMPT_MODE.to_owned(), mode.into())));
        entry.metadata = Some(metadata).filter(|metadata| !metadata.is_empty());
        let id = fields::text(params, "sessionId").map(str::to_owned);
        self.facts.native_id = self.facts.native_id.take().or(id);
        let at = self.push(entry);
        self.turn = Some(at);
        at
    }

    /// Adds a permission request. The tool call that it describes may not be mentioned anywhere else.
    fn permission(&mut self, params: &Object) -> usize {
        let subject = fields::object(params, "subject");
        let tool_call = fields::object(params, "toolCall");
        let tool_call =
            tool_call.or_else(|| subject.and_then(|subject| fields::object(subject, "toolCall")));
        let tool_call = tool_call.or(subject.filter(|subject| subject.contains_key("toolCallId")));
        if let Some(tool_call) = tool_call {
            self.tool(tool_call);
        }
        let mut details = params.clone();
        details.shift_remove("sessionId");
        details.shift_remove("toolCall");
        let at = self.notice(Role::User, "asked for permission", about("permission", details));
        let id = tool_call.and_then(|tool_call| fields::text(tool_call, "toolCallId"));
        self.entries[at].tool_call_id = id.map(str::to_owned);
        at
    }

    /// Adds a request to the client: read or write a file, run a command, or ask the user.
    fn service(&mut self, method: &str, params: &Object) -> usize {
        let mut what = ["path", "command", "message"].iter();
        let what = what.find_map(|field| fields::text(params, field)).unwrap_or_default();
        let mut call = params.clone();
        call.shift_remove("sessionId");
        let text = format!("{method} {what}");
        self.notice(Role::Assistant, text.trim_end(), about("request", call))
    }
}

fn is_service(method: &str) -> bool {
    method.starts_with("fs/") || matches!(method, "terminal/create" | "elicitation/create")
}

fn meta_of(params: &Object) -> Object {
    params.get("_meta").map_or_else(Object::new, |meta| about("_meta", meta.clone()))
}
