//! An answer on its way to the client: each chunk is recorded as it is passed on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use steno_core::traffic::Piece;
use steno_core::traffic::piece::PieceKind;
use steno_core::traffic::redact::Secrets;

use crate::recording::TrafficRecorder;
use crate::server::BodyError;

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
}

/// An exchange that is being passed on and recorded.
pub(crate) struct Passing {
    pub(crate) recording: Arc<TrafficRecorder>,
    pub(crate) fate: ExchangeFate,
    pub(crate) id: String,
    pub(crate) began: Instant,
    pub(crate) secrets: Secrets,
}

impl Passing {
    /// Microseconds since the request came.
    pub(crate) fn after(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
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
            ExchangeFate::Unrecorded => ExchangeFate::Unrecorded,
        }
    }

    /// Records that the exchange has ended, or why it broke off.
    pub(crate) fn end(&mut self, error: Option<&str>) {
        let error = error.map(|error| self.secrets.without(error));
        self.fate = self.record(&[Piece::end(&self.id, self.after(), error.as_deref())]);
    }

    fn chunk(&mut self, data: &Bytes, is_last: bool) {
        let hidden = self.secrets.hidden(data);
        let after = self.after();
        let chunk = Piece::chunk(&self.id, after, hidden.as_deref().unwrap_or(data));
        self.fate = if is_last {
            self.record(&[chunk, Piece::end(&self.id, after, None)])
        } else {
            self.record(&[chunk])
        };
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
            None if is_last => self.passing.end(None),
            None => {}
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
