//! Holds an agent: it gets the signals that we get, and never outlives us.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};

#[cfg(unix)]
pub use self::unix::{
    Signals, close_stdin, close_stdout, end_by_signal_of, kill, plain, stdin, stdout, terminate,
};

/// How agents are started. Only a process itself can ask to end with its parent, so a program of ours asks, and then
/// becomes the agent.
#[derive(Clone, Debug)]
pub struct Leash {
    /// The program that calls [`become_agent`] when it is given `arguments`, our id, `--` and the agent's command.
    pub program: PathBuf,
    /// What it is given first.
    pub arguments: Vec<OsString>,
}

impl Leash {
    /// The command that runs the agent in a group of its own.
    #[cfg(target_os = "linux")]
    pub fn command(&self, agent: &[OsString]) -> Command {
        use std::os::unix::process::CommandExt;
        let mut leashed = Command::new(&self.program);
        leashed.args(&self.arguments).arg(std::process::id().to_string()).arg("--").args(agent);
        leashed.process_group(0);
        leashed
    }

    /// The command that runs the agent.
    #[cfg(not(target_os = "linux"))]
    pub fn command(&self, agent: &[OsString]) -> Command {
        let mut leashed = Command::new(&agent[0]);
        leashed.args(&agent[1..]);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut leashed, 0);
        leashed
    }
}

/// Becomes the agent, after asking to be killed when `parent` ends; returns only if that fails.
#[cfg(target_os = "linux")]
pub fn become_agent(parent: i32, command: &[OsString]) -> io::Error {
    use std::os::unix::process::CommandExt;

    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let asked = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
        return io::Error::other("the process that waits for the agent has ended");
    }
    if let Err(error) = asked {
        return error.into();
    }
    Command::new(&command[0]).args(&command[1..]).exec()
}

/// Where a process cannot ask to end with its parent, nobody asks us to become an agent.
#[cfg(not(target_os = "linux"))]
pub fn become_agent(_: i32, _: &[OsString]) -> io::Error {
    io::ErrorKind::Unsupported.into()
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::process::ExitStatusExt;
    use std::thread;

    use rustix::process::{Pid, Signal, kill_process_group};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    use signal_hook::low_level::emulate_default_handler;

    use super::{Child, ExitStatus, io};

    /// The signals that are passed on.
    const PASSED: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

    /// Signals that no longer end us.
    #[derive(Debug)]
    pub struct Signals(signal_hook::iterator::Signals);

    impl Signals {
        /// Takes them from now on; those that come before there is an agent wait for it.
        pub fn caught() -> io::Result<Self> {
            Ok(Self(signal_hook::iterator::Signals::new(PASSED)?))
        }

        /// Gives each to the agent and its group.
        pub fn pass_on_to(mut self, agent: &Child) {
            let Some(group) = group_of(agent) else { return };
            thread::spawn(move || {
                for signal in self.0.forever().filter_map(Signal::from_named_raw) {
                    // One that has ended needs none.
                    let _ = kill_process_group(group, signal);
                }
            });
        }
    }

    /// Asks an agent and its group to end.
    pub fn terminate(agent: &Child) {
        signal(agent, Signal::TERM);
    }

    /// Ends an agent and its group.
    pub fn kill(agent: &Child) {
        signal(agent, Signal::KILL);
    }

    fn signal(agent: &Child, signal: Signal) {
        if let Some(group) = group_of(agent) {
            // One that has ended needs none.
            let _ = kill_process_group(group, signal);
        }
    }

    fn group_of(agent: &Child) -> Option<Pid> {
        Pid::from_raw(i32::try_from(agent.id()).ok()?)
    }

    /// Ends as one does who is killed by a signal, if the agent was. What nobody can do by hand, such as to fail by
    /// a bad address, is told by the exit code.
    pub fn end_by_signal_of(status: ExitStatus) {
        let Some(signal) = status.signal() else { return };
        if PASSED.contains(&signal) || signal == signal_hook::consts::SIGKILL {
            let _ = emulate_default_handler(signal);
        }
        std::process::exit(128 + signal);
    }

    /// Our standard input, of which nothing is read ahead.
    pub fn stdin() -> io::Result<File> {
        Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
    }

    /// Our standard output, of which nothing is held back.
    pub fn stdout() -> io::Result<File> {
        Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
    }

    /// A pipe as a file.
    pub fn plain(pipe: impl Into<OwnedFd>) -> File {
        pipe.into().into()
    }

    /// Lets the editor know that nobody reads any more.
    pub fn close_stdin() {
        if let Ok(nothing) = File::open("/dev/null") {
            let _ = rustix::stdio::dup2_stdin(nothing);
        }
    }

    /// Lets the editor know that nothing more is said.
    pub fn close_stdout() {
        if let Ok(nothing) = File::options().write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(nothing);
        }
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use std::fs::File;
    use std::os::windows::io::{AsHandle, OwnedHandle};

    use super::{Child, ExitStatus, io};

    /// Signals are not known here.
    #[derive(Debug)]
    pub struct Signals;

    impl Signals {
        /// Nothing to take.
        pub fn caught() -> io::Result<Self> {
            Ok(Self)
        }

        /// Nothing to give.
        pub fn pass_on_to(self, _: &Child) {}
    }

    /// Waits for it to end by itself.
    pub fn terminate(_: &Child) {}

    /// Waits for it to end by itself.
    pub fn kill(_: &Child) {}

    /// Nobody is ended by a signal here.
    pub fn end_by_signal_of(_: ExitStatus) {}

    /// Our standard input, of which nothing is read ahead.
    pub fn stdin() -> io::Result<File> {
        Ok(io::stdin().as_handle().try_clone_to_owned()?.into())
    }

    /// Our standard output, of which nothing is held back.
    pub fn stdout() -> io::Result<File> {
        Ok(io::stdout().as_handle().try_clone_to_owned()?.into())
    }

    /// A pipe as a file.
    pub fn plain(pipe: impl Into<OwnedHandle>) -> File {
        pipe.into().into()
    }

    /// Ends with the process.
    pub fn close_stdin() {}

    /// Ends with the process.
    pub fn close_stdout() {}
}
#[cfg(not(unix))]
pub use self::elsewhere::{
    Signals, close_stdin, close_stdout, end_by_signal_of, kill, plain, stdin, stdout, terminate,
};
