//! `steno objective`: what threads work towards.

use steno_core::thread::Objective;

use super::json_line;
use crate::commands::list::started;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::table::Table;
use crate::thread_error::explain_thread_error;
use crate::threads::{Place, Threads};
use crate::ui::{Ui, count};

/// Make and list objectives: what threads work towards.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make an objective and print its id.
    Create {
        /// What is to be achieved.
        title: String,
        #[command(flatten)]
        place: Place,
    },
    /// List the objectives, oldest first.
    List {
        #[command(flatten)]
        place: Place,
    },
    /// Show one objective.
    Status {
        /// The objective: its id, the beginning of one, or `latest`.
        #[arg(value_name = "ID")]
        objective: String,
        #[command(flatten)]
        place: Place,
    },
}

/// Runs the command.
pub(super) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    match &args.action {
        Action::Create { title, place } => create(ui, scene, title, place),
        Action::List { place } => {
            let objectives = Threads::open(ui, scene, place)?
                .store
                .objectives()
                .map_err(explain_thread_error)?;
            print(ui, scene, &objectives, place.json)
        }
        Action::Status { objective, place } => {
            let objective = Threads::open(ui, scene, place)?.objective(objective)?;
            print(ui, scene, &[objective], place.json)
        }
    }
}

fn create(ui: &mut Ui, scene: &Scene, title: &str, place: &Place) -> Result<Exit, CommandError> {
    if title.trim().is_empty() {
        return Err(CommandError::usage("an objective needs a title"));
    }
    let made = Threads::open(ui, scene, place)?
        .store
        .create_objective(title)
        .map_err(explain_thread_error)?;
    if place.json {
        return json_line(ui, &made);
    }
    writeln!(ui.out(), "{}", made.id)?;
    Ok(Exit::Done)
}

fn print(
    ui: &mut Ui,
    scene: &Scene,
    objectives: &[Objective],
    json: bool,
) -> Result<Exit, CommandError> {
    if json {
        objectives.iter().try_for_each(|objective| json_line(ui, objective).map(drop))?;
        return Ok(Exit::Done);
    }
    if objectives.is_empty() {
        ui.status("no objectives yet; make one with `steno objective create TITLE`");
        return Ok(Exit::Done);
    }
    let this_year = scene.clock.now().in_zone(&scene.zone).wall().year();
    let mut table = Table::new(["CREATED", "STATUS", "THREADS", "ID", "TITLE"]);
    for objective in objectives {
        table.row([
            started(objective.created_at.in_zone(&scene.zone), this_year),
            objective.status.to_string(),
            count(objective.thread_ids.len() as u64, "thread"),
            objective.id.to_string(),
            objective.title.clone(),
        ]);
    }
    let text = table.render(ui.width());
    ui.listing_text(&text)?;
    Ok(Exit::Done)
}
