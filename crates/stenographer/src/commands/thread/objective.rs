//! `steno objective`: creates, lists and shows objectives.

use steno_seeds::thread::Objective;

use super::json_line;
use crate::commands::list::format_start;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ProjectThreads, ThreadFlags};
use crate::text_table::TextTable;
use crate::thread_error::explain_thread_error;
use crate::ui::{Ui, count_noun};

/// Create and list objectives, the goals of threads.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: ObjectiveAction,
}

#[derive(Debug, clap::Subcommand)]
enum ObjectiveAction {
    /// Create an objective and print its id.
    Create {
        /// Goal of the objective.
        title: String,
        #[command(flatten)]
        flags: ThreadFlags,
    },
    /// List the objectives, oldest first.
    List {
        #[command(flatten)]
        flags: ThreadFlags,
    },
    /// Show one objective.
    Status {
        /// Objective id, unique prefix, or `latest`.
        #[arg(value_name = "ID")]
        objective: String,
        #[command(flatten)]
        flags: ThreadFlags,
    },
}

/// Runs the command.
pub(super) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    match &args.action {
        ObjectiveAction::Create { title, flags } => create_objective(ui, env, title, flags),
        ObjectiveAction::List { flags } => {
            let objectives = ProjectThreads::open_existing(ui, env, flags)?
                .store
                .list_objectives()
                .map_err(explain_thread_error)?;
            print_objectives(ui, env, &objectives, flags.json)
        }
        ObjectiveAction::Status { objective, flags } => {
            let objective =
                ProjectThreads::open_existing(ui, env, flags)?.find_objective(objective)?;
            print_objectives(ui, env, &[objective], flags.json)
        }
    }
}

fn create_objective(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    title: &str,
    flags: &ThreadFlags,
) -> Result<CommandExit, CommandError> {
    if title.trim().is_empty() {
        return Err(CommandError::usage("an objective needs a title"));
    }
    let made = ProjectThreads::open_existing(ui, env, flags)?
        .store
        .create_objective(title)
        .map_err(explain_thread_error)?;
    if flags.json {
        return json_line(ui, &made);
    }
    writeln!(ui.out(), "{}", made.id)?;
    Ok(CommandExit::Done)
}

fn print_objectives(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    objectives: &[Objective],
    json: bool,
) -> Result<CommandExit, CommandError> {
    if json {
        objectives.iter().try_for_each(|objective| json_line(ui, objective).map(drop))?;
        return Ok(CommandExit::Done);
    }
    if objectives.is_empty() {
        ui.status("no objectives yet; create one with `steno objective create TITLE`");
        return Ok(CommandExit::Done);
    }
    let this_year = env.clock.now().in_zone(&env.zone).wall().year();
    let mut table = TextTable::new(["CREATED", "STATUS", "THREADS", "ID", "TITLE"]);
    for objective in objectives {
        table.add_row([
            format_start(objective.created_at.in_zone(&env.zone), this_year),
            objective.status.to_string(),
            count_noun(objective.thread_ids.len() as u64, "thread"),
            objective.id.to_string(),
            objective.title.clone(),
        ]);
    }
    let text = table.render(ui.width());
    ui.listing_text(&text)?;
    Ok(CommandExit::Done)
}
