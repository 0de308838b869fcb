//! `steno merge`: merges files of threads into another thread.

use serde_json::json;
use steno_seeds::thread::{ConflictStrategy, MergeRequest, Operator};

use super::json_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ProjectThreads, ThreadFlags, report_warnings};
use crate::thread_error::explain_thread_error;
use crate::ui::{Ui, count_noun};

/// Copy the files of threads into another thread.
///
/// Prints their paths. If files with the same name differ, the last thread wins, with a warning. Replaced files of the
/// target are kept in its `.meta/replaced`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Threads to copy from.
    #[arg(value_name = "THREAD", required = true)]
    sources: Vec<String>,
    /// Thread to copy into.
    #[arg(long = "into", value_name = "THREAD")]
    target: String,
    /// Only files with this path prefix; may be repeated.
    #[arg(long, value_name = "PATH")]
    scope: Vec<String>,
    /// Merge nothing if the threads differ in a file.
    #[arg(long)]
    strict: bool,
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
    let strict = [ConflictStrategy::Interactive, ConflictStrategy::Strict];
    let merge = MergeRequest {
        sources: threads.find_ids(&args.sources)?,
        target: threads.find_thread(&args.target)?.id.to_string(),
        scope: args.scope.clone(),
        strategy: strict[usize::from(args.strict)],
        operator: Operator::User,
    };
    let merged = threads.store.merge_threads(&merge).map_err(explain_thread_error)?;
    report_warnings(ui, &merged.warnings);
    if args.flags.json {
        let row = json!({
            "target": merge.target,
            "merged_files": merged.files,
            "conflicts": merged.conflicts,
        });
        return json_line(ui, &row);
    }
    let mut files = merged.files;
    files.sort();
    files.dedup();
    for path in &files {
        ui.transcript_text(&format!("{path}\n"))?;
    }
    for path in &merged.conflicts {
        ui.warning(format_args!("the threads differ in {path}; using the last one"));
    }
    ui.status(format_args!("{} in {}", count_noun(files.len() as u64, "file"), merge.target));
    Ok(CommandExit::Done)
}
