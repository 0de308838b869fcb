//! Decodes `ui_messages.json`, the messages that the user saw. `say` messages inform, `ask` messages wait for an
//! answer; both have the same types.

use super::super::fields::{as_count, from_millis, items, string, unpacked};
use super::super::output::Output;
use super::tools;
use crate::agent::attachment;
use crate::entry::{Entry, Kind, Role, Usage};
use crate::json::{Object, Value};

/// Types of messages about the program itself.
const NOTICES: [&str; 18] = [
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
const ERRORS: [&str; 7] = [
    "api_req_failed",
    "clineignore_error",
    "condense_context_error",
    "diff_error",
    "error",
    "mistake_limit_reached",
    "rooignore_error",
];

/// Decodes messages in order.
pub(super) struct Screen<'a, 'b> {
    pub(super) output: &'a mut Output<'b>,
    request: Option<Request>,
    /// The id of the last call, to which the next output belongs.
    open_call: Option<String>,
    cost: Option<f64>,
}

/// The API request that the current answer belongs to.
struct Request {
    id: String,
    record: Object,
    /// Its usage, until it is assigned to an entry of the answer.
    usage: Option<Usage>,
}

impl<'a, 'b> Screen<'a, 'b> {
    pub(super) fn new(output: &'a mut Output<'b>) -> Self {
        Self { output, request: None, open_call: None, cost: None }
    }

    /// Decodes the message at `index`.
    pub(super) fn message(&mut self, index: usize, message: &Object) {
        let what = ["say", "ask"].iter().find_map(|key| message.get(*key)?.as_str());
        let what = what.unwrap_or_default();
        let is_ask = message.get("type").is_some_and(|kind| kind == "ask");
        let text = message.get("text").and_then(Value::as_str).unwrap_or_default();
        match what {
            "task" | "user_feedback" => self.prompt(index, message, text),
            "text" if index == 0 => self.prompt(index, message, text),
            "api_req_started" => self.request(index, message, text),
            "deleted_api_reqs" => self.billed(message, text),
            "text" => self.answer(message, Kind::Text, text.to_owned()),
            "reasoning" => self.answer(message, Kind::Thinking, text.to_owned()),
            "completion_result" if !is_ask => self.answer(message, Kind::Text, text.to_owned()),
            "followup" | "plan_mode_respond" => {
                self.answer(message, Kind::Text, spoken(text));
            }
            "condense" | "condense_context" | "sliding_window_truncation" => {
                self.push(message, Entry::new(Role::System, Kind::Compaction, text));
            }
            _ => self.other(index, what, message, text),
        }
    }

    fn other(&mut self, index: usize, what: &str, message: &Object, text: &str) {
        if let Some(call) = tools::call(what, text) {
            self.call(index, message, call);
        } else if let Some(result) = tools::result(what, text) {
            self.result(message, result);
        } else if ERRORS.contains(&what) {
            self.push(message, Entry::new(Role::System, Kind::Error, text));
        } else if NOTICES.contains(&what) {
            self.push(message, Entry::new(Role::System, Kind::Notice, text));
        } else {
            let mut entry = Entry::new(Role::System, Kind::Other, text);
            entry.metadata = Some(message.clone());
            self.push(message, entry);
        }
    }

    fn prompt(&mut self, index: usize, message: &Object, text: &str) {
        let images = message.get("images").map_or(&[][..], items);
        let images = images
            .iter()
            .filter_map(|image| image.as_str().map(|url| attachment::url("image", url)));
        for content in std::iter::once(text.to_owned()).chain(images) {
            let mut entry = Entry::new(Role::User, Kind::Text, content);
            entry.message_id = Some(format!("prompt-{index}"));
            self.push(message, entry);
        }
    }

    /// Starts a request. Cline writes its record before the answer, and adds usage to it after the answer.
    fn request(&mut self, index: usize, message: &Object, text: &str) {
        self.end_request();
        let value = unpacked(&text.into());
        self.add_cost(&value);
        let (id, usage) = (format!("request-{index}"), Some(usage(&value)));
        self.request = Some(Request { id, record: message.clone(), usage });
    }

    /// Emits the usage of deleted requests, which were billed.
    fn billed(&mut self, message: &Object, text: &str) {
        let value = unpacked(&text.into());
        self.add_cost(&value);
        let mut entry = Entry::new(Role::System, Kind::Notice, text);
        entry.usage = Some(usage(&value));
        self.push(message, entry);
    }

    fn add_cost(&mut self, value: &Value) {
        let cost = value["cost"].as_f64().or_else(|| value["totalCost"].as_f64());
        if let Some(cost) = cost {
            *self.cost.get_or_insert_default() += cost;
        }
    }

    fn answer(&mut self, message: &Object, kind: Kind, content: String) {
        let mut entry = Entry::new(Role::Assistant, kind, content);
        if let Some(request) = &mut self.request {
            entry.message_id = Some(request.id.clone());
            entry.usage = request.usage.take();
        }
        self.push(message, entry);
    }

    fn call(&mut self, index: usize, message: &Object, mut call: Entry) {
        let id = format!("call-{index}");
        call.tool_call_id = Some(id.clone());
        self.open_call = Some(id);
        if let Some(request) = &mut self.request {
            call.message_id = Some(request.id.clone());
            call.usage = request.usage.take();
        }
        let is_compaction = call.tool_name.as_deref() == Some("summarizeTask");
        self.push(message, call);
        if is_compaction {
            self.push(message, Entry::new(Role::System, Kind::Compaction, ""));
        }
    }

    fn result(&mut self, message: &Object, mut result: Entry) {
        result.tool_call_id.clone_from(&self.open_call);
        self.push(message, result);
    }

    fn push(&mut self, message: &Object, mut entry: Entry) {
        entry.created_at = message.get("ts").and_then(Value::as_i64).and_then(from_millis);
        if entry.role == Role::Assistant {
            let model = message.get("modelInfo").and_then(|model| model.get("modelId"));
            entry.model = model.and_then(string);
        }
        if message.get("partial") == Some(&Value::Bool(true)) {
            entry.metadata.get_or_insert_default().insert("partial".to_owned(), true.into());
        }
        self.output.entry(entry);
    }

    /// Emits the usage of the open request as a notice, if it has no answer.
    fn end_request(&mut self) {
        let Some(request) = self.request.take() else { return };
        let Some(usage) = request.usage else { return };
        let mut entry = Entry::new(Role::System, Kind::Notice, "request without an answer");
        entry.usage = Some(usage);
        self.push(&request.record, entry);
    }

    /// Ends the open request and returns the cost in dollars.
    pub(super) fn finish(mut self) -> Option<f64> {
        self.end_request();
        self.cost
    }
}

/// The question or plan in a text, which may be JSON with choices.
fn spoken(text: &str) -> String {
    let value = unpacked(&text.into());
    let question = ["question", "response"].iter().find_map(|key| string(&value[*key]));
    question.unwrap_or_else(|| text.to_owned())
}

fn usage(value: &Value) -> Usage {
    Usage {
        input: as_count(&value["tokensIn"]),
        cache_read: as_count(&value["cacheReads"]),
        cache_write: as_count(&value["cacheWrites"]),
        output: as_count(&value["tokensOut"]),
        ..Usage::default()
    }
}
