//! Messages between contexts: `send_message` adds them, `-b` and `-B` take them from the inbox.

use serde_json::Value;
use steno_model::{Entry, EntryKind, Role};

use super::ChibiContexts;
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

/// Prompt with which chibi has a model read its messages.
const CHECK_PROMPT: &str = "[System: You have received new message(s) above. Review and take appropriate action now — you may not be reactivated soon, so handle anything urgent immediately.]";

impl ChibiContexts<'_> {
    /// Processes the inboxes of all contexts.
    pub(super) fn take_inboxes(&self, ui: &mut Ui) -> Result<CommandExit, CommandError> {
        let mut count = 0;
        for name in self.context_names() {
            count += usize::from(self.take_messages(ui, &name)?);
        }
        if count == 0 {
            self.print_if_verbose(ui, "No messages in any inbox.");
        } else {
            self.print_if_verbose(ui, &format!("Processed inboxes for {count} context(s)."));
        }
        Ok(CommandExit::Done)
    }

    /// Processes the inbox of one context.
    pub(super) fn take_inbox(&self, ui: &mut Ui, name: &str) -> Result<CommandExit, CommandError> {
        self.existing_folder(name)?;
        if !self.take_messages(ui, name)? {
            self.print_if_verbose(ui, &format!("No messages in inbox for '{name}'"));
        }
        Ok(CommandExit::Done)
    }

    /// Records waiting messages as a prompt of the context and prints it. Returns whether there were any.
    fn take_messages(&self, ui: &mut Ui, name: &str) -> Result<bool, CommandError> {
        let context = self.open_context(&self.existing_folder(name)?)?;
        let waiting = context.waiting_messages()?.len();
        if waiting == 0 {
            return Ok(false);
        }
        self.print_if_verbose(
            ui,
            &format!("Processing {waiting} message(s) from inbox for '{name}'"),
        );
        let prompt =
            context.append_prompt(Entry::new(Role::User, EntryKind::Text, CHECK_PROMPT))?;
        ui.transcript_text(&(prompt.content + "\n"))?;
        Ok(true)
    }

    /// Calls a tool of chibi.
    pub(super) fn call_tool(
        &self,
        ui: &mut Ui,
        tool: &str,
        input: &str,
    ) -> Result<CommandExit, CommandError> {
        if tool != "send_message" {
            let error = CommandError::usage(format!("no such tool here: {tool}"));
            return Err(error.hint("only send_message can be called without a model"));
        }
        let input: Value = serde_json::from_str(input)
            .map_err(|error| CommandError::usage(format!("not JSON: {error}")))?;
        let text = |field: &str| input.get(field).and_then(Value::as_str);
        let missing =
            |field: &str| CommandError::user(format!("Error: '{field}' field is required"));
        let to = text("to").ok_or_else(|| missing("to"))?;
        let content = text("content").ok_or_else(|| missing("content"))?;
        let current = self.current_name();
        let context = self.open_context(&self.context_folder(to)?)?;
        context.push_message(text("from").unwrap_or(&current), content)?;
        ui.transcript_text(&format!("Message delivered to '{to}' via local inbox\n"))?;
        Ok(CommandExit::Done)
    }
}
