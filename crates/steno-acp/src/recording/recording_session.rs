//! One session of a connection while it is recorded: its recorder, and when to retry a store that failed.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use steno_model::durable::FileError;
use steno_store::index::pending_sessions::{PendingMarker, PendingSessions};
use steno_vault::SessionDir;
use steno_vault::gap::RecordingGap;
use steno_vault::resumable::{NotRecordedError, RecordedSession, ResumableRecorder};
use steno_vault::retry::RetrySchedule;

use super::RecordingError;

/// A session that is being recorded.
pub(super) struct RecordingSession {
    pub(super) recorder: Arc<ResumableRecorder>,
    schedule: RetrySchedule,
    /// Marks the session as pending, so that the next search indexes it. Nothing here waits for the index.
    _marker: Option<PendingMarker>,
}

impl RecordingSession {
    /// Opens a session. If the store cannot be written, the session starts paused, and the error is returned with it.
    pub(super) fn open(
        session: RecordedSession,
        store: &Path,
    ) -> Result<(Self, Option<FileError>), RecordingError> {
        // A session without the mark is recorded all the same.
        let marker = PendingSessions::new(store).mark_session(&session.dir).ok();
        let (recorder, failure) = match check_usable(&session.dir) {
            Ok(()) => ResumableRecorder::open(session),
            Err(RecordingError::Store(error)) => {
                (ResumableRecorder::start_paused(session, &error), Some(error))
            }
            Err(error) => return Err(error),
        };
        let mut schedule = RetrySchedule::default();
        if failure.is_some() {
            schedule.note_failure(Instant::now());
        }
        Ok((Self { recorder: Arc::new(recorder), schedule, _marker: marker }, failure))
    }

    /// Notes that a sync failed, which has paused the recording.
    pub(super) fn note_sync_failure(&mut self) {
        self.schedule.note_failure(Instant::now());
    }

    /// The error that paused the recording, if this result is one.
    pub(super) fn note_append(
        &mut self,
        appended: Result<(), NotRecordedError>,
    ) -> Option<FileError> {
        let Err(NotRecordedError::Failed(error)) = appended else { return None };
        self.schedule.note_failure(Instant::now());
        Some(error)
    }

    /// Retries the store if a retry is due. An error means that the session must not be written.
    pub(super) fn try_resume(&mut self) -> Result<Option<RecordingGap>, RecordingError> {
        let began = Instant::now();
        if !self.schedule.is_due(began) {
            return Ok(None);
        }
        let usable = check_usable(self.recorder.dir());
        match usable.and_then(|()| Ok(self.recorder.try_resume()?)) {
            Ok(gap) => {
                self.schedule.note_success(Instant::now());
                Ok(gap)
            }
            Err(RecordingError::Store(_)) => {
                self.schedule.note_failed_attempt(began, Instant::now());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Checks that a session holds nothing but ACP messages.
fn check_usable(dir: &SessionDir) -> Result<(), RecordingError> {
    if dir.is_recorded()? && !dir.is_wire_recording()? {
        return Err(RecordingError::ForeignSession(dir.id().clone()));
    }
    Ok(())
}
