//! The proxy: runs an agent between our standard input and output, and records and forwards every byte.

mod forward;

use std::fs::File;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use steno_agents::protocols::acp::wire::AcpSide;
use steno_model::SessionStatus;
use steno_vault::record::RecordingClosing;

use self::forward::{ByteForwarder, ForwardProgress};
use crate::child::{self, CaughtSignals, ChildGroup, ChildLauncher, GroupWatch};
use crate::recording::{ConnectionRecorder, ConnectionSettings, KeptSession};

/// How long to wait for output after the agent has ended: its children may hold the pipe open.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// How long closing the record may take without progress. The next recorder seals what is left.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs an agent between our standard input and output until it ends. Returns its exit status and the recorded
/// sessions.
pub fn run_proxy(
    connection: ConnectionSettings,
    launcher: &ChildLauncher,
) -> io::Result<(ExitStatus, Vec<KeptSession>)> {
    let signals = CaughtSignals::new()?;
    let (from_editor, to_editor) = (child::stdin_file()?, child::stdout_file()?);
    let mut command = launcher.command(&connection.command, ChildGroup::Own);
    let mut agent = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    signals.forward_to_group(&agent);
    // Without the watch, only the agent itself ends when this process is killed.
    let watch = GroupWatch::watch_child(launcher, &agent).ok();
    let recorder = ConnectionRecorder::start(connection);
    let forwarder = ByteForwarder {
        recorder: recorder.side(AcpSide::Client),
        progress: ForwardProgress::default(),
    };
    let input = child::pipe_file(agent.stdin.take().expect("it is piped"));
    // This thread ends with the process: an editor may keep its end of the pipe open.
    start_forwarding(forwarder, from_editor, input, child::close_stdin)?;
    let progress = ForwardProgress::default();
    let forwarder =
        ByteForwarder { recorder: recorder.side(AcpSide::Agent), progress: progress.clone() };
    let output = child::pipe_file(agent.stdout.take().expect("it is piped"));
    let forwarding = start_forwarding(forwarder, output, to_editor, child::close_stdout)?;
    let status = agent.wait()?;
    watch.into_iter().for_each(GroupWatch::dismiss);
    progress.restart_idle_time();
    while !forwarding.is_finished() && !progress.is_idle_for(LAST_OUTPUT_TIMEOUT) {
        thread::sleep(Duration::from_millis(1));
    }
    Ok((status, recorder.finish(closing_for(status), CLOSE_TIMEOUT)))
}

/// Forwards from one file to another on a new thread, which calls `close` at the end.
fn start_forwarding(
    forwarder: ByteForwarder,
    from: File,
    to: File,
    close: fn(),
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("forwarder".to_owned()).spawn(move || {
        forwarder.forward_all(&from, &to);
        drop((from, to));
        close();
    })
}

/// The final status of the record.
fn closing_for(status: ExitStatus) -> RecordingClosing {
    if status.success() {
        return RecordingClosing { status: SessionStatus::Completed, reason: None };
    }
    let reason = Some(format!("the agent ended with {status}"));
    RecordingClosing { status: SessionStatus::Failed, reason }
}
