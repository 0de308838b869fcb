//! Decodes `ui_messages.json`, the messages that the user saw. `say` messages inform, `ask` messages wait for an
//! answer; both have the same types.

use super::tools;
use crate::decoding::attachment;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{
    as_count, list_items, owned_text, timestamp_from_millis, unpack_json,
};
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{Object, Value};

/// Types of messages about the program itself.
const NOTICE_TYPES: [&str; 18] = [
    "api_req_finished",
    "api_req_rate_limit_wait",
    "api_req_retried",
    "api_req_retry_delayed",
    "auto_approval_max_req_reached",
    "checkpoint_created",
    "checkpoint_saved",
    "codebase_search_result",
    "completion_result",
    "info",
    "mcp_notification",
    "mcp_server_request_started",
    "resume_completed_task",
    "resume_task",
    "shell_integration_warning",
    "subtask_result",
    "task_progress",
    "user_feedback_diff",
];

/// Types of error messages.
const ERROR_TYPES: [&str; 7] = [
    "api_req_failed",
    "clineignore_error",
    "condense_context_error",
    "diff_error",
    "error",
    "mistake_limit_reached",
    "rooignore_error",
];

/// Decodes messages in order.
pub(super) struct ClineUiDecoder<'a, 'b> {
    pub(super) output: &'a mut EntryEmitter<'b>,
    open_request: Option<ClineApiRequest>,
    /// The id of the last call, to which the next output belongs.
    open_call: Option<String>,
    cost: Option<f64>,
}

/// The API request that the current answer belongs to.
struct ClineApiRequest {
    id: String,
    record: Object,
    /// Its usage, until it is assigned to an entry of the answer.
    usage: Option<Usage>,
}

impl<'a, 'b> ClineUiDecoder<'a, 'b> {
    pub(super) fn new(output: &'a mut EntryEmitter<'b>) -> Self {
        Self { output, open_request: None, open_call: None, cost: None }
    }

    /// Decodes the message at `index`.
    pub(super) fn decode_message(&mut self, index: usize, message: &Object) {
        let what = ["say", "ask"].iter().find_map(|key| message.get(*key)?.as_str());
        let what = what.unwrap_or_default();
        let is_ask = message.get("type").is_some_and(|kind| kind == "ask");
        let text = message.get("text").and_then(Value::as_str).unwrap_or_default();
        match what {
            "task" | "user_feedback" => self.push_prompt(index, message, text),
            "text" if index == 0 => self.push_prompt(index, message, text),
            "api_req_started" => self.start_request(index, message, text),
            "deleted_api_reqs" => self.push_deleted_requests(message, text),
            "text" => self.push_answer(message, EntryKind::Text, text.to_owned()),
            "reasoning" => self.push_answer(message, EntryKind::Thinking, text.to_owned()),
            "completion_result" if !is_ask => {
                self.push_answer(message, EntryKind::Text, text.to_owned())
            }
            "followup" | "plan_mode_respond" => {
                self.push_answer(message, EntryKind::Text, question_text(text));
            }
            "condense" | "condense_context" | "sliding_window_truncation" => {
                self.push_entry(message, Entry::new(Role::System, EntryKind::Compaction, text));
            }
            _ => self.decode_other(index, what, message, text),
        }
    }

    fn decode_other(&mut self, index: usize, what: &str, message: &Object, text: &str) {
        if let Some(call) = tools::decode_tool_call(what, text) {
            self.push_call(index, message, call);
        } else if let Some(result) = tools::decode_tool_output(what, text) {
            self.push_result(message, result);
        } else if ERROR_TYPES.contains(&what) {
            self.push_entry(message, Entry::new(Role::System, EntryKind::Error, text));
        } else if NOTICE_TYPES.contains(&what) {
            self.push_entry(message, Entry::new(Role::System, EntryKind::Notice, text));
        } else {
            let mut entry = Entry::new(Role::System, EntryKind::Other, text);
            entry.metadata = Some(message.clone());
            self.push_entry(message, entry);
        }
    }

