//! Prints contexts of chibi: logs, names, files.

use std::fs;
use std::path::Path;

use steno_seeds::chibi;

use steno_model::{EntryKind, Role};
use steno_seeds::chibi::ContextLockStatus;

use super::{ChibiContexts, ChibiStyle};
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

/// Items that `-n` can inspect.
const INSPECTABLE_ITEMS: [&str; 5] = ["system_prompt", "reflection", "todos", "goals", "list"];

impl ChibiContexts<'_> {
    /// Prints entries of the active conversation.
    pub(super) fn show_log(
        &self,
        ui: &mut Ui,
        name: &str,
        count: &str,
    ) -> Result<CommandExit, CommandError> {
        let count =
            count.parse().map_err(|_| CommandError::usage(format!("Invalid number: {count}")))?;
        let dir = self.existing_folder(name)?;
        let (lines, problems) = chibi::read_context_lines(&dir.join("context.jsonl"))?;
        ui.report_problems(&problems);
        let chosen = chibi::select_lines(&lines, count);
        ui.transcript_text(&chibi::render_log(chosen, self.style.log_style(), self.verbose))?;
        Ok(CommandExit::Done)
    }

    /// Prints facts about a context.
    pub(super) fn show_info(&self, ui: &mut Ui, name: &str) -> Result<CommandExit, CommandError> {
        let dir = self.existing_folder(name)?;
        let (what, count) = match self.style {
            ChibiStyle::Documented => ("Messages", self.count_messages(ui, &dir)?),
            ChibiStyle::V0_10_10 => ("Prompts", self.count_prompts(ui, &dir)?),
        };
        let mut text = format!("Context: {name}{}\n{what}: {count}\n", self.lock_label(&dir));
        let summary = read_text(&dir.join("summary.md"))?;
        if let Some(line) = summary.lines().next() {
            text += &format!("Summary: {line}\n");
        }
        ui.transcript_text(&text)?;
        Ok(CommandExit::Done)
    }

    /// Prints the names of all contexts.
    pub(super) fn list_contexts(
        &self,
        ui: &mut Ui,
        current: &str,
    ) -> Result<CommandExit, CommandError> {
        let mut text = String::new();
        for name in self.context_names() {
            let mark = if name == current { "*" } else { " " };
            let status = self.lock_label(&self.existing_folder(&name)?);
            text += &format!("{mark} {name}{status}\n");
        }
        ui.transcript_text(&text)?;
        Ok(CommandExit::Done)
    }

    /// Prints a file of a context.
    pub(super) fn inspect_item(
        &self,
        ui: &mut Ui,
        name: &str,
        thing: &str,
    ) -> Result<CommandExit, CommandError> {
        let dir = self.existing_folder(name)?;
        let prompts = self.base.join("prompts");
        let (content, nothing) = match thing {
            "system_prompt" => {
                let own = dir.join("system_prompt.md");
                let path = if own.exists() { own } else { prompts.join("chibi.md") };
                (read_text(&path)?, "(no system prompt set)")
            }
            "reflection" => (read_text(&prompts.join("reflection.md"))?, "(no reflection set)"),
            "todos" => (read_text(&dir.join("todos.md"))?, "(no todos)"),
            "goals" => (read_text(&dir.join("goals.md"))?, "(no goals)"),
            "list" => (format!("Inspectable items:\n  {}\n", INSPECTABLE_ITEMS.join("\n  ")), ""),
            other => {
                let error = CommandError::usage(format!("nothing to inspect: {other}"));
                return Err(error.hint(format!("it is one of {}", INSPECTABLE_ITEMS.join(", "))));
            }
        };
        let content = if content.is_empty() { nothing } else { &content };
        let end = if content.ends_with('\n') { "" } else { "\n" };
        ui.transcript_text(&format!("{content}{end}"))?;
        Ok(CommandExit::Done)
    }

    /// Counts the messages in the active conversation.
    fn count_messages(&self, ui: &mut Ui, dir: &Path) -> Result<usize, CommandError> {
        let (lines, problems) = chibi::read_context_lines(&dir.join("context.jsonl"))?;
        ui.report_problems(&problems);
        Ok(lines.iter().filter(|line| line.entry_type == "message").count())
    }

    /// Counts the prompts in the whole history.
    fn count_prompts(&self, ui: &mut Ui, dir: &Path) -> Result<usize, CommandError> {
        let mut count = 0;
        for bundle in chibi::READER.find_at(dir)?.iter().filter(|bundle| bundle.root == dir) {
            let transcript = chibi::read_context(bundle)?;
            ui.report_problems(&transcript.problems);
            let entries = transcript.entries.iter();
            count +=
                entries.filter(|it| it.role == Role::User && it.kind == EntryKind::Text).count();
        }
        Ok(count)
    }

    fn lock_label(&self, dir: &Path) -> &'static str {
        match chibi::context_lock_status(dir, &self.env.clock) {
            Some(ContextLockStatus::Active) => " [active]",
            Some(ContextLockStatus::Stale) => " [stale]",
            None => "",
        }
    }
}

/// Reads a file; empty if it does not exist.
fn read_text(path: &Path) -> Result<String, CommandError> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => {
            Err(CommandError::user(format!("could not read {}: {error}", path.display())))
        }
    }
}
