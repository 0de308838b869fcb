//! Reads a passphrase from a command or from the terminal. It is never an argument.

use std::process::{Command, Stdio};

use crate::error::CommandError;
use crate::ui::Ui;

/// Runs a command, and returns the first line that it prints.
pub(super) fn run_command(command: &str) -> Result<String, CommandError> {
    let words = shlex::split(command).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| CommandError::user("the passphrase command is not valid"))?;
    let failed = |reason: String| {
        let error = CommandError::user(format!("the passphrase command failed: {reason}"));
        error.hint("check STENO_PASSPHRASE_COMMAND, or passphrase_command in config.toml")
    };
    let output = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(format!("{}: {error}", words[0])))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next().filter(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_owned()),
        None => Err(failed("it printed nothing".to_owned())),
    }
}

/// Asks on the terminal, without showing what is typed.
pub(super) fn ask(ui: &mut Ui, question: &str) -> Result<String, CommandError> {
    let typed = {
        let _hidden = HiddenInput::start();
        ui.ask_line(question)?
    };
    ui.print_note("");
    match typed.trim_end_matches(['\r', '\n']) {
        "" => Err(CommandError::user("no passphrase was given")),
        text => Ok(text.to_owned()),
    }
}

/// Switches the echo of the terminal off until it is dropped.
struct HiddenInput {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

impl HiddenInput {
    #[cfg(unix)]
    fn start() -> Self {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let input = std::io::stdin();
        let before = tcgetattr(&input).ok();
        if let Some(mut hidden) = before.clone() {
            hidden.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(&input, OptionalActions::Flush, &hidden);
        }
        Self { before }
    }

    #[cfg(not(unix))]
    fn start() -> Self {
        Self {}
    }
}

#[cfg(unix)]
impl Drop for HiddenInput {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
