//! The agent's process, and the wire to it. Each message of either side is recorded before it is used.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use steno_core::agent::acp::wire::Side;
use steno_core::vault::record::Closing;

use super::Left;
use super::error::ClientError;
use super::voice::{Ears, Heard, Voice};
use crate::child::{self, ChildGroup, ChildLauncher, GroupWatch};
use crate::recording::{Assignment, ConnectionRecorder, SideRecorder};

/// How long an agent may take to end once it was told to.
const END: Duration = Duration::from_secs(2);

/// How long its last words may take that others of its programs hold back.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long keeping a prompt may take.
const KEEPING: Duration = Duration::from_secs(5);

/// How long taking down the rest may take.
const WRITING: Duration = Duration::from_secs(60);

/// Bytes of an agent's complaints that are kept in mind.
const COMPLAINT: usize = 2000;

/// An agent and the wire to it.
#[derive(Debug)]
pub(super) struct Link {
    agent: Child,
    /// Ends what the agent has started if we are killed.
    watch: Option<GroupWatch>,
    /// Messages for the agent. One that does not read keeps nobody waiting but the thread that writes.
    outgoing: Option<Sender<Vec<u8>>>,
    client_side: SideRecorder,
    recorder: ConnectionRecorder,
    /// Who hears its words and its complaints.
    hearing: [JoinHandle<()>; 2],
    complaint: Arc<Mutex<Vec<u8>>>,
}

impl Link {
    /// Starts the agent in its folder.
    pub(super) fn start(
        assignment: Assignment,
        launcher: &ChildLauncher,
        voice: Voice,
    ) -> Result<Self, ClientError> {
        let program = || assignment.command[0].to_string_lossy().into_owned();
        let mut command = launcher.command(&assignment.command, ChildGroup::Own);
        command.current_dir(&assignment.project).envs(assignment.variables.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut agent =
            command.spawn().map_err(|source| ClientError::Start { program: program(), source })?;
        let watch = GroupWatch::of_child(launcher, &agent).ok();
        let (input, output, complaints) =
            (agent.stdin.take(), agent.stdout.take(), agent.stderr.take());
        let recorder = ConnectionRecorder::start(assignment);
        let (client_side, agent_side) = (recorder.side(Side::Client), recorder.side(Side::Agent));
        let complaint = Arc::<Mutex<Vec<u8>>>::default();
        let noted = Arc::clone(&complaint);
        let (outgoing, messages) = mpsc::channel();
        let writing = voice.clone();
        thread::spawn(move || write(input, &messages, &writing));
        let hearing = [
            thread::spawn(move || read(output, agent_side, &voice)),
            thread::spawn(move || note(complaints, &noted)),
        ];
        Ok(Self {
            agent,
            watch,
            outgoing: Some(outgoing),
            client_side,
            recorder,
            hearing,
            complaint,
        })
    }

    /// Says something to the agent. A prompt is kept before it is given: what comes of it may be our end.
    pub(super) fn say(&mut self, message: &Value) -> Result<(), ClientError> {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.client_side.record(&line);
        if message["method"] == "session/prompt" {
            self.commit();
        }
        let sent = self.outgoing.as_ref().is_some_and(|outgoing| outgoing.send(line).is_ok());
        match sent {
            true => Ok(()),
            false => Err(ClientError::Deaf(std::io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Waits a while for all that was said so far to be on disk.
    pub(super) fn commit(&self) {
        self.recorder.sync(KEEPING);
    }

    /// Lets the agent go, which is given `time` to end by itself; gives what is left of it.
    pub(super) fn end(mut self, closing: Closing, time: Duration, ears: &Ears) -> Left {
        drop(self.outgoing.take());
        let ended = wait_for_end(&mut self.agent, time, ears);
        if ended.is_none() {
            child::terminate_group(&self.agent);
            if wait_for_end(&mut self.agent, END, ears).is_none() {
                child::kill_group(&self.agent);
                let _ = self.agent.wait();
            }
        }
        self.watch.take().into_iter().for_each(GroupWatch::dismiss);
        let until = Instant::now() + LAST_WORDS;
        while !self.hearing.iter().all(JoinHandle::is_finished) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        let complaint = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        let complaint = String::from_utf8_lossy(&complaint).trim().to_owned();
        let signal = ended.and_then(child::signal_of);
        Left { kept: self.recorder.finish(closing, WRITING), complaint, signal }
    }
}

/// How the agent has ended; waits for that until the time is over or a person does not want to wait.
fn wait_for_end(agent: &mut Child, limit: Duration, ears: &Ears) -> Option<ExitStatus> {
    let until = Instant::now() + limit;
    loop {
        match agent.try_wait() {
            Ok(None) if Instant::now() < until && !ears.was_interrupted() => {
                thread::sleep(Duration::from_millis(2));
            }
            Ok(ended) => return ended,
            Err(_) => return None,
        }
    }
}

/// Gives the agent its messages; closes its input after the last one.
fn write(input: Option<ChildStdin>, messages: &Receiver<Vec<u8>>, voice: &Voice) {
    let Some(mut input) = input else { return };
    for message in messages {
        if let Err(error) = input.write_all(&message).and_then(|()| input.flush()) {
            // That it has ended, if it has, says more.
            thread::sleep(LAST_WORDS);
            voice.say(Heard::Deaf(error));
            return;
        }
    }
}

/// Hears the agent until it ends. What is no JSON is only recorded.
fn read(output: Option<ChildStdout>, mut recorder: SideRecorder, voice: &Voice) {
    let mut lines = output.map(BufReader::new);
    let mut line = Vec::new();
    while let Some(output) = &mut lines {
        line.clear();
        match output.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => recorder.record(&line),
        }
        if let Ok(message) = serde_json::from_slice(&line) {
            voice.say(Heard::Line(message));
        }
    }
    voice.say(Heard::End);
}

/// Keeps the end of what the agent complains about in mind.
fn note(complaints: Option<ChildStderr>, noted: &Mutex<Vec<u8>>) {
    let Some(mut complaints) = complaints else { return };
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = complaints.read(&mut piece) {
        let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.extend_from_slice(&piece[..count]);
        let surplus = noted.len().saturating_sub(COMPLAINT);
        noted.drain(..surplus);
    }
}
