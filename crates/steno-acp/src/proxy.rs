//! The proxy: runs an agent between our standard input and output, and records and forwards every byte.

mod forward;
mod history;

use std::fs::File;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use steno_agents::protocols::acp::wire::AcpSide;
use steno_model::SessionStatus;
use steno_vault::record::RecordingClosing;

use self::forward::{ByteForwarder, ForwardProgress};
use self::history::{HistoryAnswerer, HistoryForwarder, SharedOutput};
pub use self::history::{HistorySession, LoadedSession, SessionHistory};
use crate::child::{self, CaughtSignals, ChildGroup, ChildLauncher, GroupWatch};
use crate::recording::{ConnectionRecorder, ConnectionSettings, KeptSession};

/// How long to wait for output after the agent has ended: its children may hold the pipe open.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// How long closing the record may take without progress. The next recorder seals what is left.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs an agent between our standard input and output until it ends. Returns its exit status and the recorded
/// sessions. With a history, answers `session/list` and `session/load` for an agent that cannot.
pub fn run_proxy(
    connection: ConnectionSettings,
    launcher: &ChildLauncher,
    history: Option<Arc<dyn SessionHistory>>,
) -> io::Result<(ExitStatus, Vec<KeptSession>)> {
    let signals = CaughtSignals::new()?;
    let (from_editor, to_editor) = (child::stdin_file()?, child::stdout_file()?);
    let mut command = launcher.command(&connection.command, ChildGroup::Own);
    let mut agent = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    signals.forward_to_group(&agent);
    // Without the watch, only the agent itself ends when this process is killed.
    let watch = GroupWatch::watch_child(launcher, &agent).ok();
    let recorder = ConnectionRecorder::start(connection);
    let pipes = ProxyPipes {
        from_editor,
        to_editor,
        to_agent: child::pipe_file(agent.stdin.take().expect("it is piped")),
        from_agent: child::pipe_file(agent.stdout.take().expect("it is piped")),
    };
    let progress = ForwardProgress::default();
    let forwarding = match history {
        None => pipes.forward_bytes(&recorder, &progress)?,
        Some(history) => pipes.forward_lines(&recorder, &progress, history)?,
    };
    let status = agent.wait()?;
    watch.into_iter().for_each(GroupWatch::dismiss);
    progress.restart_idle_time();
    while !forwarding.is_finished() && !progress.is_idle_for(LAST_OUTPUT_TIMEOUT) {
        thread::sleep(Duration::from_millis(1));
    }
    Ok((status, recorder.finish(closing_for(status), CLOSE_TIMEOUT)))
}

/// The pipes between the editor, this process and the agent.
struct ProxyPipes {
    from_editor: File,
    to_editor: File,
    to_agent: File,
    from_agent: File,
}

impl ProxyPipes {
    /// Forwards every byte in both directions. Returns the thread that forwards what the agent sends.
    ///
    /// The other thread ends with the process: an editor may keep its end of the pipe open.
    fn forward_bytes(
        self,
        recorder: &ConnectionRecorder,
        progress: &ForwardProgress,
    ) -> io::Result<JoinHandle<()>> {
        let Self { from_editor, to_editor, to_agent, from_agent } = self;
        let forwarder = ByteForwarder {
            recorder: recorder.side(AcpSide::Client),
            progress: ForwardProgress::default(),
        };
        start_forwarding(move || {
            forwarder.forward_all(&from_editor, &to_agent);
            drop((from_editor, to_agent));
            child::close_stdin();
        })?;
        let forwarder =
            ByteForwarder { recorder: recorder.side(AcpSide::Agent), progress: progress.clone() };
        start_forwarding(move || {
            forwarder.forward_all(&from_agent, &to_editor);
            drop((from_agent, to_editor));
            child::close_stdout();
        })
    }

    /// Forwards every line in both directions, except those that the history answers.
    fn forward_lines(
        self,
        recorder: &ConnectionRecorder,
        progress: &ForwardProgress,
        history: Arc<dyn SessionHistory>,
    ) -> io::Result<JoinHandle<()>> {
        let Self { from_editor, to_editor, to_agent, from_agent } = self;
        let editor = SharedOutput::new(to_editor);
        let answerer = Arc::new(HistoryAnswerer::new(history));
        let forwarder = |side, progress| HistoryForwarder {
            side,
            answerer: answerer.clone(),
            recorder: recorder.side(side),
            progress,
            editor: editor.clone(),
        };
        let from_client = forwarder(AcpSide::Client, ForwardProgress::default());
        start_forwarding(move || {
            from_client.forward_all(&from_editor, Some(&to_agent));
            drop((from_editor, to_agent));
            child::close_stdin();
        })?;
        let from_child = forwarder(AcpSide::Agent, progress.clone());
        start_forwarding(move || {
            from_child.forward_all(&from_agent, None);
            drop(from_agent);
            child::close_stdout();
        })
    }
}

fn start_forwarding(forward: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("forwarder".to_owned()).spawn(forward)
}

/// The final status of the record.
fn closing_for(status: ExitStatus) -> RecordingClosing {
    if status.success() {
        return RecordingClosing { status: SessionStatus::Completed, reason: None };
    }
    let reason = Some(format!("the agent ended with {status}"));
    RecordingClosing { status: SessionStatus::Failed, reason }
}
