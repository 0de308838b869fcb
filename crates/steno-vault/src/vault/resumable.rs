//! A recorder that pauses while the store cannot be written, and resumes in the same session.
//!
//! A [`Recorder`] is unusable after its first failure. This type drops it, counts what is lost, and opens another
//! when the caller retries. The record then contains the gap. Memory does not grow during a pause.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use std::{io, thread};

use super::SessionDir;
use super::gap::RecordingGap;
use super::record::{RecordDecoder, RecordingClosing, RecordingOpening};
use super::recorder::Recorder;
use steno_model::durable::FileError;
use steno_model::timestamp::{Clock, Timestamp};

/// How often and at which interval a caller checks whether another one has paused the recording.
const MAX_CAUSE_POLLS: u32 = 20;
const CAUSE_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The session to record.
#[derive(Clone, Debug)]
pub struct RecordedSession {
    /// Its folder, which may not exist yet.
    pub dir: SessionDir,
    /// The recorder's opening line.
    pub opening: RecordingOpening,
    /// The source of the current time.
    pub clock: Clock,
    /// Makes entries of the records.
    pub decoder: RecordDecoder,
    /// The name of one lost item: `exchange`, `message`.
    pub unit: &'static str,
}

/// Records a session, with gaps where the store could not be written.
#[derive(Debug)]
pub struct ResumableRecorder {
    session: RecordedSession,
    state: RwLock<RecordingState>,
}

#[derive(Debug)]
enum RecordingState {
    /// The number distinguishes successive recorders.
    Recording(u64, Box<Recorder>),
    Paused(u64, RecordingPause),
}

#[derive(Debug)]
struct RecordingPause {
    since: Timestamp,
    reason: String,
    /// Whether the reason is an error of the operating system.
    is_from_system: bool,
    lost: u64,
    /// Whether the record has the opening of this recording.
    has_opening: bool,
}

/// Why something was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum NotRecordedError {
    /// The store failed. Recording pauses from now on.
    #[error(transparent)]
    Failed(FileError),
    /// Recording was already paused.
    #[error("recording is paused")]
    Paused,
}

impl ResumableRecorder {
    /// Opens the session. On failure, the recording starts paused, and the error is returned too.
    pub fn open(session: RecordedSession) -> (Self, Option<FileError>) {
        let RecordedSession { dir, opening, clock, decoder, .. } = &session;
        let (state, failure) = match Recorder::open(dir.clone(), opening, clock.clone(), *decoder) {
            Ok(recorder) => (RecordingState::Recording(0, Box::new(recorder)), None),
            Err(error) => {
                let pause = RecordingPause::new(clock, &error.source, false);
                (RecordingState::Paused(0, pause), Some(error))
            }
        };
        (Self { session, state: RwLock::new(state) }, failure)
    }

    /// Starts paused, after a failure before the session could be opened.
    pub fn start_paused(session: RecordedSession, cause: &FileError) -> Self {
        let pause = RecordingPause::new(&session.clock, &cause.source, false);
        Self { session, state: RwLock::new(RecordingState::Paused(0, pause)) }
    }

    /// The session's folder.
    pub fn dir(&self) -> &SessionDir {
        &self.session.dir
    }

    /// Whether recording is paused.
    pub fn is_paused(&self) -> bool {
        matches!(*self.read(), RecordingState::Paused(..))
    }

