//! `steno reference`: adds a reference from one thread to another.

use serde_json::json;
use steno_seeds::thread::{Operator, ReferenceBinding, ReferenceRequest};

use super::json_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ProjectThreads, ThreadFlags, word_parser};
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// Let a thread refer to another.
///
/// The context of the first then lists the other's assets too. A frozen reference also copies the other's current
/// files into `context/inherited`, and prints their paths.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Thread that refers.
    #[arg(value_name = "THREAD")]
    from: String,
    /// Thread to refer to.
    #[arg(value_name = "TARGET")]
    target: String,
    /// Whether to copy the target's files.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "frozen",
        value_parser = word_parser::<ReferenceBinding>(ReferenceBinding::WORDS)
    )]
    binding: ReferenceBinding,
    /// File or folder of the target to copy [default: all]; may be repeated.
    #[arg(long, value_name = "PATH")]
    scope: Vec<String>,
    #[command(flatten)]
    flags: ThreadFlags,
}

/// Runs the command.
pub(super) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let threads = ProjectThreads::open_existing(ui, env, &args.flags)?;
    let target = threads.find_thread(&args.target)?.id;
    let reference = ReferenceRequest {
        from: threads.find_thread(&args.from)?.id.to_string(),
        target: target.to_string(),
        binding: args.binding,
        scope: Some(args.scope.clone()),
        operator: Operator::User,
    };
    let made = threads.store.add_reference(&reference).map_err(explain_thread_error)?;
    threads.warn_missing_paths(ui, &target, &args.scope, &made.warnings)?;
    if args.flags.json {
        let row = json!({
            "ref_id": made.id,
            "from": reference.from,
            "target": reference.target,
            "binding": reference.binding,
            "snapshot_version": made.snapshot,
            "copied_paths": made.copied,
        });
        return json_line(ui, &row);
    }
    for path in &made.copied {
        ui.transcript_text(&format!("{path}\n"))?;
    }
    ui.status(format_args!("{} refers to {}", reference.from, reference.target));
    Ok(CommandExit::Done)
}
