//! Takes down what is passed on, on a thread of its own, so that nobody ever waits for the store.

use std::ffi::OsString;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use steno_core::agent::acp::wire::Side;
use steno_core::vault::AgentName;
use steno_core::{Clock, Timestamp};

use super::taking::Taking;
use crate::scene::Scene;

/// Bytes that may wait for a slow store; more of them end the recording.
const WAITING: usize = 256 << 20;

/// How long what was said may stay off the disk while nothing new comes.
const PAUSE: Duration = Duration::from_millis(300);

/// How long the end may take. What is not finished then is finished by the next recorder.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is told to who takes down.
enum Told {
    Piece(Side, Timestamp, Vec<u8>),
    End(ExitStatus),
}

/// Who takes down.
pub(super) struct Scribe {
    told: Sender<Told>,
    waiting: Arc<AtomicUsize>,
    clock: Clock,
    done: Receiver<()>,
}

/// Where one side is heard.
pub(super) struct Ear {
    side: Side,
    told: Sender<Told>,
    waiting: Arc<AtomicUsize>,
    clock: Clock,
}

impl Scribe {
    /// Begins to listen.
    pub(super) fn start(scene: &Scene, agent: Option<AgentName>, command: &[OsString]) -> Self {
        let (told, heard) = mpsc::channel();
        let (finished, done) = mpsc::channel();
        let waiting = Arc::<AtomicUsize>::default();
        let left = Arc::clone(&waiting);
        let taking = (scene.clone(), agent, command.to_vec());
        thread::spawn(move || {
            let (scene, agent, command) = taking;
            listen(Taking::new(&scene, agent, &command), &heard, &left);
            let _ = finished.send(());
        });
        Self { told, waiting, clock: scene.clock.clone(), done }
    }

    /// An ear for what one side says.
    pub(super) fn ear(&self, side: Side) -> Ear {
        let (told, waiting) = (self.told.clone(), Arc::clone(&self.waiting));
        Ear { side, told, waiting, clock: self.clock.clone() }
    }

    /// The agent has ended; waits a while for what it said to be taken down.
    pub(super) fn finish(self, status: ExitStatus) {
        let _ = self.told.send(Told::End(status));
        let _ = self.done.recv_timeout(PATIENCE);
    }
}

impl Ear {
    /// Hears what is being passed on. It only lays a copy down, and never waits.
    pub(super) fn hear(&self, bytes: &[u8]) {
        let before = self.waiting.fetch_add(bytes.len(), Ordering::AcqRel);
        // What is over the limit is only counted: that there is a gap ends the recording.
        let kept = if before < WAITING { bytes.to_vec() } else { Vec::new() };
        let _ = self.told.send(Told::Piece(self.side, self.clock.now(), kept));
    }
}

fn listen(mut taking: Taking, heard: &Receiver<Told>, waiting: &AtomicUsize) {
    loop {
        match heard.recv_timeout(PAUSE) {
            Ok(Told::Piece(_, _, bytes)) if bytes.is_empty() => taking.give_up(),
            Ok(Told::Piece(side, at, bytes)) => {
                taking.piece(side, at, &bytes);
                waiting.fetch_sub(bytes.len(), Ordering::AcqRel);
            }
            Ok(Told::End(status)) => return taking.end(Some(status)),
            Err(RecvTimeoutError::Timeout) => taking.commit(),
            Err(RecvTimeoutError::Disconnected) => return taking.end(None),
        }
    }
}
