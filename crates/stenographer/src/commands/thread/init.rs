//! `steno init`: threads in a project, and the guide that tells agents of them.

use std::path::PathBuf;

use serde_json::json;
use steno_core::thread::guide::{Guide, GuideStatus, Outcome};

use super::json_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ProjectThreads, ThreadFlags, install_guide};
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// Make room for threads in a project, and tell agents how they work.
///
/// Makes the stores in `.leslie` where they are missing, and puts a guide into `AGENTS.md`, in a block of its own. What
/// stands around the block stays as it is. A new major version, and an older one, are asked about first. What is up
/// to date is not touched.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Ask nothing.
    #[arg(long)]
    yes: bool,
    /// The project's folder [default: this one].
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let place = ThreadFlags { project: args.project.clone(), json: args.json };
    let threads = ProjectThreads::for_flags(env, &place)?;
    threads.store.init().map_err(explain_thread_error)?;
    let outcome =
        install_guide(ui, threads.store.root(), args.yes).map_err(explain_thread_error)?;
    let next = Guide::ours().version;
    if args.json {
        let row = json!({
            "status": outcome.status.as_str(),
            "previous_version": outcome.previous,
            "next_version": next,
            "written": outcome.written,
        });
        return json_line(ui, &row);
    }
    writeln!(ui.out(), "{}", describe_outcome(&outcome, next))?;
    Ok(CommandExit::Done)
}

fn describe_outcome(outcome: &Outcome, next: &str) -> String {
    let previous = outcome.previous.as_deref().unwrap_or_default();
    match outcome.status {
        GuideStatus::Created => format!("AGENTS.md was made, with guide {next}"),
        GuideStatus::Appended => format!("AGENTS.md has guide {next} now, at its end"),
        GuideStatus::Updated if !outcome.written => format!("AGENTS.md has guide {next} already"),
        GuideStatus::Updated => format!("AGENTS.md has guide {next} now, before it was {previous}"),
        GuideStatus::Skipped => format!("AGENTS.md keeps guide {previous}"),
    }
}
