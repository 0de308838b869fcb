//! `steno prune`: removes sessions that are older than the configuration allows.

use steno_store::forget::PlannedRemoval;
use steno_store::index::SessionFilter;

use crate::config::{Config, RETENTION_EXAMPLE};
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_removal::{RemovalOptions, SessionRemoval};
use crate::session_store::SessionStore;
use crate::ui::Ui;

/// Remove sessions that `[keep]` in config.toml no longer keeps.
///
/// Lists them and asks, as `steno forget` does. No session is removed by itself. Days count from the end of a session,
/// and 0 keeps sessions forever: `days = 365` below `[keep]` is for all sessions, `agents = { codex = 90 }` for those of
/// an agent, and `projects = { acme = 30 }`, which takes precedence, for those of a project.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    options: RemovalOptions,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let rules = Config::load(env)?.retention()?;
    if rules.is_empty() {
        let error = CommandError::user("config.toml does not limit how long sessions are kept");
        return Err(error.hint(RETENTION_EXAMPLE));
    }
    let store = SessionStore::new(env);
    let now = env.clock.now();
    let (_, expired) = store.query(ui, |index| {
        let mut expired = Vec::new();
        index.each_session(&SessionFilter::default(), None, &mut |listed| {
            if rules.is_expired(&listed.session, now) {
                expired.push((listed.session.agent, listed.session.id));
            }
        })?;
        Ok(expired)
    })?;
    if expired.is_empty() {
        ui.status("no session is older than config.toml allows");
        return Ok(CommandExit::Done);
    }
    let removal = |(agent, id): (String, _)| {
        Ok(PlannedRemoval::Session(store.vault.session_dir(&agent.parse()?, &id)))
    };
    let removals = expired.into_iter().map(removal).collect::<Result<Vec<_>, CommandError>>()?;
    SessionRemoval { ui, env, store: &store, options: &args.options, action: None }.run(removals)
}
