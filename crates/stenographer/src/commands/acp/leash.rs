//! Holds an agent: it gets the signals that we get, and never outlives us.

use std::ffi::OsString;
use std::process::{Child, Command, ExitStatus};

use crate::error::CommandError;

#[cfg(unix)]
pub(super) use self::unix::{Signals, close_stdin, close_stdout, end_by_signal_of};

/// The command that runs the agent in a group of its own.
#[cfg(target_os = "linux")]
pub(super) fn leashed(command: &[OsString]) -> Result<Command, CommandError> {
    use std::os::unix::process::CommandExt;
    // Only a process itself can ask to end with its parent, so ours asks and then becomes the agent.
    let mut leashed = Command::new(crate::scene::Scene::program()?);
    leashed.arg("acp").arg(format!("--leash={}", std::process::id())).arg("--").args(command);
    leashed.process_group(0);
    Ok(leashed)
}

/// The command that runs the agent.
#[cfg(not(target_os = "linux"))]
pub(super) fn leashed(command: &[OsString]) -> Result<Command, CommandError> {
    let mut leashed = Command::new(&command[0]);
    leashed.args(&command[1..]);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut leashed, 0);
    Ok(leashed)
}

/// Becomes the agent, after asking to be killed when `parent` ends; returns only if that fails.
#[cfg(target_os = "linux")]
pub(super) fn become_agent(parent: i32, command: &[OsString]) -> CommandError {
    use std::os::unix::process::CommandExt;

    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let asked = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
        return CommandError::user("the process that waits for the agent has ended");
    }
    if let Err(error) = asked {
        return CommandError::user(error);
    }
    let error = Command::new(&command[0]).args(&command[1..]).exec();
    CommandError::user(format!("could not start {}: {error}", command[0].to_string_lossy()))
}

/// Where a process cannot ask to end with its parent, nobody asks us to become an agent.
#[cfg(not(target_os = "linux"))]
pub(super) fn become_agent(_: i32, command: &[OsString]) -> CommandError {
    CommandError::usage(format!("no leash here for {}", command[0].to_string_lossy()))
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::os::unix::process::ExitStatusExt;
    use std::thread;

    use rustix::process::{Pid, Signal, kill_process_group};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    use signal_hook::low_level::emulate_default_handler;

    use super::{Child, CommandError, ExitStatus};

    /// The signals that are passed on.
    const PASSED: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

    /// Signals that no longer end us.
    pub(crate) struct Signals(signal_hook::iterator::Signals);

    impl Signals {
        /// Takes them from now on; those that come before there is an agent wait for it.
        pub(crate) fn caught() -> Result<Self, CommandError> {
            Ok(Self(signal_hook::iterator::Signals::new(PASSED)?))
        }

        /// Gives each to the agent and its group.
        pub(crate) fn pass_on_to(mut self, agent: &Child) {
            let Some(group) = i32::try_from(agent.id()).ok().and_then(Pid::from_raw) else {
                return;
            };
            thread::spawn(move || {
                for signal in self.0.forever().filter_map(Signal::from_named_raw) {
                    // One that has ended needs none.
                    let _ = kill_process_group(group, signal);
                }
            });
        }
    }

    /// Ends as one does who is killed by a signal, if the agent was. What nobody can do by hand, such as to fail by
    /// a bad address, is told by the exit code.
    pub(crate) fn end_by_signal_of(status: ExitStatus) {
        let Some(signal) = status.signal() else { return };
        if PASSED.contains(&signal) || signal == signal_hook::consts::SIGKILL {
            let _ = emulate_default_handler(signal);
        }
        std::process::exit(128 + signal);
    }

    /// Lets the editor know that nobody reads any more.
    pub(crate) fn close_stdin() {
        if let Ok(nothing) = File::open("/dev/null") {
            let _ = rustix::stdio::dup2_stdin(nothing);
        }
    }

    /// Lets the editor know that nothing more is said.
    pub(crate) fn close_stdout() {
        if let Ok(nothing) = File::options().write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(nothing);
        }
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use super::{Child, CommandError, ExitStatus};

    /// Signals are not known here.
    pub(crate) struct Signals;

    impl Signals {
        /// Nothing to take.
        pub(crate) fn caught() -> Result<Self, CommandError> {
            Ok(Self)
        }

        /// Nothing to give.
        pub(crate) fn pass_on_to(self, _: &Child) {}
    }

    /// Nobody is ended by a signal here.
    pub(crate) fn end_by_signal_of(_: ExitStatus) {}

    /// Ends with the process.
    pub(crate) fn close_stdin() {}

    /// Ends with the process.
    pub(crate) fn close_stdout() {}
}
#[cfg(not(unix))]
pub(super) use self::elsewhere::{Signals, close_stdin, close_stdout, end_by_signal_of};
