//! What the person saw: `say` is told by the program, `ask` waits for an answer; both carry the
//! same things.

use super::super::fields::{as_count, from_millis, items, string, unpacked};
use super::super::output::Output;
use super::tools;
use crate::agent::attachment;
use crate::entry::{Entry, Kind, Role, Usage};
use crate::json::{Object, Value};

/// Things that the program tells about itself.
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

/// Things that went wrong.
const ERRORS: [&str; 7] = [
    "api_req_failed",
    "clineignore_error",
    "condense_context_error",
    "diff_error",
    "error",
    "mistake_limit_reached",
    "rooignore_error",
];

/// Reads messages one after the other.
pub(super) struct Screen<'a, 'b> {
    pub(super) output: &'a mut Output<'b>,
    request: Option<Request>,
    /// The last call, which the next output belongs to.
    open_call: Option<String>,
    cost: Option<f64>,
}

/// An API request whose answer is being told.
struct Request {
    id: String,
    record: Object,
    /// Its tokens, until an entry of the answer took them.
    usage: Option<Usage>,
}

impl<'a, 'b> Screen<'a, 'b> {
    pub(super) fn new(output: &'a mut Output<'b>) -> Self {
        Self { output, request: None, open_call: None, cost: None }
    }

    /// Takes the message at `index`.
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

    /// A request's record comes before its answer and is completed when the answer is there.
    fn request(&mut self, index: usize, message: &Object, text: &str) {
        self.end_request();
        let stated = unpacked(&text.into());
        self.add_cost(&stated);
        let (id, usage) = (format!("request-{index}"), Some(usage(&stated)));
        self.request = Some(Request { id, record: message.clone(), usage });
    }

    /// Requests that were taken back were billed nevertheless.
    fn billed(&mut self, message: &Object, text: &str) {
        let stated = unpacked(&text.into());
        self.add_cost(&stated);
        let mut entry = Entry::new(Role::System, Kind::Notice, text);
        entry.usage = Some(usage(&stated));
        self.push(message, entry);
    }

    fn add_cost(&mut self, stated: &Value) {
        let cost = stated["cost"].as_f64().or_else(|| stated["totalCost"].as_f64());
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
        let shortens = call.tool_name.as_deref() == Some("summarizeTask");
        self.push(message, call);
        if shortens {
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

    /// A request that nothing answered still counts.
    fn end_request(&mut self) {
        let Some(request) = self.request.take() else { return };
        let Some(usage) = request.usage else { return };
        let mut entry = Entry::new(Role::System, Kind::Notice, "request without an answer");
        entry.usage = Some(usage);
        self.push(&request.record, entry);
    }

    /// Ends the reading; gives the dollars that it cost.
    pub(super) fn finish(mut self) -> Option<f64> {
        self.end_request();
        self.cost
    }
}

/// The question or plan in a text that may be JSON with choices.
fn spoken(text: &str) -> String {
    let stated = unpacked(&text.into());
    let spoken = ["question", "response"].iter().find_map(|key| string(&stated[*key]));
    spoken.unwrap_or_else(|| text.to_owned())
}

fn usage(stated: &Value) -> Usage {
    Usage {
        input: as_count(&stated["tokensIn"]),
        cache_read: as_count(&stated["cacheReads"]),
        cache_write: as_count(&stated["cacheWrites"]),
        output: as_count(&stated["tokensOut"]),
        ..Usage::default()
    }
}
