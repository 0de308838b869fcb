//! A recorder that pauses while the store cannot be written, and continues in the same session afterwards.
//!
//! A [`Recorder`] that has failed once is of no more use. This drops it, counts what is lost meanwhile, and opens
//! another one when the caller asks for an attempt. The gap is marked in the record. Memory does not grow while paused.

use std::io;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use super::SessionDir;
use super::gap::RecordingGap;
use super::record::{Closing, Opening};
use super::recorder::Recorder;
use crate::durable::FileError;
use crate::timestamp::{Clock, Timestamp};

/// How often, and after which pause, a caller looks whether another one has paused the recording.
const CAUSE_POLLS: u32 = 20;
const CAUSE_POLL: Duration = Duration::from_millis(1);

/// The session that is recorded.
#[derive(Clone, Debug)]
pub struct RecordedSession {
    /// Its folder, which need not exist.
    pub dir: SessionDir,
    /// What its recorder says first.
    pub opening: Opening,
    /// What time it is.
    pub clock: Clock,
    /// What is counted as lost during a gap, in the singular: `exchange`, `message`.
    pub unit: &'static str,
}

/// Records a session, with gaps where the store cannot be written.
#[derive(Debug)]
pub struct ResumableRecorder {
    session: RecordedSession,
    state: RwLock<RecordingState>,
}

#[derive(Debug)]
enum RecordingState {
    /// The number tells one recorder from the next.
    Recording(u64, Box<Recorder>),
    Paused(u64, RecordingPause),
}

#[derive(Debug)]
struct RecordingPause {
    since: Timestamp,
    reason: String,
    /// Whether the system gave the reason.
    is_from_system: bool,
    lost: u64,
    /// Whether the record has the opening of this recording.
    is_opened: bool,
}

/// Why something was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum NotRecorded {
    /// The store failed, and recording pauses from now on.
    #[error(transparent)]
    Failed(FileError),
    /// Recording was paused before.
    #[error("recording is paused")]
    Paused,
}

impl ResumableRecorder {
    /// Opens the session. If that fails, the recording begins with a gap; the failure is given too.
    pub fn open(session: RecordedSession) -> (Self, Option<FileError>) {
        let RecordedSession { dir, opening, clock, .. } = &session;
        let (state, failure) = match Recorder::open(dir.clone(), opening, clock.clone()) {
            Ok(recorder) => (RecordingState::Recording(0, Box::new(recorder)), None),
            Err(error) => {
                let pause = RecordingPause::new(clock, &error.source, false);
                (RecordingState::Paused(0, pause), Some(error))
            }
        };
        (Self { session, state: RwLock::new(state) }, failure)
    }

    /// Begins with a gap, because of something that failed before the session could be opened.
    pub fn paused(session: RecordedSession, cause: &FileError) -> Self {
        let pause = RecordingPause::new(&session.clock, &cause.source, false);
        Self { session, state: RwLock::new(RecordingState::Paused(0, pause)) }
    }

    /// The session's folder.
    pub fn dir(&self) -> &SessionDir {
        &self.session.dir
    }

    /// Whether nothing is recorded at present.
    pub fn is_paused(&self) -> bool {
        matches!(*self.read(), RecordingState::Paused(..))
    }

    /// Appends with `write`, which may run again on a newer recorder. If it fails, recording pauses, and what was to be
    /// written counts as `lost` things.
    pub fn append<T>(
        &self,
        lost: u64,
        write: impl Fn(&Recorder) -> Result<T, FileError>,
    ) -> Result<T, NotRecorded> {
        loop {
            let state = self.read();
            let RecordingState::Recording(number, recorder) = &*state else {
                drop(state);
                if self.count_lost(lost) {
                    return Err(NotRecorded::Paused);
                }
                continue;
            };
            let number = *number;
            let error = match write(recorder) {
                Ok(written) => return Ok(written),
                Err(error) => error,
            };
            drop(state);
            if error.source.raw_os_error().is_none() {
                self.wait_for_cause(number);
            }
            if self.pause(number, lost, &error) {
                return Err(NotRecorded::Failed(error));
            }
        }
    }

    /// Returns after everything that was appended is on disk. Does nothing while paused.
    pub fn commit(&self) -> Result<(), FileError> {
        match self.append(0, Recorder::commit) {
            Ok(()) | Err(NotRecorded::Paused) => Ok(()),
            Err(NotRecorded::Failed(error)) => Err(error),
        }
    }

    /// Tries to continue, and marks the gap in the record; gives it, unless nothing was paused. Others may append
    /// meanwhile: what they lose counts.
    pub fn try_resume(&self) -> Result<Option<RecordingGap>, FileError> {
        self.try_resume_with(|_| Ok(()))
    }

