//! `steno init`: creates thread stores in a project, and the guide for agents.

use std::path::PathBuf;

use serde_json::json;
use steno_seeds::thread::guide::{GuideOutcome, GuideStatus, LeslieGuide};

use super::json_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ProjectThreads, ThreadFlags, install_guide};
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// Create thread stores in a project, and a guide for agents.
///
/// Creates missing stores in `.leslie`, and adds a guide to `AGENTS.md` as one block. Text outside of the block is
/// not changed. Asks before an update to a new major version or to an older one. A current guide is left as it is.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// Project folder [default: this one].
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
    let flags = ThreadFlags { project: args.project.clone(), json: args.json };
    let threads = ProjectThreads::for_flags(env, &flags)?;
    threads.store.init().map_err(explain_thread_error)?;
    let outcome =
        install_guide(ui, threads.store.root(), args.yes).map_err(explain_thread_error)?;
    let next = LeslieGuide::built_in().version;
    if args.json {
        let row = json!({
            "status": outcome.status.as_str(),
            "previous_version": outcome.previous_version,
            "next_version": next,
            "written": outcome.is_written,
        });
        return json_line(ui, &row);
    }
    writeln!(ui.out(), "{}", describe_outcome(&outcome, next))?;
    Ok(CommandExit::Done)
}

fn describe_outcome(outcome: &GuideOutcome, next: &str) -> String {
    let previous = outcome.previous_version.as_deref().unwrap_or_default();
    match outcome.status {
        GuideStatus::Created => format!("created AGENTS.md with guide {next}"),
        GuideStatus::Appended => format!("added guide {next} to AGENTS.md"),
        GuideStatus::Updated if !outcome.is_written => {
            format!("guide {next} in AGENTS.md is up to date")
        }
        GuideStatus::Updated => format!("updated the guide in AGENTS.md from {previous} to {next}"),
        GuideStatus::Skipped => format!("kept guide {previous} in AGENTS.md"),
    }
}