    /// Appends with `write`, which may run again on a newer recorder. On failure, recording pauses and `lost` items
    /// are counted.
    pub fn append_with<T>(
        &self,
        lost: u64,
        write: impl Fn(&Recorder) -> Result<T, FileError>,
    ) -> Result<T, NotRecordedError> {
        loop {
            let state = self.read();
            let RecordingState::Recording(number, recorder) = &*state else {
                drop(state);
                if self.count_lost(lost) {
                    return Err(NotRecordedError::Paused);
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
            if self.pause_recorder(number, lost, &error) {
                return Err(NotRecordedError::Failed(error));
            }
        }
    }

    /// Syncs everything appended so far. Does nothing while paused.
    pub fn commit(&self) -> Result<(), FileError> {
        match self.append_with(0, Recorder::commit) {
            Ok(()) | Err(NotRecordedError::Paused) => Ok(()),
            Err(NotRecordedError::Failed(error)) => Err(error),
        }
    }

    /// Tries to resume, and appends the gap to the record. Returns the gap, or `None` if recording was not paused.
    /// Concurrent appends still count as lost.
    pub fn try_resume(&self) -> Result<Option<RecordingGap>, FileError> {
        self.try_resume_with(|_| Ok(()))
    }

    /// Like `try_resume`; `write_first` appends records that must directly follow the gap.
    pub fn try_resume_with(
        &self,
        write_first: impl FnOnce(&Recorder) -> Result<(), FileError>,
    ) -> Result<Option<RecordingGap>, FileError> {
        let is_opened = match &*self.read() {
            RecordingState::Recording(..) => return Ok(None),
            RecordingState::Paused(_, pause) => pause.has_opening,
        };
        let RecordedSession { dir, opening, clock, decoder, unit } = &self.session;
        let open = if is_opened { Recorder::reopen } else { Recorder::open };
        let recorder = open(dir.clone(), opening, clock.clone(), *decoder)?;
        let mut state = self.write();
        let RecordingState::Paused(number, pause) = &mut *state else { return Ok(None) };
        pause.has_opening = true;
        let (since, reason, lost) = (pause.since, pause.reason.clone(), pause.lost);
        let gap = RecordingGap { since, reason, lost, unit: (*unit).to_owned() };
        recorder.append_gap(&gap)?;
        write_first(&recorder)?;
        *state = RecordingState::Recording(*number + 1, Box::new(recorder));
        Ok(Some(gap))
    }

    /// Ends the recording. If it is paused, tries to resume once and returns the gap. On failure, the record has no
    /// end, and the error has the number of lost items.
    pub fn close(
        self,
        closing: &RecordingClosing,
    ) -> Result<Option<RecordingGap>, UnclosedRecordingError> {
        let gap = match self.try_resume() {
            Ok(gap) => gap,
            Err(error) => return Err(UnclosedRecordingError { lost: self.lost(), error }),
        };
        match self.state.into_inner().unwrap_or_else(PoisonError::into_inner) {
            RecordingState::Recording(_, recorder) => match recorder.close(closing) {
                Ok(()) => Ok(gap),
                Err(error) => Err(UnclosedRecordingError { lost: 0, error }),
            },
            RecordingState::Paused(_, pause) => {
                let error = io::Error::other(pause.reason);
                let path = self.session.dir.path().to_owned();
                let error = FileError { action: "record into", path, source: error };
                Err(UnclosedRecordingError { lost: pause.lost, error })
            }
        }
    }

    /// Counts lost items. Returns whether recording is paused.
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

    /// Waits for the caller with the original error. A failed recorder gives later callers only a generic error, so
    /// the one with the system's error gets time to pause the recording and report it.
    fn wait_for_cause(&self, failed: u64) {
        for _ in 0..MAX_CAUSE_POLLS {
            if !matches!(&*self.read(), RecordingState::Recording(number, _) if *number == failed) {
                return;
            }
            thread::sleep(CAUSE_POLL_INTERVAL);
        }
    }

    /// Drops the recorder with this number. Returns whether it was in use.
    fn pause_recorder(&self, failed: u64, lost: u64, error: &FileError) -> bool {
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
        // The error number does not help readers of the record.
        let reason = reason.split(" (os error").next().unwrap_or_default().to_owned();
        let is_from_system = cause.raw_os_error().is_some();
        Self { since: clock.now(), reason, is_from_system, lost: 0, has_opening: is_opened }
    }
}

/// The error of a recording that could not be closed.
#[derive(Debug, thiserror::Error)]
#[error("could not close the recording")]
pub struct UnclosedRecordingError {
    /// Number of items lost at its end.
    pub lost: u64,
    /// Why.
    #[source]
    pub error: FileError,
}
