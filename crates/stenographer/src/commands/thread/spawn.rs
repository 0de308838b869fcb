//! `steno spawn`: creates a thread.

use steno_seeds::thread::{Executor, Inheritance, LeslieId, ObjectiveStatus, SpawnRequest};

use super::json_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ProjectThreads, ThreadFlags, word_parser};
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// Create a thread and print its id.
///
/// A thread is a unit of work with a folder for its assets. This does not start an agent; `steno run --thread ID` does.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Task of the thread.
    intent: String,
    /// Objective of the thread [default: that of its parent, or the only active one].
    #[arg(long, value_name = "ID")]
    objective: Option<String>,
    /// Parent thread.
    #[arg(long, value_name = "THREAD")]
    parent: Option<String>,
    /// Inherit all assets of the parent.
    #[arg(long, requires = "parent", conflicts_with = "scope")]
    inherit: bool,
    /// Inherit this file or folder of the parent; may be repeated.
    #[arg(long, value_name = "PATH", requires = "parent")]
    scope: Vec<String>,
    /// Refer to this thread and copy its current assets; may be repeated.
    #[arg(long = "ref", value_name = "THREAD")]
    references: Vec<String>,
    /// Add a tag; may be repeated.
    #[arg(long = "tag", value_name = "WORD")]
    tags: Vec<String>,
    /// Who will work on it.
    #[arg(
        long,
        value_name = "WHO",
        default_value = "agent",
        value_parser = word_parser::<Executor>(Executor::WORDS)
    )]
    executor: Executor,
    #[command(flatten)]
    flags: ThreadFlags,
}

/// Runs the command.
pub(super) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    if args.intent.trim().is_empty() {
        return Err(CommandError::usage("a thread needs an intent"));
    }
    let threads = ProjectThreads::open_existing(ui, env, &args.flags)?;
    let spawned =
        threads.store.spawn_thread(&build_spawn(&threads, args)?).map_err(explain_thread_error)?;
    let parent = spawned.thread.parent_id.as_ref().unwrap_or(&spawned.thread.id);
    threads.warn_missing_paths(ui, parent, &args.scope, &spawned.warnings)?;
    if args.flags.json {
        return json_line(ui, &spawned.thread);
    }
    writeln!(ui.out(), "{}", spawned.thread.id)?;
    Ok(CommandExit::Done)
}

fn build_spawn(threads: &ProjectThreads, args: &Args) -> Result<SpawnRequest, CommandError> {
    let parent = args.parent.as_deref().map(|parent| threads.find_thread(parent)).transpose()?;
    let objective = match (&args.objective, &parent) {
        (Some(objective), _) => threads.find_objective(objective)?.id,
        (None, Some(parent)) => parent.objective.clone(),
        (None, None) => only_objective(threads)?,
    };
    let inherit = match (args.inherit, args.scope.is_empty()) {
        (true, _) => Inheritance::Full,
        (false, false) => Inheritance::Partial,
        (false, true) => Inheritance::None,
    };
    Ok(SpawnRequest {
        parent: parent.map(|parent| parent.id.to_string()),
        inherit,
        scope: args.scope.clone(),
        references: threads.find_ids(&args.references)?,
        tags: Some(args.tags.clone()),
        executor: args.executor,
        ..SpawnRequest::new(&args.intent, objective.as_str())
    })
}

/// Returns the only active objective, for a thread without an explicit one.
fn only_objective(threads: &ProjectThreads) -> Result<LeslieId, CommandError> {
    let mut active = threads.store.list_objectives().map_err(explain_thread_error)?;
    active.retain(|objective| objective.status == ObjectiveStatus::Active);
    match active.as_slice() {
        [only] => Ok(only.id.clone()),
        [] => Err(CommandError::user("no active objective")
            .hint("create one with `steno objective create TITLE`")),
        several => Err(CommandError::user(format!("{} active objectives", several.len()))
            .hint("choose one with --objective; `steno objective list` shows them")),
    }
}
