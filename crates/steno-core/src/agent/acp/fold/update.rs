//! Handles `session/update` notifications.

use std::ops::Range;

use super::super::block;
use super::{Fold, about};
use crate::agent::fields;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

impl Fold {
    /// Handles the parameters of a `session/update`.
    pub(super) fn update(&mut self, params: &Object) {
        let id = fields::text(params, "sessionId").map(str::to_owned);
        self.facts.native_id = self.facts.native_id.take().or(id);
        let Some(update) = fields::object(params, "update") else {
            self.other(params.clone());
            return;
        };
        match fields::text(update, "sessionUpdate").unwrap_or_default() {
            "user_message_chunk" => self.echo(update, Self::chunk),
            "user_message" => self.echo(update, Self::whole),
            "agent_message_chunk" => self.chunk(Role::Assistant, Kind::Text, update),
            "agent_thought_chunk" => self.chunk(Role::Assistant, Kind::Thinking, update),
            "agent_message" => self.whole(Role::Assistant, Kind::Text, update),
            "agent_thought" => self.whole(Role::Assistant, Kind::Thinking, update),
            "tool_call" | "tool_call_update" => self.tool(update),
            "tool_call_content_chunk" => self.tool_piece(update),
            "terminal_update" | "terminal_output_chunk" => self.terminal(update),
            "plan" | "plan_update" => self.plan(update),
            "compaction_update" | "compaction_summary_chunk" => self.compaction(update),
            "notice" => self.told(update),
            "state_update" => self.state(update),
            _ => self.fact(update),
        }
    }

    /// Adds a user message that the agent reports. In version 2 it repeats a prompt already in the log.
    fn echo(&mut self, update: &Object, take: fn(&mut Self, Role, Kind, &Object)) {
        let before = self.entries.len();
        take(self, Role::User, Kind::Text, update);
        if let Some(entry) = self.entries.get_mut(before).filter(|_| self.replay.is_none()) {
            entry.extra.insert(ECHO.to_owned(), true.into());
        }
    }

    /// Adds a plan: its steps, its text, or its URI. Version 2 nests it in an object.
    fn plan(&mut self, update: &Object) {
        let plan = fields::object(update, "plan").unwrap_or(update);
        let steps = ["entries", "items"].iter().find_map(|name| plan.get(*name));
        let lines = fields::items(steps.unwrap_or(&Value::Null)).iter().map(|step| {
            let mark = match fields::filled(step, "status") {
                Some("completed") => "[x]",
                Some("in_progress") => "[>]",
                _ => "[ ]",
            };
            format!("{mark} {}", fields::filled(step, "content").unwrap_or_default())
        });
        let mut text = lines.collect::<Vec<_>>().join("\n");
        if text.is_empty() {
            let mut other = ["markdown", "content", "uri"].iter();
            text = other.find_map(|name| fields::text(plan, name)).unwrap_or_default().to_owned();
        }
        self.notice(Role::Assistant, text, about("plan", body(update)));
    }

    /// Adds or updates a compaction. All updates with one id become one entry.
    fn compaction(&mut self, update: &Object) {
        let id = fields::text(update, "compactionId").map(str::to_owned);
        let known = id.as_ref().and_then(|id| self.compactions.get(id).copied());
        let at = known.unwrap_or_else(|| {
            let mut entry = Entry::new(Role::System, Kind::Compaction, "");
            entry.message_id.clone_from(&id);
            let at = self.push(entry);
            self.compactions.extend(id.map(|id| (id, at)));
            at
        });
        let entry = &mut self.entries[at];
        if let Some(summary) = update.get("summary").filter(|summary| !summary.is_null()) {
            entry.content = block::texts(summary);
        }
        if let Some(piece) = update.get("content") {
            block::push(&mut entry.content, piece);
        }
        entry.metadata.get_or_insert_default().extend(body(update));
    }

    fn told(&mut self, update: &Object) {
        let parts = ["title", "description"].map(|field| fields::text(update, field));
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join(": ");
        self.notice(Role::System, text, about("notice", body(update)));
    }

    /// In version 2 a turn ends when the agent becomes idle.
    fn state(&mut self, update: &Object) {
        if fields::text(update, "state") == Some("idle") {
            self.end_turn(Some(update));
        }
    }

    /// Handles updates about the session itself.
    fn fact(&mut self, update: &Object) {
        match fields::text(update, "sessionUpdate") {
            Some("session_info_update") => {
                let title = fields::text(update, "title").map(str::to_owned);
                self.facts.title = title.or(self.facts.title.take());
            }
            Some("usage_update") => self.context(update),
            Some("config_option_update") => self.options(update),
            Some("current_mode_update") => self.tell("mode", update.get("currentModeId")),
            Some("available_commands_update") => {}
            _ => drop(self.other(update.clone())),
        }
    }

    /// Notes the context use and the total cost of the session.
    fn context(&mut self, update: &Object) {
        let cost = fields::object(update, "cost");
        let dollars = cost.filter(|cost| fields::text(cost, "currency") == Some("USD"));
        let dollars = dollars.and_then(|cost| cost.get("amount")?.as_f64());
        self.facts.cost = dollars.filter(|amount| *amount > 0.0).or(self.facts.cost);
        self.tell("context", Some(&Value::Object(body(update))));
    }

    /// Notes the model among the agent's settings.
    pub(super) fn options(&mut self, settings: &Object) {
        let options = fields::list(settings, "configOptions").iter().filter_map(Value::as_object);
        let mut models = options.filter(|option| fields::text(option, "category") == Some("model"));
        let model = models.find_map(|option| fields::text(option, "currentValue"));
        self.model = model.map(str::to_owned).or(self.model.take());
    }

    /// Drops entries that repeat the prompt before them. The prompt takes over the message id.
    pub(super) fn drop_echoes(&mut self) {
        let mut kept: Vec<Entry> = Vec::with_capacity(self.entries.len());
        // Index of the last prompt, and the range of its text without surrounding white space.
        let mut last_prompt: Option<(usize, Range<usize>)> = None;
        for mut entry in std::mem::take(&mut self.entries) {
            let is_echo = entry.extra.shift_remove(ECHO).is_some();
            let repeats = |(at, range): &(usize, Range<usize>)| {
                is_echo && kept[*at].content[range.clone()] == *entry.content.trim()
            };
            if let Some((at, _)) = last_prompt.clone().filter(repeats) {
                let prompt = &mut kept[at];
                prompt.message_id = entry.message_id.or(prompt.message_id.take());
            } else if !is_echo || !entry.content.is_empty() {
                if entry.role == Role::User && entry.kind == Kind::Text {
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
const ECHO: &str = "echo";

/// An update without its `sessionUpdate` field.
pub(super) fn body(update: &Object) -> Object {
    let mut body = update.clone();
    body.shift_remove("sessionUpdate");
    body
}
