//! The proxy: runs an agent between our standard input and output, records every byte and forwards it.

mod forward;

use std::fs::File;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use steno_core::Status;
use steno_core::agent::acp::wire::Side;
use steno_core::vault::record::Closing;

use self::forward::{ForwardProgress, Forwarder};
use crate::child::{self, CaughtSignals, ChildGroup, ChildLauncher, GroupWatch};
use crate::recording::{Assignment, ConnectionRecorder, Kept};

/// How long to wait for an agent's last output after it has ended: its own children may hold the pipe open.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// How long closing the record may take without progress. What is not sealed then, the next recorder seals.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs the agent of `assignment` between our standard input and output, until it ends; gives how it ended, and the sessions
/// that were recorded.
pub fn run(
    assignment: Assignment,
    launcher: &ChildLauncher,
) -> io::Result<(ExitStatus, Vec<Kept>)> {
    let signals = CaughtSignals::new()?;
    let (from_editor, to_editor) = (child::stdin_file()?, child::stdout_file()?);
    let mut command = launcher.command(&assignment.command, ChildGroup::Own);
    let mut agent = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    signals.forward_to_group(&agent);
    // Without it, only the agent itself ends when we are killed.
    let watch = GroupWatch::of_child(launcher, &agent).ok();
    let recorder = ConnectionRecorder::start(assignment);
    let forwarder =
        Forwarder { recorder: recorder.side(Side::Client), progress: ForwardProgress::default() };
    let input = child::pipe_file(agent.stdin.take().expect("it is piped"));
    // Ends with the process: an editor may keep its end open.
    start_forwarding(forwarder, from_editor, input, child::close_stdin)?;
    let progress = ForwardProgress::default();
    let forwarder = Forwarder { recorder: recorder.side(Side::Agent), progress: progress.clone() };
    let output = child::pipe_file(agent.stdout.take().expect("it is piped"));
    let forwarding = start_forwarding(forwarder, output, to_editor, child::close_stdout)?;
    let status = agent.wait()?;
    watch.into_iter().for_each(GroupWatch::dismiss);
    progress.restart_idle_time();
    while !forwarding.is_finished() && !progress.is_idle_for(LAST_OUTPUT_TIMEOUT) {
        thread::sleep(Duration::from_millis(1));
    }
    Ok((status, recorder.finish(closing(status), CLOSE_TIMEOUT)))
}

/// Forwards from one file to another on a thread of its own; calls `close` at the end.
fn start_forwarding(
    forwarder: Forwarder,
    from: File,
    to: File,
    close: fn(),
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("forwarder".to_owned()).spawn(move || {
        forwarder.forward(&from, &to);
        drop((from, to));
        close();
    })
}

/// How a connection ended.
fn closing(status: ExitStatus) -> Closing {
    if status.success() {
        return Closing { status: Status::Completed, reason: None };
    }
    let reason = Some(format!("the agent ended with {status}"));
    Closing { status: Status::Failed, reason }
}
