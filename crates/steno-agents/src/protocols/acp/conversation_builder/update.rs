//! Handles `session/update` notifications.

use std::ops::Range;

use super::super::content_block;
use super::{AcpConversationBuilder, single_field};
use crate::decoding::json_fields;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

impl AcpConversationBuilder {
    /// Handles the parameters of a `session/update`.
    pub(super) fn handle_update(&mut self, params: &Object) {
        let id = json_fields::text_field(params, "sessionId").map(str::to_owned);
        self.facts.native_id = self.facts.native_id.take().or(id);
        let Some(update) = json_fields::object_field(params, "update") else {
            self.add_unknown(params.clone());
            return;
        };
        match json_fields::text_field(update, "sessionUpdate").unwrap_or_default() {
            "user_message_chunk" => self.add_echo(update, Self::append_chunk),
            "user_message" => self.add_echo(update, Self::replace_message),
            "agent_message_chunk" => self.append_chunk(Role::Assistant, EntryKind::Text, update),
            "agent_thought_chunk" => {
                self.append_chunk(Role::Assistant, EntryKind::Thinking, update)
            }
            "agent_message" => self.replace_message(Role::Assistant, EntryKind::Text, update),
            "agent_thought" => self.replace_message(Role::Assistant, EntryKind::Thinking, update),
            "tool_call" | "tool_call_update" => self.update_tool(update),
            "tool_call_content_chunk" => self.append_tool_content(update),
            "terminal_update" | "terminal_output_chunk" => self.update_terminal(update),
            "plan" | "plan_update" => self.add_plan(update),
            "compaction_update" | "compaction_summary_chunk" => self.update_compaction(update),
            "notice" => self.add_agent_notice(update),
            "state_update" => self.handle_state(update),
            _ => self.handle_session_fact(update),
        }
    }

    /// Adds a user message that the agent reports. In version 2 it repeats a prompt already in the log.
    fn add_echo(&mut self, update: &Object, take: fn(&mut Self, Role, EntryKind, &Object)) {
        let before = self.entries.len();
        take(self, Role::User, EntryKind::Text, update);
        if let Some(entry) = self.entries.get_mut(before).filter(|_| self.replay.is_none()) {
            entry.extra.insert(ECHO_KEY.to_owned(), true.into());
        }
    }

    /// Adds a plan: its steps, its text, or its URI. Version 2 nests it in an object.
    fn add_plan(&mut self, update: &Object) {
        let plan = json_fields::object_field(update, "plan").unwrap_or(update);
        let steps = ["entries", "items"].iter().find_map(|name| plan.get(*name));
        let lines = json_fields::list_items(steps.unwrap_or(&Value::Null)).iter().map(|step| {
            let mark = match json_fields::nonempty_text(step, "status") {
                Some("completed") => "[x]",
                Some("in_progress") => "[>]",
                _ => "[ ]",
            };
            format!("{mark} {}", json_fields::nonempty_text(step, "content").unwrap_or_default())
        });
        let mut text = lines.collect::<Vec<_>>().join("\n");
        if text.is_empty() {
            let mut other = ["markdown", "content", "uri"].iter();
            text = other
                .find_map(|name| json_fields::text_field(plan, name))
                .unwrap_or_default()
                .to_owned();
        }
        self.add_notice(Role::Assistant, text, single_field("plan", update_body(update)));
    }

    /// Adds or updates a compaction. All updates with one id become one entry.
    fn update_compaction(&mut self, update: &Object) {
        let id = json_fields::text_field(update, "compactionId").map(str::to_owned);
        let known = id.as_ref().and_then(|id| self.compactions.get(id).copied());
        let at = known.unwrap_or_else(|| {
            let mut entry = Entry::new(Role::System, EntryKind::Compaction, "");
            entry.message_id.clone_from(&id);
            let at = self.push_entry(entry);
            self.compactions.extend(id.map(|id| (id, at)));
            at
        });
        let entry = &mut self.entries[at];
        if let Some(summary) = update.get("summary").filter(|summary| !summary.is_null()) {
            entry.content = content_block::blocks_text(summary);
        }
        if let Some(piece) = update.get("content") {
            content_block::push_block(&mut entry.content, piece);
        }
        entry.metadata.get_or_insert_default().extend(update_body(update));
    }

