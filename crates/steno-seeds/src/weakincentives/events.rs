//! The events of an adapter's loop, and how they are converted to entries.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::slice::{SliceItem, SlicePolicy};
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{JsonStyle, Object, Value};
use steno_model::timestamp::Timestamp;

/// A prompt is about to be sent for the first time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptRendered {
    /// The prompt's name.
    pub prompt_name: String,
    /// The adapter that sends it.
    pub adapter: String,
    /// The first messages of the conversation.
    pub messages: Vec<PromptMessage>,
    /// When it happened.
    pub created_at: Timestamp,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptMessage {
    /// The role, as the provider names it.
    pub role: String,
    /// The text.
    pub content: Option<String>,
}

/// The model called a tool, and the tool returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolInvoked {
    /// The prompt's name.
    pub prompt_name: String,
    /// The adapter that ran the tool.
    pub adapter: String,
    /// The model's text in the same message; only in the first of several calls.
    pub text: Option<String>,
    /// The tool's name; absent if the call was malformed.
    pub name: Option<String>,
    /// The arguments as the provider sent them.
    pub arguments: Option<String>,
    /// The provider's call id.
    pub call_id: Option<String>,
    /// The tool's complete output.
    pub output: String,
    /// Whether the tool succeeded.
    pub success: bool,
    /// When it happened.
    pub created_at: Timestamp,
}

/// The conversation ended with a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptExecuted {
    /// The prompt's name.
    pub prompt_name: String,
    /// The adapter that ran it.
    pub adapter: String,
    /// The text of the response.
    pub text: Option<String>,
    /// Whether the response also has structured output.
    pub has_structured_output: bool,
    /// The billed tokens.
    pub usage: Option<Usage>,
    /// When it happened.
    pub created_at: Timestamp,
}

impl PromptRendered {
    /// One entry per message.
    pub fn to_entries(&self) -> Vec<Entry> {
        let entry = |message: &PromptMessage| {
            let role = match message.role.as_str() {
                "system" | "developer" => Role::System,
                "assistant" => Role::Assistant,
                _ => Role::User,
            };
            let content = message.content.clone().unwrap_or_default();
            let entry = Entry::new(role, EntryKind::Text, content);
            with_details(entry, self.created_at, json!({"adapter": self.adapter}))
        };
        self.messages.iter().map(entry).collect()
    }
}

impl ToolInvoked {
    /// The model's text, the call, and the result.
    pub fn to_entries(&self) -> Vec<Entry> {
        let metadata = json!({"adapter": self.adapter});
        let text = self.text.iter().filter(|text| !text.is_empty());
        let text = text.map(|text| Entry::new(Role::Assistant, EntryKind::Text, text));
        let mut entries: Vec<_> = text
            .chain([self.call_entry()])
            .map(|entry| with_details(entry, self.created_at, metadata.clone()))
            .collect();
        let mut result = Entry::new(Role::Tool, EntryKind::ToolResult, &*self.output);
        result.tool_name = Some(self.tool_name());
        result.tool_call_id.clone_from(&self.call_id);
        let metadata = json!({"success": self.success, "adapter": self.adapter});
        entries.push(with_details(result, self.created_at, metadata));
        entries
    }

    fn tool_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| "unknown".to_owned())
    }

    fn call_entry(&self) -> Entry {
        let arguments = self.arguments.as_deref().unwrap_or("{}");
        let parsed: Option<Value> = serde_json::from_str(arguments).ok();
        let content = match &parsed {
            Some(value) => JsonStyle::PRETTY.print(value),
            None => arguments.to_owned(),
        };
        let mut call = Entry::new(Role::Assistant, EntryKind::ToolCall, content);
        call.tool_name = Some(self.tool_name());
        call.tool_call_id.clone_from(&self.call_id);
        call.tool_input = match parsed {
            None => Some(json!({"raw": arguments})),
            Some(value) => Some(value).filter(Value::is_object),
        };
        call
    }
}

impl PromptExecuted {
    /// The final response.
    pub fn to_entries(&self) -> Vec<Entry> {
        let text = self.text.clone().unwrap_or_default();
        let mut answer = Entry::new(Role::Assistant, EntryKind::Text, text);
        answer.usage = self.usage;
        let metadata = json!({
            "adapter": self.adapter,
            "has_structured_output": self.has_structured_output,
        });
        vec![with_details(answer, self.created_at, metadata)]
    }
}

macro_rules! log_items {
    ($($event:ident),+) => {$(
        impl SliceItem for $event {
            const TYPE_ID: &'static str =
                concat!("weakincentives.runtime.events:", stringify!($event));
            const POLICY: SlicePolicy = SlicePolicy::Log;

            fn to_json(&self) -> Object {
                match serde_json::to_value(self) {
                    Ok(Value::Object(object)) => object,
                    _ => unreachable!("an event serialises to an object"),
                }
            }

            fn from_json(object: Object) -> Result<Self, serde_json::Error> {
                serde_json::from_value(Value::Object(object))
            }
        }
    )+};
}

log_items!(PromptRendered, ToolInvoked, PromptExecuted);

fn with_details(mut entry: Entry, created_at: Timestamp, metadata: Value) -> Entry {
    entry.created_at = Some(created_at);
    entry.metadata = metadata.as_object().cloned();
    entry
}
