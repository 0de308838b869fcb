//! Records one exchange: its response during forwarding, and its end.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::body::Frame;
use steno_agents::protocols::traffic::TrafficPiece;
use steno_agents::protocols::traffic::body_decoder::{BodyDecoder, MAX_DECODED_BYTES};
use steno_agents::protocols::traffic::body_format::BodyFormat;
use steno_agents::protocols::traffic::body_meter::BodyMeter;
use steno_agents::protocols::traffic::piece::{HttpHeaders, TrafficPieceKind};
use steno_agents::protocols::traffic::secrets::{SecretFilter, TrafficSecrets};
use steno_model::Timestamp;
use steno_model::unique_id::new_unique_id;

use crate::http_headers::redacted_headers;
use crate::recorded_body::BodyRecorder;
use crate::recording::TrafficRecorder;

/// The recorded error of an exchange of which a part is missing.
const CUT_ERROR: &str = "recording paused: the rest of the response was not recorded";

/// How much of an exchange is in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordExtent {
    /// All so far.
    Complete,
    /// Only the beginning. No more of the response may follow, or the gap would not show.
    Cut,
    /// Nothing.
    Missing,
    /// All that will be recorded.
    Ended,
}

/// The record of one exchange while it is forwarded.
pub(crate) struct ExchangeRecorder {
    pub(crate) recorder: Arc<TrafficRecorder>,
    pub(crate) extent: RecordExtent,
    pub(crate) id: String,
    pub(crate) began: Instant,
    pub(crate) secrets: TrafficSecrets,
    /// Decompresses the response, if it is compressed.
    pub(crate) decoder: Option<BodyDecoder>,
    /// Removes secrets from the response, once its body has begun.
    filter: Option<SecretFilter>,
    /// Measures the response, and limits how much of it is recorded.
    meter: BodyMeter,
    /// The response's trailers, as recorded.
    trailers: HttpHeaders,
}

impl ExchangeRecorder {
    /// An exchange that began at `at`. Times in the record count from `began`.
    pub(crate) fn new(
        recorder: Arc<TrafficRecorder>,
        at: Timestamp,
        began: Instant,
        body_limit: u64,
    ) -> Self {
        Self {
            recorder,
            extent: RecordExtent::Complete,
            id: new_unique_id(at).simple().to_string(),
            began,
            secrets: TrafficSecrets::default(),
            decoder: None,
            filter: None,
            meter: BodyMeter::new(body_limit, &BodyFormat::Json),
            trailers: HttpHeaders::new(),
        }
    }

    /// Microseconds since the request came.
    pub(crate) fn elapsed_micros(&self) -> u64 {
        elapsed_micros(self.began)
    }

    /// Appends pieces, unless pieces before them are missing; returns how much is in the record then.
    pub(crate) fn append_pieces(&self, pieces: &[TrafficPiece<'_>]) -> RecordExtent {
        let has = |kind| pieces.iter().any(|piece| piece.traffic == kind);
        match self.extent {
            RecordExtent::Complete if self.recorder.append(1, pieces) => RecordExtent::Complete,
            RecordExtent::Complete if has(TrafficPieceKind::Request) => RecordExtent::Missing,
            RecordExtent::Complete => RecordExtent::Cut,
            RecordExtent::Cut => {
                if has(TrafficPieceKind::End) {
                    let end =
                        TrafficPiece::new_end(&self.id, self.elapsed_micros(), Some(CUT_ERROR));
                    self.recorder.append(0, &[end]);
                }
                RecordExtent::Cut
            }
            extent @ (RecordExtent::Missing | RecordExtent::Ended) => extent,
        }
    }

    /// Records the end of the exchange, or why it broke off.
    pub(crate) fn record_end(&mut self, error: Option<&str>) {
        let error = error.map(|error| self.secrets.redact_text(error));
        self.record_clean_end(error.as_deref());
    }

    /// Records the bytes that the filter held back, and the end. The error holds no secrets.
    fn record_clean_end(&mut self, error: Option<&str>) {
        let held = self.filter.as_mut().map(SecretFilter::finish).unwrap_or_default();
        let after = self.elapsed_micros();
        let mut pieces = Vec::new();
        if !held.is_empty() {
            pieces.push(TrafficPiece::new_chunk(&self.id, after, &held));
        }
        let mut end = TrafficPiece::new_end(&self.id, after, error);
        end.headers = std::mem::take(&mut self.trailers);
        let measured = self.meter.clone().finish();
        let end = if measured.omitted > 0 { end.with_measured_body(measured) } else { end };
        pieces.push(end);
        self.extent = self.append_pieces(&pieces);
    }

    fn record_chunk(&mut self, data: &Bytes) {
        let data = self.meter.update(data);
        if data.is_empty() {
            return;
        }
        let decoded = self.decoder.as_mut().map(|decoder| decoder.push(data)).transpose();
        let decoded = match decoded {
            Ok(decoded) => decoded,
            Err(error) => return self.cut_undecodable(&error),
        };
        let secrets = &self.secrets;
        let filter = self.filter.get_or_insert_with(|| secrets.body_filter());
        let before = filter.redactions();
        let bytes = filter.push(decoded.as_deref().unwrap_or(data));
        let redactions = filter.redactions() - before;
        if !bytes.is_empty() {
            let chunk = TrafficPiece::new_chunk(&self.id, self.elapsed_micros(), &bytes);
            self.extent = self.append_pieces(&[TrafficPiece { redactions, ..chunk }]);
        }
    }

    /// Ends the record of a response that cannot be decompressed: it could hold any secret.
    fn cut_undecodable(&mut self, error: &std::io::Error) {
        let limit = MAX_DECODED_BYTES >> 20;
        let reason = match error.kind() {
            std::io::ErrorKind::FileTooLarge => {
                format!(
                    "the response decompresses to more than {limit} MiB; the rest was not recorded"
                )
            }
            _ => {
                format!(
                    "the response could not be decompressed ({error}); the rest was not recorded"
                )
            }
        };
        self.record_clean_end(Some(&reason));
        self.extent = RecordExtent::Ended;
    }
}

/// Records the response's body.
impl BodyRecorder for ExchangeRecorder {
    const DROPPED: &'static str = "the client closed the connection";

    fn record_frame(&mut self, frame: &Frame<Bytes>) {
        match frame.data_ref() {
            Some(data) if self.extent == RecordExtent::Complete => self.record_chunk(data),
            Some(_) => {}
            None => {
                let trailers = frame.trailers_ref();
                let redacted = trailers.map(|headers| redacted_headers(headers, &self.secrets));
                self.trailers = redacted.unwrap_or_default();
            }
        }
    }

    fn finish(mut self, error: Option<&str>) {
        self.record_end(error);
    }
}

/// Microseconds since `began`.
pub(crate) fn elapsed_micros(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}
