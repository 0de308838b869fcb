//! Handles requests and notifications of both sides.

use super::super::wire::AcpSide;
use super::super::{PROMPT_MODE_KEY, content_block};
use super::{AcpConversationBuilder, single_field};
use crate::decoding::json_fields;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

/// Methods that make no entry.
const SILENT_METHODS: [&str; 18] = [
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

impl AcpConversationBuilder {
    /// Handles a request or notification. Returns the index of its entry.
    pub(super) fn handle_request(
        &mut self,
        side: AcpSide,
        method: &str,
        params: &Object,
    ) -> Option<usize> {
        match (side, method) {
            (AcpSide::Client, "initialize") => {
                self.begin_connection();
                self.note_detail("client", params.get("clientInfo").or(params.get("info")));
                None
            }
            (
                AcpSide::Client,
                "session/new" | "session/load" | "session/resume" | "session/fork",
            ) => {
                self.begin_session(method, params);
                None
            }
            (AcpSide::Client, "session/prompt") => Some(self.add_prompt(params)),
            (AcpSide::Client, "session/set_mode") => {
                self.set_mode(params.get("modeId"));
                None
            }
            (AcpSide::Client, "session/set_config_option") => {
                let is_mode = json_fields::text_field(params, "configId") == Some("mode");
                self.set_mode(params.get("value").filter(|_| is_mode));
                None
            }
            (AcpSide::Client, "session/cancel" | "$/cancel_request") => {
                Some(self.add_notice(Role::User, "cancelled", meta_fields(params)))
            }
            (AcpSide::Agent, "session/update") => {
                self.handle_update(params);
                None
            }
            (AcpSide::Agent, "session/request_permission") => {
                Some(self.add_permission_request(params))
            }
            (AcpSide::Agent, _) if is_client_service(method) => {
                Some(self.add_client_request(method, params))
            }
            _ if SILENT_METHODS.contains(&method) || method == "terminal/wait_for_exit" => None,
            _ => {
                let mut call = single_field("method", method);
                call.insert("params".to_owned(), params.clone().into());
                Some(self.add_unknown(call))
            }
        }
    }

    /// Notes a detail of the connection, such as the client's name or the protocol version.
    pub(super) fn note_detail(&mut self, name: &str, value: Option<&Value>) {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.facts.details.insert(name.to_owned(), value.clone());
        }
    }

    /// Notes the mode that the client sets for the following prompts.
    fn set_mode(&mut self, mode: Option<&Value>) {
        self.note_detail("set_mode", mode);
        let named = mode.and_then(Value::as_str).map(str::to_owned);
        self.mode = named.or(self.mode.take());
    }

    /// Starts or continues a session. After `session/load` the agent may replay earlier turns.
    fn begin_session(&mut self, method: &str, params: &Object) {
        let text = |field| json_fields::text_field(params, field).map(str::to_owned);
        self.facts.project = text("cwd").or(self.facts.project.take());
        match method {
            "session/fork" => self.facts.parent = text("sessionId"),
            _ => self.facts.native_id = text("sessionId").or(self.facts.native_id.take()),
        }
        if method == "session/load" || params.contains_key("replayFrom") {
            self.begin_replay();
        }
    }

    fn add_prompt(&mut self, params: &Object) -> usize {
        self.end_turn(None);
        self.finish_replay();
        let prompt = params.get("prompt").unwrap_or(&Value::Null);
        let mut entry = Entry::new(Role::User, EntryKind::Text, content_block::blocks_text(prompt));
        let mut metadata = meta_fields(params);
        if content_block::has_rich_content(prompt) {
            metadata.insert("prompt".to_owned(), content_block::without_media_bytes(prompt));
        }
        metadata.extend(self.mode.clone().map(|mode| (PROMPT_MODE_KEY.to_owned(), mode.into())));
        entry.metadata = Some(metadata).filter(|metadata| !metadata.is_empty());
        let id = json_fields::text_field(params, "sessionId").map(str::to_owned);
        self.facts.native_id = self.facts.native_id.take().or(id);
        let at = self.push_entry(entry);
        self.turn_start = Some(at);
        at
    }

    /// Adds a permission request. The tool call that it describes may not be mentioned anywhere else.
    fn add_permission_request(&mut self, params: &Object) -> usize {
        let subject = json_fields::object_field(params, "subject");
        let tool_call = json_fields::object_field(params, "toolCall");
        let tool_call = tool_call
            .or_else(|| subject.and_then(|subject| json_fields::object_field(subject, "toolCall")));
        let tool_call = tool_call.or(subject.filter(|subject| subject.contains_key("toolCallId")));
        if let Some(tool_call) = tool_call {
            self.update_tool(tool_call);
        }
        let mut details = params.clone();
        details.shift_remove("sessionId");
        details.shift_remove("toolCall");
        let at = self.add_notice(
            Role::User,
            "asked for permission",
            single_field("permission", details),
        );
        let id = tool_call.and_then(|tool_call| json_fields::text_field(tool_call, "toolCallId"));
        self.entries[at].tool_call_id = id.map(str::to_owned);
        at
    }

    /// Adds a request to the client: read or write a file, run a command, or ask the user.
    fn add_client_request(&mut self, method: &str, params: &Object) -> usize {
        let mut what = ["path", "command", "message"].iter();
        let what =
            what.find_map(|field| json_fields::text_field(params, field)).unwrap_or_default();
        let mut call = params.clone();
        call.shift_remove("sessionId");
        let text = format!("{method} {what}");
        self.add_notice(Role::Assistant, text.trim_end(), single_field("request", call))
    }
}

fn is_client_service(method: &str) -> bool {
    method.starts_with("fs/") || matches!(method, "terminal/create" | "elicitation/create")
}

fn meta_fields(params: &Object) -> Object {
    params.get("_meta").map_or_else(Object::new, |meta| single_field("_meta", meta.clone()))
}
