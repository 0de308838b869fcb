//! `steno reindex`: rebuilds the index from the vault.

use steno_store::index::Index;

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::ui::{Ui, count_noun};

/// Rebuild the index from the vault.
///
/// The index only serves searches and counts; no data is lost with it. A damaged index is rebuilt automatically.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the number of sessions as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let index = Index::rebuild(&env.store, None)?;
    let store = SessionStore::new(env);
    let taken = store.update_index(ui, &index)?;
    if args.json {
        serde_json::to_writer(ui.out(), &serde_json::json!({ "sessions": taken }))?;
        writeln!(ui.out())?;
    }
    ui.status(format_args!("{} indexed", count_noun(taken as u64, "session")));
    store.query_all(ui, |_| Ok(()))?;
    Ok(CommandExit::Done)
}
