//! Captures model calls of programs that make them in-process: the program passes in each request and response.
//!
//! Capture is opt-in, as in weakincentives. Calls go to the vault in the gateway's format, and from there into the LOG
//! slice of a session.

use uuid::Uuid;

use super::piece::{Piece, PieceKind};
use crate::durable::FileError;
use crate::entry::{Entry, PRIMARY};
use crate::format::weakincentives::SliceSession;
pub use crate::format::weakincentives::capture::{CaptureError, CaptureSettings};
use crate::format::weakincentives::slice::Policy;
use crate::session::Transcript;
use crate::timestamp::{Clock, Timestamp};
use crate::vault::recorder::Recorder;

/// Records a program's model calls into a session.
#[derive(Debug)]
pub struct Capture<'a> {
    recorder: &'a Recorder,
    settings: CaptureSettings,
    clock: Clock,
}

/// A call that waits for its response.
#[derive(Debug)]
#[must_use = "a call without an answer is kept as one that broke off"]
pub struct Call<'a> {
    capture: &'a Capture<'a>,
    exchange: String,
    began: Timestamp,
    answered: bool,
}

impl<'a> Capture<'a> {
    /// Starts a capture. Records nothing unless `settings` enables it.
    pub fn new(
        recorder: &'a Recorder,
        settings: CaptureSettings,
        clock: Clock,
    ) -> Result<Self, FileError> {
        let capture = Self { recorder, settings, clock };
        capture.keep(&[Piece::settings(settings.capture_subagent_transcripts)])?;
        Ok(capture)
    }

    /// Records a request before it is sent. `path` selects the API, for example `/v1/messages`.
    pub fn request(&'a self, path: &str, body: &[u8]) -> Result<Call<'a>, FileError> {
        let (exchange, began) = (Uuid::now_v7().simple().to_string(), self.clock.now());
        let mut piece = Piece::new(PieceKind::Request, exchange.as_str());
        piece.at = Some(began);
        piece.method = Some("POST".into());
        piece.path = Some(path.into());
        self.keep(&[piece.with_bytes(body)])?;
        Ok(Call { capture: self, exchange, began, answered: false })
    }

    fn keep(&self, pieces: &[Piece<'_>]) -> Result<(), FileError> {
        if !self.settings.capture_transcript {
            return Ok(());
        }
        self.recorder.append_traffic(pieces)
    }
}

impl Call<'_> {
    /// Records bytes of the response.
    pub fn chunk(&mut self, status: u16, bytes: &[u8]) -> Result<(), FileError> {
        let after = self.after();
        let mut head = Piece::new(PieceKind::Response, self.exchange.as_str());
        (head.status, head.after) = (Some(status), Some(after));
        let chunk = Piece::chunk(&self.exchange, after, bytes);
        let pieces = if self.answered { vec![chunk] } else { vec![head, chunk] };
        self.capture.keep(&pieces)?;
        self.answered = true;
        Ok(())
    }

    /// Records the end of the response, or the error that ended it. The call is on disk when this returns.
    pub fn end(self, error: Option<&str>) -> Result<(), FileError> {
        self.capture.keep(&[Piece::end(&self.exchange, self.after(), error)])?;
        self.capture.recorder.commit()
    }

    fn after(&self) -> u64 {
        let passed = self.capture.clock.now().instant().duration_since(self.began.instant());
        u64::try_from(passed.as_micros()).unwrap_or_default()
    }
}

/// Appends captured entries to the LOG slice of a session, unless it has them. Returns how many were added.
pub fn capture_traffic(
    session: &mut SliceSession,
    settings: CaptureSettings,
    transcript: &Transcript,
) -> Result<usize, CaptureError> {
    if !settings.capture_transcript {
        return Ok(0);
    }
    session.set_policy::<Entry>(Policy::Log)?;
    let known_ids: std::collections::HashSet<_> =
        session.query::<Entry>().all()?.iter().map(|entry| entry.entry_id).collect();
    let is_selected = |entry: &&Entry| {
        (entry.source == PRIMARY || settings.capture_subagent_transcripts)
            && !known_ids.contains(&entry.entry_id)
    };
    let mut count = 0;
    for entry in transcript.entries.iter().filter(is_selected) {
        session.dispatch(entry.clone())?;
        count += 1;
    }
    Ok(count)
}