    /// The same; `write_first` appends what is to follow the gap before anything else does.
    pub fn try_resume_with(
        &self,
        write_first: impl FnOnce(&Recorder) -> Result<(), FileError>,
    ) -> Result<Option<RecordingGap>, FileError> {
        let is_opened = match &*self.read() {
            RecordingState::Recording(..) => return Ok(None),
            RecordingState::Paused(_, pause) => pause.is_opened,
        };
        let RecordedSession { dir, opening, clock, unit } = &self.session;
        let open = if is_opened { Recorder::reopen } else { Recorder::open };
        let recorder = open(dir.clone(), opening, clock.clone())?;
        let mut state = self.write();
        let RecordingState::Paused(number, pause) = &mut *state else { return Ok(None) };
        pause.is_opened = true;
        let (since, reason, lost) = (pause.since, pause.reason.clone(), pause.lost);
        let gap = RecordingGap { since, reason, lost, unit: (*unit).to_owned() };
        recorder.append_gap(&gap)?;
        write_first(&recorder)?;
        *state = RecordingState::Recording(*number + 1, Box::new(recorder));
        Ok(Some(gap))
    }

    /// Ends the recording. If it is paused, that takes one more attempt to continue, and gives the gap; on failure the
    /// record has no end, and what is lost is given with the error.
    pub fn close(self, closing: &Closing) -> Result<Option<RecordingGap>, UnclosedRecording> {
        let gap = match self.try_resume() {
            Ok(gap) => gap,
            Err(error) => return Err(UnclosedRecording { lost: self.lost(), error }),
        };
        match self.state.into_inner().unwrap_or_else(PoisonError::into_inner) {
            RecordingState::Recording(_, recorder) => match recorder.close(closing) {
                Ok(()) => Ok(gap),
                Err(error) => Err(UnclosedRecording { lost: 0, error }),
            },
            RecordingState::Paused(_, pause) => {
                let error = io::Error::other(pause.reason);
                let path = self.session.dir.path().to_owned();
                let error = FileError { action: "record into", path, source: error };
                Err(UnclosedRecording { lost: pause.lost, error })
            }
        }
    }

    /// Counts what is not recorded; whether recording is paused.
    fn count_lost(&self, lost: u64) -> bool {
        match &mut *self.write() {
            RecordingState::Paused(_, pause) => {
                pause.lost += lost;
                true
            }
            RecordingState::Recording(..) => false,
        }
    }

    fn lost(&self) -> u64 {
        match &*self.read() {
            RecordingState::Paused(_, pause) => pause.lost,
            RecordingState::Recording(..) => 0,
        }
    }

    /// A recorder that has failed says to later callers only that it has. Whoever knows the cause, which the system gave,
    /// gets a moment to pause the recording, so that its error is the one that is reported.
    fn wait_for_cause(&self, failed: u64) {
        for _ in 0..CAUSE_POLLS {
            if !matches!(&*self.read(), RecordingState::Recording(number, _) if *number == failed) {
                return;
            }
            thread::sleep(CAUSE_POLL);
        }
    }

    /// Drops the recorder with this number; whether it was still in use.
    fn pause(&self, failed: u64, lost: u64, error: &FileError) -> bool {
        let mut state = self.write();
        let mut pause = RecordingPause::new(&self.session.clock, &error.source, true);
        match &mut *state {
            RecordingState::Recording(number, _) if *number == failed => {
                pause.lost = lost;
                *state = RecordingState::Paused(failed, pause);
                true
            }
            RecordingState::Paused(number, known) if *number == failed => {
                if pause.is_from_system && !known.is_from_system {
                    (known.reason, known.is_from_system) = (pause.reason, true);
                }
                false
            }
            _ => false,
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, RecordingState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, RecordingState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordingPause {
    fn new(clock: &Clock, cause: &io::Error, is_opened: bool) -> Self {
        let reason = cause.to_string();
        // The number of an error is of no use to whoever reads the record.
        let reason = reason.split(" (os error").next().unwrap_or_default().to_owned();
        let is_from_system = cause.raw_os_error().is_some();
        Self { since: clock.now(), reason, is_from_system, lost: 0, is_opened }
    }
}

/// A recording that could not be ended.
#[derive(Debug, thiserror::Error)]
#[error("the recording could not be ended")]
pub struct UnclosedRecording {
    /// How many things are missing at its end.
    pub lost: u64,
    /// Why.
    #[source]
    pub error: FileError,
}

#[cfg(test)]
mod tests;
