//! `steno list --threads`: the threads of a project, newest first.

use steno_core::thread::Status;

use super::json_line;
use crate::commands::list::started;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::table::Table;
use crate::thread_error::explain_thread_error;
use crate::threads::{Place, Threads};
use crate::ui::Ui;

/// Which threads are wanted.
pub(crate) struct Wanted {
    pub(crate) status: Option<Status>,
    pub(crate) limit: Option<usize>,
    pub(crate) place: Place,
}

/// Lists them.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, wanted: &Wanted) -> Result<Exit, CommandError> {
    let threads = Threads::open(ui, scene, &wanted.place)?;
    let mut threads = threads.store.threads(wanted.status).map_err(explain_thread_error)?;
    threads.reverse();
    threads.truncate(wanted.limit.unwrap_or(usize::MAX));
    if wanted.place.json {
        threads.iter().try_for_each(|thread| json_line(ui, thread).map(drop))?;
        return Ok(Exit::Done);
    }
    if threads.is_empty() {
        ui.status("no such threads; make one with `steno spawn INTENT`");
        return Ok(Exit::Done);
    }
    let this_year = scene.clock.now().in_zone(&scene.zone).wall().year();
    let mut table = Table::new(["CREATED", "STATUS", "EXECUTOR", "ID", "TITLE"]);
    for thread in &threads {
        table.row([
            started(thread.created_at.in_zone(&scene.zone), this_year),
            thread.status.to_string(),
            thread.executor.to_string(),
            thread.id.to_string(),
            thread.title.clone(),
        ]);
    }
    let text = table.render(ui.width());
    ui.listing_text(&text)?;
    Ok(Exit::Done)
}
