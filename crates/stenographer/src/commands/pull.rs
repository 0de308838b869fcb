//! `steno pull`: copies what others pushed to a remote.

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::team_access::TeamAccess;
use crate::ui::{Ui, count_noun};

/// Copy the team's sessions from a remote.
///
/// They go into a mirror, which `--from NAME` reads; this machine's own sessions stay as they are. Sessions that you have
/// forgotten on another machine are removed from this one too.
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
    let summary = access.pull(env)?;
    if args.json {
        serde_json::to_writer(ui.out(), &summary)?;
        writeln!(ui.out())?;
        return Ok(CommandExit::Done);
    }
    let sessions = count_noun(summary.sessions, "session");
    let mut words = vec![format!("pulled {sessions} from {}", access.settings.name)];
    if summary.removed > 0 {
        words.push(format!("{} removed", summary.removed));
    }
    words.push(format!("{} unchanged", summary.unchanged));
    ui.status(words.join(", "));
    if summary.sessions + summary.unchanged > 0 {
        let name = &access.settings.name;
        ui.status(format_args!("run `steno list --from {name}` to list the team's sessions"));
    }
    if summary.forgotten > 0 {
        let forgotten = count_noun(summary.forgotten, "session");
        ui.status(format_args!("{forgotten} removed here, as forgotten on another machine"));
    }
    Ok(CommandExit::Done)
}
