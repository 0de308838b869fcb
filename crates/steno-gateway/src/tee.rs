//! An answer on its way to the client: each chunk is recorded as it is passed on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use steno_core::traffic::Piece;
use steno_core::traffic::body_meter::BodyMeter;
use steno_core::traffic::decoder::{BodyDecoder, DECODED_LIMIT};
use steno_core::traffic::piece::{Headers, PieceKind};
use steno_core::traffic::secrets::{SecretFilter, TrafficSecrets};

use crate::proxy::redacted_headers;
use crate::recording::TrafficRecorder;
use crate::server::BodyError;
use crate::upload::UploadingExchange;

/// How the record of an exchange ends of which a part is missing.
const CUT: &str = "recording paused: the rest of the answer was not recorded";

/// How much of an exchange is in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeFate {
    /// All so far.
    Recorded,
    /// Only its beginning. Nothing more of the answer may follow: it would read as if nothing were missing.
    Cut,
    /// Nothing.
    Unrecorded,
    /// All that will be.
    Ended,
}

/// An exchange that is being passed on and recorded.
pub(crate) struct Passing {
    pub(crate) recording: Arc<TrafficRecorder>,
    pub(crate) fate: ExchangeFate,
    pub(crate) id: String,
    pub(crate) began: Instant,
    pub(crate) secrets: TrafficSecrets,
    /// Decompresses the answer, where it is compressed.
    pub(crate) decoder: Option<BodyDecoder>,
    /// Takes the secrets out of the answer, once that has begun.
    pub(crate) filter: Option<SecretFilter>,
    /// Measures the answer, and says how much of it is kept.
    pub(crate) meter: BodyMeter,
    /// Headers that followed the answer's body, as they are recorded.
    pub(crate) trailers: Headers,
}

impl Passing {
    /// Microseconds since the request came.
    pub(crate) fn after(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// What is needed to record the request's body while it passes.
    pub(crate) fn uploading(&self) -> UploadingExchange<'_> {
        UploadingExchange {
            recording: Arc::clone(&self.recording),
            id: &self.id,
            began: self.began,
            secrets: self.secrets.clone(),
        }
    }

    /// Records pieces, as far as those before them were; gives how much is recorded then.
    pub(crate) fn record(&self, pieces: &[Piece<'_>]) -> ExchangeFate {
        let has = |kind| pieces.iter().any(|piece| piece.traffic == kind);
        match self.fate {
            ExchangeFate::Recorded if self.recording.append(1, pieces) => ExchangeFate::Recorded,
            ExchangeFate::Recorded if has(PieceKind::Request) => ExchangeFate::Unrecorded,
            ExchangeFate::Recorded => ExchangeFate::Cut,
            ExchangeFate::Cut => {
                if has(PieceKind::End) {
                    self.recording.append(0, &[Piece::end(&self.id, self.after(), Some(CUT))]);
                }
                ExchangeFate::Cut
            }
            fate @ (ExchangeFate::Unrecorded | ExchangeFate::Ended) => fate,
        }
    }

    /// Records that the exchange has ended, or why it broke off.
    pub(crate) fn end(&mut self, error: Option<&str>) {
        let error = error.map(|error| self.secrets.redact_text(error));
        self.end_with(error.as_deref());
    }

    /// Records what the filter has held back, and the end.
    fn end_with(&mut self, error: Option<&str>) {
        let held = self.filter.as_mut().map(SecretFilter::finish).unwrap_or_default();
        let after = self.after();
        let mut pieces = Vec::new();
        if !held.is_empty() {
            pieces.push(Piece::chunk(&self.id, after, &held));
        }
        let mut end = Piece::end(&self.id, after, error);
        end.headers = std::mem::take(&mut self.trailers);
        let measured = self.meter.clone().finish();
        let end = if measured.omitted > 0 { end.with_measure(measured) } else { end };
        pieces.push(end);
        self.fate = self.record(&pieces);
    }

    fn chunk(&mut self, data: &Bytes, is_last: bool) {
        if self.fate == ExchangeFate::Recorded {
            self.record_chunk(data);
        }
        if is_last {
            self.end_with(None);
        }
    }

    fn record_chunk(&mut self, data: &Bytes) {
        let data = self.meter.take(data);
        if data.is_empty() {
            return;
        }
        let decoded = self.decoder.as_mut().map(|decoder| decoder.push(data)).transpose();
        let decoded = match decoded {
            Ok(decoded) => decoded,
            Err(error) => return self.cut_undecodable(&error),
        };
        let secrets = &self.secrets;
        let filter = self.filter.get_or_insert_with(|| secrets.filter());
        let before = filter.redactions();
        let bytes = filter.push(decoded.as_deref().unwrap_or(data));
        let redactions = filter.redactions() - before;
        if !bytes.is_empty() {
            let chunk = Piece { redactions, ..Piece::chunk(&self.id, self.after(), &bytes) };
            self.fate = self.record(&[chunk]);
        }
    }

    /// Ends the record of an answer that cannot be decompressed, which could hold any secret.
    fn cut_undecodable(&mut self, error: &std::io::Error) {
        let limit = DECODED_LIMIT >> 20;
        let reason = match error.kind() {
            std::io::ErrorKind::FileTooLarge => {
                format!(
                    "the answer decompresses to more than {limit} MiB; the rest was not recorded"
                )
            }
            _ => {
                format!("the answer could not be decompressed ({error}); the rest was not recorded")
            }
        };
        self.end_with(Some(&reason));
        self.fate = ExchangeFate::Ended;
    }
}

/// Upstream's body, recorded while it passes.
pub(crate) struct Tee {
    body: Incoming,
    passing: Passing,
    ended: bool,
}

impl Tee {
    pub(crate) fn new(body: Incoming, mut passing: Passing) -> Self {
        let ended = body.is_end_stream();
        if ended {
            passing.end(None);
        }
        Self { body, passing, ended }
    }

    fn record(&mut self, frame: &Frame<Bytes>) {
        let is_last = self.body.is_end_stream();
        match frame.data_ref() {
            Some(data) => self.passing.chunk(data, is_last),
            None => {
                let trailers = frame.trailers_ref();
                let secrets = &self.passing.secrets;
                self.passing.trailers =
                    trailers.map(|headers| redacted_headers(headers, secrets)).unwrap_or_default();
                if is_last {
                    self.passing.end(None);
                }
            }
        }
        self.ended |= is_last;
    }
}

impl Body for Tee {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => self.record(frame),
            Some(Err(error)) => {
                self.ended = true;
                self.passing.end(Some(&reason(error)));
            }
            None if !self.ended => {
                self.ended = true;
                self.passing.end(None);
            }
            None => {}
        }
        Poll::Ready(frame.map(|frame| frame.map_err(BodyError::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        if !self.ended {
            self.passing.end(Some("the client closed the connection"));
        }
    }
}

/// An error and what caused it, in one line.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
