//! `steno list --threads`: lists the threads of a project, newest first.

use steno_seeds::thread::ThreadStatus;

use super::json_line;
use crate::commands::list::format_start;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ProjectThreads, ThreadFlags};
use crate::text_table::TextTable;
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// Selects threads.
pub(crate) struct ThreadFilter {
    pub(crate) status: Option<ThreadStatus>,
    pub(crate) limit: Option<usize>,
    pub(crate) flags: ThreadFlags,
}

/// Lists the threads.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    filter: &ThreadFilter,
) -> Result<CommandExit, CommandError> {
    let threads = ProjectThreads::open_existing(ui, env, &filter.flags)?;
    let mut threads = threads.store.list_threads(filter.status).map_err(explain_thread_error)?;
    threads.reverse();
    threads.truncate(filter.limit.unwrap_or(usize::MAX));
    if filter.flags.json {
        threads.iter().try_for_each(|thread| json_line(ui, thread).map(drop))?;
        return Ok(CommandExit::Done);
    }
    if threads.is_empty() {
        ui.status("no threads; create one with `steno spawn INTENT`");
        return Ok(CommandExit::Done);
    }
    let this_year = env.clock.now().in_zone(&env.zone).wall().year();
    let mut table = TextTable::new(["CREATED", "STATUS", "EXECUTOR", "ID", "TITLE"]);
    for thread in &threads {
        table.add_row([
            format_start(thread.created_at.in_zone(&env.zone), this_year),
            thread.status.to_string(),
            thread.executor.to_string(),
            thread.id.to_string(),
            thread.title.clone(),
        ]);
    }
    let text = table.render(ui.width());
    ui.listing_text(&text)?;
    Ok(CommandExit::Done)
}
