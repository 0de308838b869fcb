//! One message of a chat as entries.

use super::parts;
use crate::agent::entries;
use crate::agent::fields;
use crate::agent::telling::Telling;
use crate::entry::{Entry, Kind, Role, Usage};
use crate::json::{Object, Value};
use crate::sums::SumSet;

/// Beginnings of a user's message that no person wrote for the model.
const NOT_PROMPTS: [&str; 4] = ["/", "?", "<session_context>", "<hook_context>"];

/// Tells of messages; knows which tools have answered already.
#[derive(Debug, Default)]
pub(super) struct Messages {
    answered: SumSet,
}

impl Messages {
    /// Tells of one message.
    pub(super) fn tell(&mut self, telling: &mut Telling<'_>, message: Object) {
        let at = fields::time(&message, "timestamp");
        telling.time(at);
        let mut entries = match fields::text(&message, "type") {
            Some("user") => self.user(&message),
            Some("gemini" | "qwen") => self.answer(&message),
            Some("info" | "warning") => notice(&message, Kind::Notice),
            Some("error") => notice(&message, Kind::Error),
            _ => vec![entries::unknown(message.clone())],
        };
        let id = fields::text(&message, "id");
        for entry in &mut entries {
            entry.message_id = id.map(str::to_owned);
            entry.created_at = entry.created_at.or(at);
        }
        entries.into_iter().for_each(|entry| telling.entry(entry));
    }

    fn user(&mut self, message: &Object) -> Vec<Entry> {
        let content = message.get("content").unwrap_or(&Value::Null);
        let prompt = is_prompt(&parts::text(content));
        let mut entries = parts::entries(content, &Role::User);
        // Answers of tools stand in the calls too, where they are told.
        entries.retain(|entry| entry.kind != Kind::ToolResult || self.is_news(entry));
        for entry in entries.iter_mut().filter(|entry| entry.kind == Kind::Text && !prompt) {
            entry.kind = Kind::Notice;
        }
        entries
    }

    fn answer(&mut self, message: &Object) -> Vec<Entry> {
        let mut entries: Vec<_> =
            fields::list(message, "thoughts").iter().filter_map(thought).collect();
        let content = message.get("content").unwrap_or(&Value::Null);
        entries.extend(parts::entries(content, &Role::Assistant));
        for call in fields::list(message, "toolCalls").iter().filter_map(Value::as_object) {
            entries.extend(self.call(call));
        }
        if !entries.iter().any(|entry| entry.role == Role::Assistant) {
            entries.insert(0, Entry::new(Role::Assistant, Kind::Text, ""));
        }
        let model = fields::text(message, "model");
        for entry in entries.iter_mut().filter(|entry| entry.role == Role::Assistant) {
            entry.model = model.map(str::to_owned);
        }
        if let Some(first) = entries.first_mut() {
            first.usage = fields::object(message, "tokens").map(usage);
        }
        entries
    }

    /// A call, and the answer that stands in it.
    fn call(&mut self, call: &Object) -> Vec<Entry> {
        let (name, id) = (fields::text(call, "name"), fields::text(call, "id"));
        let mut asked = entries::tool_call(name, id, call.get("args"));
        asked.created_at = fields::time(call, "timestamp");
        let Some(result) = call.get("result").filter(|result| !result.is_null()) else {
            return vec![asked];
        };
        let texts = parts::entries(result, &Role::Tool);
        let texts: Vec<_> = texts.into_iter().map(|entry| entry.content).collect();
        let failed = matches!(fields::text(call, "status"), Some("error" | "cancelled"));
        let mut answer = entries::tool_result(id, texts.join("\n"), failed);
        answer.tool_name = name.map(str::to_owned);
        answer.created_at = asked.created_at;
        self.is_news(&answer);
        vec![asked, answer]
    }

    /// Whether this is a tool's first answer; from then on it is not.
    fn is_news(&mut self, answer: &Entry) -> bool {
        answer.tool_call_id.as_ref().is_none_or(|id| self.answered.insert(id))
    }
}

fn is_prompt(text: &str) -> bool {
    let text = text.trim_start();
    !text.is_empty() && !NOT_PROMPTS.iter().any(|start| text.starts_with(start))
}

fn thought(thought: &Value) -> Option<Entry> {
    let thought = thought.as_object()?;
    let texts = ["subject", "description"].iter().filter_map(|field| fields::text(thought, field));
    let text = texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
    let mut entry = Entry::new(Role::Assistant, Kind::Thinking, text);
    entry.created_at = fields::time(thought, "timestamp");
    Some(entry)
}

fn notice(message: &Object, kind: Kind) -> Vec<Entry> {
    let content = message.get("content").unwrap_or(&Value::Null);
    vec![Entry::new(Role::System, kind, parts::text(content))]
}

/// Gemini counts cached tokens as input too, but thoughts not as output.
fn usage(tokens: &Object) -> Usage {
    let count = |field| fields::count(tokens, field);
    Usage {
        input: count("input").saturating_sub(count("cached")) + count("tool"),
        cache_read: count("cached"),
        output: count("output") + count("thoughts"),
        reasoning: count("thoughts"),
        ..Usage::default()
    }
}
