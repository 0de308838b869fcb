//! Captures model calls of programs that make them in-process: the program passes in each request and response.
//!
//! Capture is opt-in, as in weakincentives. Calls go to the vault in the gateway's format, and from there into the LOG
//! slice of a session.

use steno_agents::protocols::traffic::append_traffic;
use steno_agents::protocols::traffic::piece::{TrafficPiece, TrafficPieceKind};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, PRIMARY_SOURCE};
use steno_model::session::Transcript;
use steno_model::timestamp::{Clock, Timestamp};
use steno_model::unique_id::new_unique_id;
use steno_seeds::weakincentives::SliceSession;
pub use steno_seeds::weakincentives::capture::{CaptureError, CaptureSettings};
use steno_seeds::weakincentives::slice::SlicePolicy;
use steno_vault::recorder::Recorder;

/// Records a program's model calls into a session.
#[derive(Debug)]
pub struct ModelCallCapture<'a> {
    recorder: &'a Recorder,
    settings: CaptureSettings,
    clock: Clock,
}

/// A call that waits for its response.
#[derive(Debug)]
#[must_use = "a call without an answer is kept as one that broke off"]
pub struct CapturedCall<'a> {
    capture: &'a ModelCallCapture<'a>,
    exchange: String,
    started_at: Timestamp,
    has_response_head: bool,
}

impl<'a> ModelCallCapture<'a> {
    /// Starts a capture. Records nothing unless `settings` enables it.
    pub fn new(
        recorder: &'a Recorder,
        settings: CaptureSettings,
        clock: Clock,
    ) -> Result<Self, FileError> {
        let capture = Self { recorder, settings, clock };
        capture
            .append_pieces(&[TrafficPiece::new_settings(settings.capture_subagent_transcripts)])?;
        Ok(capture)
    }

    /// Records a request before it is sent. `path` selects the API, for example `/v1/messages`.
    pub fn begin_call(&'a self, path: &str, body: &[u8]) -> Result<CapturedCall<'a>, FileError> {
        let began = self.clock.now();
        let exchange = new_unique_id(began).simple().to_string();
        let mut piece = TrafficPiece::new(TrafficPieceKind::Request, exchange.as_str());
        piece.at = Some(began);
        piece.method = Some("POST".into());
        piece.path = Some(path.into());
        self.append_pieces(&[piece.with_bytes(body)])?;
        Ok(CapturedCall { capture: self, exchange, started_at: began, has_response_head: false })
    }

    fn append_pieces(&self, pieces: &[TrafficPiece<'_>]) -> Result<(), FileError> {
        if !self.settings.capture_transcript {
            return Ok(());
        }
        append_traffic(self.recorder, pieces)
    }
}

impl CapturedCall<'_> {
    /// Records bytes of the response.
    pub fn append_chunk(&mut self, status: u16, bytes: &[u8]) -> Result<(), FileError> {
        let after = self.elapsed_micros();
        let mut head = TrafficPiece::new(TrafficPieceKind::Response, self.exchange.as_str());
        (head.status, head.after) = (Some(status), Some(after));
        let chunk = TrafficPiece::new_chunk(&self.exchange, after, bytes);
        let pieces = if self.has_response_head { vec![chunk] } else { vec![head, chunk] };
        self.capture.append_pieces(&pieces)?;
        self.has_response_head = true;
        Ok(())
    }

    /// Records the end of the response, or the error that ended it. The call is on disk when this returns.
    pub fn finish(self, error: Option<&str>) -> Result<(), FileError> {
        self.capture.append_pieces(&[TrafficPiece::new_end(
            &self.exchange,
            self.elapsed_micros(),
            error,
        )])?;
        self.capture.recorder.commit()
    }

    fn elapsed_micros(&self) -> u64 {
        let passed = self.capture.clock.now().instant().duration_since(self.started_at.instant());
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
    session.set_policy::<Entry>(SlicePolicy::Log)?;
    let known_ids: std::collections::HashSet<_> =
        session.query::<Entry>().read_all()?.iter().map(|entry| entry.entry_id).collect();
    let is_selected = |entry: &&Entry| {
        (entry.source == PRIMARY_SOURCE || settings.capture_subagent_transcripts)
            && !known_ids.contains(&entry.entry_id)
    };
    let mut count = 0;
    for entry in transcript.entries.iter().filter(is_selected) {
        session.dispatch(entry.clone())?;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests;
