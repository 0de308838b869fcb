//! Bodies of requests on their way up: small ones are taken whole, because APIs do so too; others are recorded while they
//! pass.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use steno_core::traffic::Piece;
use steno_core::traffic::body_meter::BodyMeter;
use steno_core::traffic::decoder::BodyDecoder;
use steno_core::traffic::form_body::BodyFields;
use steno_core::traffic::piece::{Headers, PieceKind};
use steno_core::traffic::secrets::{SecretFilter, TrafficSecrets};

use crate::proxy::{content_encoding, header_text, redacted_headers};
use crate::recording::TrafficRecorder;
use crate::server::{Body, BodyError};
use crate::tee::reason;

/// Larger bodies are not held in memory: one that is held takes several times its size while it is recorded.
const COLLECTED_LIMIT: usize = 4 << 20;

/// How much of what was held is passed on and recorded at once.
const FRAME_SIZE: usize = 64 << 10;

/// What is known of a body before it passes.
#[derive(Clone, Debug)]
pub(crate) struct BodyKind {
    pub(crate) fields: BodyFields,
    pub(crate) coding: String,
    length: Option<u64>,
    is_message: bool,
}

impl BodyKind {
    pub(crate) fn of_headers(headers: &HeaderMap) -> Self {
        let kind = headers.get(CONTENT_TYPE).map(header_text).unwrap_or_default();
        let length = headers.get(CONTENT_LENGTH).map(header_text).unwrap_or_default();
        let fields = BodyFields::of_content_type(&kind);
        let is_text = kind.is_empty() || kind.contains("json") || kind.starts_with("text/");
        let is_message = is_text || fields != BodyFields::Json;
        Self { fields, coding: content_encoding(headers), length: length.parse().ok(), is_message }
    }
}

/// A body as far as it was taken in.
pub(crate) struct RequestBody {
    /// All of it, or its beginning.
    pub(crate) begun: Bytes,
    /// What follows, if that is not all.
    rest: Option<Incoming>,
    /// Headers that followed all of it.
    pub(crate) trailers: HeaderMap,
}

impl RequestBody {
    /// Takes a body whole if it is small. Of one whose length is not stated, only messages are waited for.
    pub(crate) async fn collect(kind: &BodyKind, mut body: Incoming) -> Result<Self, hyper::Error> {
        let is_small =
            kind.length.map_or(kind.is_message, |length| length <= COLLECTED_LIMIT as u64);
        if !is_small {
            return Ok(Self { begun: Bytes::new(), rest: Some(body), trailers: HeaderMap::new() });
        }
        let (mut begun, mut trailers) = (BytesMut::new(), HeaderMap::new());
        while begun.len() <= COLLECTED_LIMIT {
            let Some(frame) = body.frame().await else {
                return Ok(Self { begun: begun.freeze(), rest: None, trailers });
            };
            match frame?.into_data() {
                Ok(data) => begun.extend_from_slice(&data),
                Err(other) => trailers.extend(other.into_trailers().unwrap_or_default()),
            }
        }
        Ok(Self { begun: begun.freeze(), rest: Some(body), trailers })
    }

    /// That of a request which has none.
    pub(crate) fn empty() -> Self {
        Self { begun: Bytes::new(), rest: None, trailers: HeaderMap::new() }
    }

    /// Whether all of it is there.
    pub(crate) fn is_whole(&self) -> bool {
        self.rest.is_none()
    }

    /// The body to send, which is recorded while it passes if it was not yet.
    pub(crate) fn into_body(self, recorder: UploadRecorder) -> Body {
        match self.rest {
            None if self.trailers.is_empty() => {
                Full::new(self.begun).map_err(|never| match never {}).boxed_unsync()
            }
            None => {
                let frames = [Frame::trailers(self.trailers), Frame::data(self.begun)];
                TrailedBody { frames: frames.into() }.boxed_unsync()
            }
            Some(rest) => {
                let begun = Some(self.begun).filter(|begun| !begun.is_empty());
                UploadTee { begun, rest, recorder: Some(recorder) }.boxed_unsync()
            }
        }
    }
}

/// A body that is there, with trailers. It does not state its length: only a body of chunks can have them.
struct TrailedBody {
    /// What is left to send, the last first.
    frames: Vec<Frame<Bytes>>,
}

impl hyper::body::Body for TrailedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(self.frames.pop().map(Ok))
    }
}

