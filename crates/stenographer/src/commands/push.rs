//! `steno push`: sends sessions to a remote.

use steno_store::index::SessionFilter;
use steno_team::{OutgoingSession, PushSummary, SessionPush, TeamError};
use steno_vault::SessionDir;

use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::team_access::{TeamAccess, explain_team_error};
use crate::ui::{Ui, count_noun};

/// Send sessions to a remote, for the team.
///
/// Sends what the remote lacks, of the projects and agents in config.toml, and removes what `steno forget` has removed
/// here. Keys, tokens and passwords are replaced before; the originals never leave this machine. Private sessions are not
/// sent, and removed if they were sent before. A push that was interrupted continues with the next one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The remote [default: the only one].
    name: Option<String>,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let access = TeamAccess::find(env, args.name.as_deref())?;
    let FinishedPush { summary, failures } = push_sessions(ui, env, &access)?;
    let mut exit = CommandExit::Done;
    for failure in failures {
        ui.warning(failure);
        exit = CommandExit::Failed;
    }
    report(ui, &access, &summary, args.json)?;
    Ok(exit)
}

/// What a push has done.
pub(crate) struct FinishedPush {
    pub(crate) summary: PushSummary,
    /// The sessions that could not be pushed, and why.
    pub(crate) failures: Vec<String>,
}

/// Pushes everything that the remote lacks.
pub(crate) fn push_sessions(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    access: &TeamAccess,
) -> Result<FinishedPush, CommandError> {
    Config::load(env)?.configure_redaction()?;
    let explain = |error| explain_team_error(error, &access.settings.name);
    let store = SessionStore::new(env);
    let SelectedForPush { outgoing: selected, private } = select_sessions(ui, env, &store, access)?;
    let mut remote = access.connect(env)?;
    let begun = SessionPush::begin(&mut remote, &access.settings, &access.folder);
    let mut push = begun.map_err(explain)?;
    push.push_tombstones(&store.vault).map_err(explain)?;
    push.withdraw_sessions(&private).map_err(explain)?;
    let mut progress = ui.start_progress("pushing");
    let (mut failures, mut fatal) = (Vec::new(), None);
    let count = selected.len();
    push.push_sessions(&selected, &mut |session, result| {
        progress.step_of(count, &session.heading.id);
        match result {
            Err(error @ (TeamError::Database { .. } | TeamError::Objects { .. })) => {
                fatal = Some(error);
            }
            Err(error) => failures.push(format!("{}: {error}", session.heading.id)),
            Ok(()) => {}
        }
    });
    drop(progress);
    let summary = push.finish().map_err(explain)?;
    if let Some(error) = fatal {
        return Err(explain(error));
    }
    Ok(FinishedPush { summary, failures })
}

/// Sessions of this store, as a push treats them.
struct SelectedForPush {
    /// Those of the remote's projects and agents that are not private.
    outgoing: Vec<OutgoingSession>,
    /// Those that must not be on any remote.
    private: Vec<SessionDir>,
}

/// Selects the sessions that go to the remote, and those that must not be there.
fn select_sessions(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    store: &SessionStore,
    access: &TeamAccess,
) -> Result<SelectedForPush, CommandError> {
    let rules = Config::load(env)?.privacy_rules(&env.home)?;
    let rules = rules.with_tagged_sessions(&store.vault)?;
    let (_, (listed, hidden)) = store.query(ui, |index| {
        let private = index.find_private_sessions(&rules)?;
        let (mut selected, mut hidden) = (Vec::new(), Vec::new());
        index.each_session(&SessionFilter::default(), None, &mut |listed| {
            let session = listed.session;
            if private.contains(&session.agent, session.id.as_str()) {
                hidden.push((session.agent, session.id));
            } else if access.settings.selects(&session.agent, session.project.as_deref()) {
                selected.push(session);
            }
        })?;
        Ok((selected, hidden))
    })?;
    let mut outgoing = Vec::new();
    for heading in listed {
        let dir = store.vault.session_dir(&heading.agent.parse()?, &heading.id);
        outgoing.push(OutgoingSession { dir, heading });
    }
    let private =
        hidden.into_iter().map(|(agent, id)| Ok(store.vault.session_dir(&agent.parse()?, &id)));
    let private = private.collect::<Result<_, CommandError>>()?;
    Ok(SelectedForPush { outgoing, private })
}

fn report(
    ui: &mut Ui,
    access: &TeamAccess,
    summary: &PushSummary,
    is_json: bool,
) -> Result<(), CommandError> {
    if is_json {
        serde_json::to_writer(ui.out(), summary)?;
        writeln!(ui.out())?;
        return Ok(());
    }
    let name = &access.settings.name;
    let sessions = count_noun(summary.sessions, "session");
    let mut words = vec![format!("pushed {sessions} to {name}")];
    if summary.secrets > 0 {
        words.push(format!("{} redacted", count_noun(summary.secrets, "secret")));
    }
    if summary.forgotten > 0 {
        words.push(format!("{} removed", count_noun(summary.forgotten, "forgotten session")));
    }
    if summary.withdrawn > 0 {
        words.push(format!("{} removed", count_noun(summary.withdrawn, "private session")));
    }
    words.push(format!("{} unchanged", summary.unchanged));
    ui.status(words.join(", "));
    if summary.shared > 0 {
        let shared = count_noun(summary.shared, "session");
        ui.status(format_args!("{shared} not pushed: they share a file with other sessions"));
    }
    if summary.expired > 0 {
        let expired = count_noun(summary.expired, "session");
        ui.status(format_args!("{expired} not pushed: older than {name} keeps them"));
    }
    if summary.refused > 0 {
        let refused = count_noun(summary.refused, "session");
        ui.status(format_args!("{refused} refused: forgotten on the remote; run `steno pull`"));
    }
    Ok(())
}
