//! Prints all threads of a project as a tree by objective and parent.

use steno_seeds::thread::{Objective, Thread};

use super::super::json_line;
use super::STORE_HINT;
use crate::error::{CommandError, CommandExit};
use crate::project_threads::ProjectThreads;
use crate::text_table::fit_columns;
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// Prints all threads; as JSON, one per line.
pub(super) fn print_overview(
    ui: &mut Ui,
    threads: &ProjectThreads,
    json: bool,
) -> Result<CommandExit, CommandError> {
    let all = threads.store.list_threads(None).map_err(explain_thread_error)?;
    if json {
        all.iter().try_for_each(|thread| json_line(ui, thread).map(drop))?;
        return Ok(CommandExit::Done);
    }
    let objectives = threads.store.list_objectives().map_err(explain_thread_error)?;
    if objectives.is_empty() && all.is_empty() {
        ui.status("no threads yet; create an objective with `steno objective create TITLE`");
        ui.status(STORE_HINT);
        return Ok(CommandExit::Done);
    }
    let mut tree = ThreadTree { all: &all, text: String::new(), width: ui.width() };
    for objective in &objectives {
        tree.push_objective(objective);
    }
    let known = |thread: &&Thread| objectives.iter().any(|it| it.id == thread.objective);
    for thread in all.iter().filter(|thread| !known(thread)) {
        tree.push_thread(thread, 0);
    }
    ui.listing_text(&tree.text)?;
    Ok(CommandExit::Done)
}

struct ThreadTree<'a> {
    all: &'a [Thread],
    text: String,
    width: usize,
}

impl ThreadTree<'_> {
    fn push_objective(&mut self, objective: &Objective) {
        self.push_line(&format!("{} {} {}", objective.id, objective.status, objective.title));
        let all = self.all;
        for thread in all.iter().filter(|thread| thread.objective == objective.id) {
            // A thread with a parent in another objective is a root here.
            let parent = all.iter().find(|other| thread.parent_id.as_ref() == Some(&other.id));
            if parent.is_none_or(|parent| parent.objective != objective.id) {
                self.push_with_children(thread, 1);
            }
        }
    }

    fn push_with_children(&mut self, thread: &Thread, depth: usize) {
        self.push_thread(thread, depth);
        // The limit stops at cycles in a damaged store.
        if depth > 40 {
            return;
        }
        let all = self.all;
        let is_child = |child: &&Thread| {
            child.parent_id.as_ref() == Some(&thread.id) && child.objective == thread.objective
        };
        for child in all.iter().filter(is_child) {
            self.push_with_children(child, depth + 1);
        }
    }

    fn push_thread(&mut self, thread: &Thread, depth: usize) {
        let indent = "  ".repeat(depth);
        self.push_line(&format!("{indent}{} {} {}", thread.id, thread.status, thread.title));
    }

    fn push_line(&mut self, line: &str) {
        self.text.push_str(&fit_columns(&line.replace(['\n', '\t'], " "), self.width));
        self.text.push('\n');
    }
}