/// Records the body of one request while it passes.
pub(crate) struct UploadRecorder {
    pub(crate) recording: Arc<TrafficRecorder>,
    pub(crate) id: String,
    pub(crate) began: Instant,
    pub(crate) secrets: TrafficSecrets,
    filter: SecretFilter,
    decoder: Option<BodyDecoder>,
    meter: BodyMeter,
    trailers: Headers,
    /// Why no more of it is recorded.
    failure: Option<String>,
}

/// Whose body is recorded.
pub(crate) struct UploadingExchange<'a> {
    pub(crate) recording: Arc<TrafficRecorder>,
    pub(crate) id: &'a str,
    pub(crate) began: Instant,
    pub(crate) secrets: TrafficSecrets,
}

impl UploadRecorder {
    pub(crate) fn new(exchange: UploadingExchange<'_>, kind: &BodyKind, limit: u64) -> Self {
        let UploadingExchange { recording, id, began, secrets } = exchange;
        let filter = secrets.filter_fields(&kind.fields);
        let decoder = BodyDecoder::new(&kind.coding);
        let meter = BodyMeter::new(limit, &kind.fields);
        let (id, trailers) = (id.to_owned(), Headers::new());
        Self { recording, id, began, secrets, filter, decoder, meter, trailers, failure: None }
    }

    fn after(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn take(&mut self, data: &[u8]) {
        let kept = self.meter.take(data);
        if self.failure.is_some() || kept.is_empty() {
            return;
        }
        let decoded = self.decoder.as_mut().map(|decoder| decoder.push(kept)).transpose();
        match decoded {
            Ok(decoded) => {
                let clean = self.filter.push(decoded.as_deref().unwrap_or(kept));
                self.append(&clean);
            }
            Err(error) => {
                self.failure = Some(format!("the request could not be decompressed: {error}"));
            }
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let piece = Piece::upload(&self.id, self.after(), bytes);
        if !self.recording.append(1, &[piece]) {
            self.failure = Some("recording paused: the rest was not recorded".to_owned());
        }
    }

    /// Records what was held back, and the end.
    fn finish(mut self, error: Option<&str>) {
        let held = self.filter.finish();
        self.append(&held);
        let after = self.after();
        let mut end = Piece::new(PieceKind::UploadEnd, self.id.as_str());
        end.after = Some(after);
        end.headers = std::mem::take(&mut self.trailers);
        end.redactions = self.filter.redactions();
        let error = error.map(|error| self.secrets.redact_text(error)).or(self.failure.take());
        end.error = error.map(Into::into);
        let measured = self.meter.finish();
        // The hash of what holds a secret could give that away.
        if measured.omitted > 0 || end.redactions == 0 {
            end = end.with_measure(measured);
        }
        self.recording.append(0, &[end]);
    }
}

/// A body that is recorded while it passes.
struct UploadTee {
    /// What was taken in before.
    begun: Option<Bytes>,
    rest: Incoming,
    /// Is there until the body has ended.
    recorder: Option<UploadRecorder>,
}

impl UploadTee {
    fn end(&mut self, error: Option<&str>) {
        if let Some(recorder) = self.recorder.take() {
            recorder.finish(error);
        }
    }

    fn record(&mut self, frame: &Frame<Bytes>) {
        let Some(recorder) = &mut self.recorder else { return };
        if let Some(data) = frame.data_ref() {
            recorder.take(data);
        }
        if let Some(trailers) = frame.trailers_ref() {
            recorder.trailers = redacted_headers(trailers, &recorder.secrets);
        }
        if self.begun.is_none() && self.rest.is_end_stream() {
            self.end(None);
        }
    }
}

impl hyper::body::Body for UploadTee {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(mut begun) = self.begun.take() {
            // Recording takes several times the size of what is recorded at once.
            let frame = Frame::data(begun.split_to(begun.len().min(FRAME_SIZE)));
            self.begun = Some(begun).filter(|begun| !begun.is_empty());
            self.record(&frame);
            return Poll::Ready(Some(Ok(frame)));
        }
        let frame = ready!(Pin::new(&mut self.rest).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => self.record(frame),
            Some(Err(error)) => self.end(Some(&reason(error))),
            None => self.end(None),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(BodyError::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.begun.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let begun = self.begun.as_ref().map_or(0, |begun| begun.len() as u64);
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + begun);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + begun);
        }
        hint
    }
}

impl Drop for UploadTee {
    fn drop(&mut self) {
        self.end(Some("the request was not sent to its end"));
    }
}
