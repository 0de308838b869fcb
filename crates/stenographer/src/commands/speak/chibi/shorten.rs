//! Shortening contexts: compaction and archiving.

use super::Contexts;
use crate::error::{CommandError, Exit};
use crate::ui::Ui;

/// A context with so few messages is not compacted.
const FEW_MESSAGES: usize = 2;

/// What is to be compacted, and how.
pub(super) struct Compaction<'a> {
    pub(super) name: &'a str,
    /// Whether the context was named, rather than the current one meant.
    pub(super) is_named: bool,
    pub(super) summary: Option<&'a str>,
    pub(super) keep: usize,
}

impl Contexts<'_> {
    /// Moves older entries to the archive and puts a summary in their place.
    pub(super) fn compact(
        &self,
        ui: &mut Ui,
        compaction: &Compaction,
    ) -> Result<Exit, CommandError> {
        let name = compaction.name;
        let context = self.open(&self.folder(name)?)?;
        let (lines, problems) = context.lines()?;
        ui.problems(&problems);
        let messages = lines.iter().filter(|line| line.entry_type == "message").count();
        if messages <= FEW_MESSAGES {
            let few = "already compact (2 or fewer messages)";
            let why = if messages == 0 { "already empty" } else { few };
            ui.note(format_args!("Context is {why}"));
            return Ok(Exit::Done);
        }
        let default = format!("Context compacted. {messages} messages archived to transcript.");
        let moved = context.compact(compaction.summary.unwrap_or(&default), compaction.keep)?;
        if moved == 0 {
            ui.note("nothing to compact: all entries stay");
            return Ok(Exit::Done);
        }
        let text = match compaction.is_named {
            true => format!("Context '{name}' compacted\n"),
            false => "Context compacted (history saved to transcript)\n".to_owned(),
        };
        ui.transcript_text(&text)?;
        Ok(Exit::Done)
    }

    /// Moves the whole conversation to the archive.
    pub(super) fn archive(&self, ui: &mut Ui, name: &str) -> Result<Exit, CommandError> {
        self.open(&self.folder(name)?)?.archive()?;
        ui.transcript_text(&format!("Context '{name}' archived (history saved to transcript)\n"))?;
        Ok(Exit::Done)
    }
}
