//! `steno completions`: prints the completion script for a shell.

use clap_complete::env::Shells;

use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;
use crate::value_completion::COMPLETION_VARIABLE;

/// Completes at once if zsh has loaded the script as the function `_steno`, because the first completion was asked for.
const ZSH_FIRST_COMPLETION: &[u8] =
    b"\n[[ $funcstack[1] == _steno ]] && _clap_dynamic_completer_steno \"$@\"\n";

/// Print a shell's completion script.
///
/// Source it when the shell starts. bash and zsh: `source <(steno completions bash)`, or zsh, in the shell's rc file.
/// fish: `steno completions fish | source`. zsh also loads it from a file `_steno` in `fpath`. The script asks Steno itself, so it completes session ids, agents,
/// projects, models and threads too.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell.
    #[arg(value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    shell: String,
}

/// Runs the command.
pub(crate) fn run(ui: &mut Ui, args: &Args) -> Result<CommandExit, CommandError> {
    let shells = Shells::builtins();
    let shell = shells.completer(&args.shell).ok_or("unknown shell")?;
    // Buffered: a shell that closes the pipe is not an error.
    let mut script = Vec::new();
    shell.write_registration(COMPLETION_VARIABLE, "steno", "steno", "steno", &mut script)?;
    if args.shell == "zsh" {
        script.extend_from_slice(ZSH_FIRST_COMPLETION);
    }
    ui.out().write_all(&script)?;
    Ok(CommandExit::Done)
}
