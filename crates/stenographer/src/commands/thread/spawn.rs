//! `steno spawn`: a new thread.

use steno_core::thread::{Executor, Id, Inherit, ObjectiveStatus, Spawn};

use super::json_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ProjectThreads, ThreadFlags, word_parser};
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// Make a thread: a unit of work with a folder for its assets, and print its id.
///
/// No agent is started; `steno run --thread ID` does that.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What the thread is to achieve.
    intent: String,
    /// The objective it belongs to [default: that of its parent, or the only one that is active].
    #[arg(long, value_name = "ID")]
    objective: Option<String>,
    /// The thread it is spawned from.
    #[arg(long, value_name = "THREAD")]
    parent: Option<String>,
    /// Take over all assets of the parent.
    #[arg(long, requires = "parent", conflicts_with = "scope")]
    inherit: bool,
    /// Take over this file or folder of the parent; may be given several times.
    #[arg(long, value_name = "PATH", requires = "parent")]
    scope: Vec<String>,
    /// A thread whose assets it uses, copied as they are now; may be given several times.
    #[arg(long = "ref", value_name = "THREAD")]
    references: Vec<String>,
    /// A word to find it by; may be given several times.
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
    place: ThreadFlags,
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
    let threads = ProjectThreads::open_existing(ui, env, &args.place)?;
    let spawned =
        threads.store.spawn(&build_spawn(&threads, args)?).map_err(explain_thread_error)?;
    let parent = spawned.thread.parent_id.as_ref().unwrap_or(&spawned.thread.id);
    threads.warn_missing_paths(ui, parent, &args.scope, &spawned.warnings)?;
    if args.place.json {
        return json_line(ui, &spawned.thread);
    }
    writeln!(ui.out(), "{}", spawned.thread.id)?;
    Ok(CommandExit::Done)
}

fn build_spawn(threads: &ProjectThreads, args: &Args) -> Result<Spawn, CommandError> {
    let parent = args.parent.as_deref().map(|parent| threads.find_thread(parent)).transpose()?;
    let objective = match (&args.objective, &parent) {
        (Some(objective), _) => threads.find_objective(objective)?.id,
        (None, Some(parent)) => parent.objective.clone(),
        (None, None) => only_objective(threads)?,
    };
    let inherit = match (args.inherit, args.scope.is_empty()) {
        (true, _) => Inherit::Full,
        (false, false) => Inherit::Partial,
        (false, true) => Inherit::None,
    };
    Ok(Spawn {
        parent: parent.map(|parent| parent.id.to_string()),
        inherit,
        scope: args.scope.clone(),
        references: threads.find_ids(&args.references)?,
        tags: Some(args.tags.clone()),
        executor: args.executor,
        ..Spawn::new(&args.intent, objective.as_str())
    })
}

/// Without a word about its objective, a thread belongs to the only one there is.
fn only_objective(threads: &ProjectThreads) -> Result<Id, CommandError> {
    let mut active = threads.store.objectives().map_err(explain_thread_error)?;
    active.retain(|objective| objective.status == ObjectiveStatus::Active);
    match active.as_slice() {
        [only] => Ok(only.id.clone()),
        [] => Err(CommandError::user("no objective is active")
            .hint("make one with `steno objective create TITLE`")),
        several => Err(CommandError::user(format!("{} objectives are active", several.len()))
            .hint("name one with --objective; `steno objective list` shows them")),
    }
}
