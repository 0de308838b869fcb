//! The agent's process and the pipes to it. Each message is recorded before it is sent or handled.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use steno_agents::protocols::acp::wire::AcpSide;
use steno_vault::record::RecordingClosing;

use super::AgentExit;
use super::error::ClientError;
use super::inbox::{ClientHandle, ClientInbox, ClientInput};
use crate::child::{self, ChildGroup, ChildLauncher, GroupWatch};
use crate::recording::{ConnectionRecorder, ConnectionSettings, SideRecorder};

/// How long an agent may take to end after `SIGTERM`.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to wait for the last output: other processes may hold the agent's pipes open.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// How long to wait for a prompt to be on disk.
const SYNC_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait for the rest of the record.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(60);

/// How many bytes of standard error are kept.
const MAX_STDERR_TAIL: usize = 2000;

/// An agent's process and the pipes to it.
#[derive(Debug)]
pub(super) struct AgentConnection {
    agent: Child,
    /// Ends the agent's child processes if this process is killed.
    watch: Option<GroupWatch>,
    /// The queue of messages to the agent. An agent that does not read blocks only the thread that writes.
    outgoing: Option<Sender<Vec<u8>>>,
    client_side: SideRecorder,
    recorder: ConnectionRecorder,
    /// The threads that read standard output and standard error.
    readers: [JoinHandle<()>; 2],
    stderr_tail: Arc<Mutex<Vec<u8>>>,
}

impl AgentConnection {
    /// Starts the agent in its project folder.
    pub(super) fn start(
        connection: ConnectionSettings,
        launcher: &ChildLauncher,
        handle: ClientHandle,
    ) -> Result<Self, ClientError> {
        let program = || connection.command[0].to_string_lossy().into_owned();
        let mut command = launcher.command(&connection.command, ChildGroup::Own);
        command.current_dir(&connection.project).envs(connection.variables.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut agent =
            command.spawn().map_err(|source| ClientError::Start { program: program(), source })?;
        let watch = GroupWatch::watch_child(launcher, &agent).ok();
        let (input, output, stderr) =
            (agent.stdin.take(), agent.stdout.take(), agent.stderr.take());
        let recorder = ConnectionRecorder::start(connection);
        let (client_side, agent_side) =
            (recorder.side(AcpSide::Client), recorder.side(AcpSide::Agent));
        let stderr_tail = Arc::<Mutex<Vec<u8>>>::default();
        let shared_tail = Arc::clone(&stderr_tail);
        let (outgoing, messages) = mpsc::channel();
        let writer_handle = handle.clone();
        thread::spawn(move || write_to_agent(input, &messages, &writer_handle));
        let readers = [
            thread::spawn(move || read_from_agent(output, agent_side, &handle)),
            thread::spawn(move || keep_stderr_tail(stderr, &shared_tail)),
        ];
        Ok(Self {
            agent,
            watch,
            outgoing: Some(outgoing),
            client_side,
            recorder,
            readers,
            stderr_tail,
        })
    }

    /// Queues a message for the agent. A prompt is on disk before that: its consequences may end this process.
    pub(super) fn send_message(&mut self, message: &Value) -> Result<(), ClientError> {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.client_side.record(&line);
        if message["method"] == "session/prompt" {
            self.sync_record();
        }
        let sent = self.outgoing.as_ref().is_some_and(|outgoing| outgoing.send(line).is_ok());
        match sent {
            true => Ok(()),
            false => Err(ClientError::InputClosed(std::io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Waits until all messages so far are on disk, or a timeout passes.
    pub(super) fn sync_record(&self) {
        self.recorder.sync(SYNC_TIMEOUT);
    }

    /// Ends the agent, which has `time` to end by itself, and closes the record.
    pub(super) fn shut_down(
        mut self,
        closing: RecordingClosing,
        time: Duration,
        inbox: &ClientInbox,
    ) -> AgentExit {
        drop(self.outgoing.take());
        let ended = wait_for_end(&mut self.agent, time, inbox);
        if ended.is_none() {
            child::terminate_group(&self.agent);
            if wait_for_end(&mut self.agent, TERMINATE_TIMEOUT, inbox).is_none() {
                child::kill_group(&self.agent);
                let _ = self.agent.wait();
            }
        }
        self.watch.take().into_iter().for_each(GroupWatch::dismiss);
        let until = Instant::now() + LAST_OUTPUT_TIMEOUT;
        while !self.readers.iter().all(JoinHandle::is_finished) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        let stderr_tail = self.stderr_tail.lock().unwrap_or_else(PoisonError::into_inner);
        let stderr_tail = String::from_utf8_lossy(&stderr_tail).trim().to_owned();
        let signal = ended.and_then(child::exit_signal);
        AgentExit { sessions: self.recorder.finish(closing, CLOSE_TIMEOUT), stderr_tail, signal }
    }
}

/// Waits until the agent has ended. `None` if that takes too long or the user interrupts.
fn wait_for_end(agent: &mut Child, limit: Duration, inbox: &ClientInbox) -> Option<ExitStatus> {
    let until = Instant::now() + limit;
    loop {
        match agent.try_wait() {
            Ok(None) if Instant::now() < until && !inbox.was_interrupted() => {
                thread::sleep(Duration::from_millis(2));
            }
            Ok(ended) => return ended,
            Err(_) => return None,
        }
    }
}

/// Writes queued messages to the agent, and closes its input after the last one.
fn write_to_agent(input: Option<ChildStdin>, messages: &Receiver<Vec<u8>>, handle: &ClientHandle) {
    let Some(mut input) = input else { return };
    for message in messages {
        if let Err(error) = input.write_all(&message).and_then(|()| input.flush()) {
            // If the agent has ended, that explains more than this error. Let it be reported first.
            thread::sleep(LAST_OUTPUT_TIMEOUT);
            handle.send(ClientInput::WriteFailed(error));
            return;
        }
    }
}

/// Reads the agent's messages until it ends. Lines other than JSON are only recorded.
fn read_from_agent(output: Option<ChildStdout>, mut recorder: SideRecorder, handle: &ClientHandle) {
    let mut lines = output.map(BufReader::new);
    let mut line = Vec::new();
    while let Some(output) = &mut lines {
        line.clear();
        match output.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => recorder.record(&line),
        }
        if let Ok(message) = serde_json::from_slice(&line) {
            handle.send(ClientInput::AgentLine(message));
        }
    }
    handle.send(ClientInput::AgentClosed);
}

/// Keeps the last bytes of the agent's standard error.
fn keep_stderr_tail(stderr: Option<ChildStderr>, tail: &Mutex<Vec<u8>>) {
    let Some(mut stderr) = stderr else { return };
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer) {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&buffer[..count]);
        let surplus = tail.len().saturating_sub(MAX_STDERR_TAIL);
        tail.drain(..surplus);
    }
}