    fn add_agent_notice(&mut self, update: &Object) {
        let parts = ["title", "description"].map(|field| json_fields::text_field(update, field));
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join(": ");
        self.add_notice(Role::System, text, single_field("notice", update_body(update)));
    }

    /// In version 2 a turn ends when the agent becomes idle.
    fn handle_state(&mut self, update: &Object) {
        if json_fields::text_field(update, "state") == Some("idle") {
            self.end_turn(Some(update));
        }
    }

    /// Handles updates about the session itself.
    fn handle_session_fact(&mut self, update: &Object) {
        match json_fields::text_field(update, "sessionUpdate") {
            Some("session_info_update") => {
                let title = json_fields::text_field(update, "title").map(str::to_owned);
                self.facts.title = title.or(self.facts.title.take());
            }
            Some("usage_update") => self.note_context_use(update),
            Some("config_option_update") => self.note_model_option(update),
            Some("current_mode_update") => self.note_detail("mode", update.get("currentModeId")),
            Some("available_commands_update") => {}
            _ => drop(self.add_unknown(update.clone())),
        }
    }

    /// Notes the context use and the total cost of the session.
    fn note_context_use(&mut self, update: &Object) {
        let cost = json_fields::object_field(update, "cost");
        let dollars = cost.filter(|cost| json_fields::text_field(cost, "currency") == Some("USD"));
        let dollars = dollars.and_then(|cost| cost.get("amount")?.as_f64());
        self.facts.cost = dollars.filter(|amount| *amount > 0.0).or(self.facts.cost);
        self.note_detail("context", Some(&Value::Object(update_body(update))));
    }

    /// Notes the model among the agent's settings.
    pub(super) fn note_model_option(&mut self, settings: &Object) {
        let options =
            json_fields::list_field(settings, "configOptions").iter().filter_map(Value::as_object);
        let mut models =
            options.filter(|option| json_fields::text_field(option, "category") == Some("model"));
        let model = models.find_map(|option| json_fields::text_field(option, "currentValue"));
        self.model = model.map(str::to_owned).or(self.model.take());
    }

    /// Drops entries that repeat the prompt before them. The prompt takes over the message id.
    pub(super) fn drop_echoes(&mut self) {
        let mut kept: Vec<Entry> = Vec::with_capacity(self.entries.len());
        // Index of the last prompt, and the range of its text without surrounding white space.
        let mut last_prompt: Option<(usize, Range<usize>)> = None;
        for mut entry in std::mem::take(&mut self.entries) {
            let is_echo = entry.extra.shift_remove(ECHO_KEY).is_some();
            let repeats = |(at, range): &(usize, Range<usize>)| {
                is_echo && kept[*at].content[range.clone()] == *entry.content.trim()
            };
            if let Some((at, _)) = last_prompt.clone().filter(repeats) {
                let prompt = &mut kept[at];
                prompt.message_id = entry.message_id.or(prompt.message_id.take());
            } else if !is_echo || !entry.content.is_empty() {
                if entry.role == Role::User && entry.kind == EntryKind::Text {
                    last_prompt = Some((kept.len(), trimmed_range(&entry.content)));
                }
                kept.push(entry);
            }
        }
        self.entries = kept;
    }
}

/// The range of a text without surrounding white space.
fn trimmed_range(text: &str) -> Range<usize> {
    let start = text.len() - text.trim_start().len();
    start..start + text.trim().len()
}

/// Marks a user message reported by the agent. Removed before the entries are returned.
const ECHO_KEY: &str = "echo";

/// An update without its `sessionUpdate` field.
pub(super) fn update_body(update: &Object) -> Object {
    let mut body = update.clone();
    body.shift_remove("sessionUpdate");
    body
}
