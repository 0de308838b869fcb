//! Shortens contexts by compaction and archiving.

use super::ChibiContexts;
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

/// A context with at most this many messages is not compacted.
const MIN_MESSAGES: usize = 2;

/// The context to compact, and how.
pub(super) struct CompactionRequest<'a> {
    pub(super) name: &'a str,
    /// Whether the user named the context.
    pub(super) is_named: bool,
    pub(super) summary: Option<&'a str>,
    pub(super) keep: usize,
}

impl ChibiContexts<'_> {
    /// Moves older entries to the archive and replaces them with a summary.
    pub(super) fn compact_context(
        &self,
        ui: &mut Ui,
        compaction: &CompactionRequest,
    ) -> Result<CommandExit, CommandError> {
        let name = compaction.name;
        let context = self.open_context(&self.existing_folder(name)?)?;
        let (lines, problems) = context.read_lines()?;
        ui.report_problems(&problems);
        let messages = lines.iter().filter(|line| line.entry_type == "message").count();
        if messages <= MIN_MESSAGES {
            let few = "already compact (2 or fewer messages)";
            let why = if messages == 0 { "already empty" } else { few };
            ui.print_note(format_args!("Context is {why}"));
            return Ok(CommandExit::Done);
        }
        let default = format!("Context compacted. {messages} messages archived to transcript.");
        let moved =
            context.compact_entries(compaction.summary.unwrap_or(&default), compaction.keep)?;
        if moved == 0 {
            ui.print_note("nothing to compact: all entries stay");
            return Ok(CommandExit::Done);
        }
        let text = match compaction.is_named {
            true => format!("Context '{name}' compacted\n"),
            false => "Context compacted (history saved to transcript)\n".to_owned(),
        };
        ui.transcript_text(&text)?;
        Ok(CommandExit::Done)
    }

    /// Moves the whole conversation to the archive.
    pub(super) fn archive_context(
        &self,
        ui: &mut Ui,
        name: &str,
    ) -> Result<CommandExit, CommandError> {
        self.open_context(&self.existing_folder(name)?)?.archive_all()?;
        ui.transcript_text(&format!("Context '{name}' archived (history saved to transcript)\n"))?;
        Ok(CommandExit::Done)
    }
}