    fn push_prompt(&mut self, index: usize, message: &Object, text: &str) {
        let images = message.get("images").map_or(&[][..], list_items);
        let images = images
            .iter()
            .filter_map(|image| image.as_str().map(|url| attachment::describe_url("image", url)));
        for content in std::iter::once(text.to_owned()).chain(images) {
            let mut entry = Entry::new(Role::User, EntryKind::Text, content);
            entry.message_id = Some(format!("prompt-{index}"));
            self.push_entry(message, entry);
        }
    }

    /// Starts a request. Cline writes its record before the answer, and adds usage to it after the answer.
    fn start_request(&mut self, index: usize, message: &Object, text: &str) {
        self.end_request();
        let value = unpack_json(&text.into());
        self.add_cost(&value);
        let (id, usage) = (format!("request-{index}"), Some(parse_usage(&value)));
        self.open_request = Some(ClineApiRequest { id, record: message.clone(), usage });
    }

    /// Emits the usage of deleted requests, which were billed.
    fn push_deleted_requests(&mut self, message: &Object, text: &str) {
        let value = unpack_json(&text.into());
        self.add_cost(&value);
        let mut entry = Entry::new(Role::System, EntryKind::Notice, text);
        entry.usage = Some(parse_usage(&value));
        self.push_entry(message, entry);
    }

    fn add_cost(&mut self, value: &Value) {
        let cost = value["cost"].as_f64().or_else(|| value["totalCost"].as_f64());
        if let Some(cost) = cost {
            *self.cost.get_or_insert_default() += cost;
        }
    }

    fn push_answer(&mut self, message: &Object, kind: EntryKind, content: String) {
        let mut entry = Entry::new(Role::Assistant, kind, content);
        if let Some(request) = &mut self.open_request {
            entry.message_id = Some(request.id.clone());
            entry.usage = request.usage.take();
        }
        self.push_entry(message, entry);
    }

    fn push_call(&mut self, index: usize, message: &Object, mut call: Entry) {
        let id = format!("call-{index}");
        call.tool_call_id = Some(id.clone());
        self.open_call = Some(id);
        if let Some(request) = &mut self.open_request {
            call.message_id = Some(request.id.clone());
            call.usage = request.usage.take();
        }
        let is_compaction = call.tool_name.as_deref() == Some("summarizeTask");
        self.push_entry(message, call);
        if is_compaction {
            self.push_entry(message, Entry::new(Role::System, EntryKind::Compaction, ""));
        }
    }

    fn push_result(&mut self, message: &Object, mut result: Entry) {
        result.tool_call_id.clone_from(&self.open_call);
        self.push_entry(message, result);
    }

    fn push_entry(&mut self, message: &Object, mut entry: Entry) {
        entry.created_at =
            message.get("ts").and_then(Value::as_i64).and_then(timestamp_from_millis);
        if entry.role == Role::Assistant {
            let model = message.get("modelInfo").and_then(|model| model.get("modelId"));
            entry.model = model.and_then(owned_text);
        }
        if message.get("partial") == Some(&Value::Bool(true)) {
            entry.metadata.get_or_insert_default().insert("partial".to_owned(), true.into());
        }
        self.output.emit_entry(entry);
    }

    /// Emits the usage of the open request as a notice, if it has no answer.
    fn end_request(&mut self) {
        let Some(request) = self.open_request.take() else { return };
        let Some(usage) = request.usage else { return };
        let mut entry = Entry::new(Role::System, EntryKind::Notice, "request without an answer");
        entry.usage = Some(usage);
        self.push_entry(&request.record, entry);
    }

    /// Ends the open request and returns the cost in dollars.
    pub(super) fn finish(mut self) -> Option<f64> {
        self.end_request();
        self.cost
    }
}

/// The question or plan in a text, which may be JSON with choices.
fn question_text(text: &str) -> String {
    let value = unpack_json(&text.into());
    let question = ["question", "response"].iter().find_map(|key| owned_text(&value[*key]));
    question.unwrap_or_else(|| text.to_owned())
}

fn parse_usage(value: &Value) -> Usage {
    Usage {
        input: as_count(&value["tokensIn"]),
        cache_read: as_count(&value["cacheReads"]),
        cache_write: as_count(&value["cacheWrites"]),
        output: as_count(&value["tokensOut"]),
        ..Usage::default()
    }
}
