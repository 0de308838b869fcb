//! Records the body of a request while it is forwarded, for bodies too large to read first.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::body::Frame;
use steno_agents::protocols::traffic::TrafficPiece;
use steno_agents::protocols::traffic::body_decoder::BodyDecoder;
use steno_agents::protocols::traffic::body_meter::BodyMeter;
use steno_agents::protocols::traffic::piece::{HttpHeaders, TrafficPieceKind};
use steno_agents::protocols::traffic::secrets::{SecretFilter, TrafficSecrets};

use crate::exchange_recorder::{ExchangeRecorder, elapsed_micros};
use crate::http_headers::redacted_headers;
use crate::recorded_body::BodyRecorder;
use crate::recording::TrafficRecorder;
use crate::request_body::BodyKind;

/// Records one request's body.
pub(crate) struct UploadRecorder {
    recorder: Arc<TrafficRecorder>,
    id: String,
    began: Instant,
    secrets: TrafficSecrets,
    filter: SecretFilter,
    decoder: Option<BodyDecoder>,
    meter: BodyMeter,
    trailers: HttpHeaders,
    /// Why the rest of the body is not recorded.
    failure: Option<String>,
}

impl UploadRecorder {
    pub(crate) fn new(exchange: &ExchangeRecorder, kind: &BodyKind, body_limit: u64) -> Self {
        let secrets = exchange.secrets.clone();
        Self {
            recorder: Arc::clone(&exchange.recorder),
            id: exchange.id.clone(),
            began: exchange.began,
            filter: secrets.body_filter_for(&kind.fields),
            secrets,
            decoder: BodyDecoder::new(&kind.coding),
            meter: BodyMeter::new(body_limit, &kind.fields),
            trailers: HttpHeaders::new(),
            failure: None,
        }
    }

    fn record_data(&mut self, data: &[u8]) {
        let kept = self.meter.update(data);
        if self.failure.is_some() || kept.is_empty() {
            return;
        }
        let decoded = self.decoder.as_mut().map(|decoder| decoder.push(kept)).transpose();
        match decoded {
            Ok(decoded) => {
                let clean = self.filter.push(decoded.as_deref().unwrap_or(kept));
                self.append_upload(&clean);
            }
            Err(error) => {
                self.failure = Some(format!("the request could not be decompressed: {error}"));
            }
        }
    }

    fn append_upload(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let piece = TrafficPiece::new_upload(&self.id, elapsed_micros(self.began), bytes);
        if !self.recorder.append(1, &[piece]) {
            self.failure = Some("recording paused: the rest was not recorded".to_owned());
        }
    }
}

impl BodyRecorder for UploadRecorder {
    const DROPPED: &'static str = "the request body was cut off";

    fn record_frame(&mut self, frame: &Frame<Bytes>) {
        if let Some(data) = frame.data_ref() {
            self.record_data(data);
        }
        if let Some(trailers) = frame.trailers_ref() {
            self.trailers = redacted_headers(trailers, &self.secrets);
        }
    }

    /// Records the bytes that the filter held back, and the end.
    fn finish(mut self, error: Option<&str>) {
        let held = self.filter.finish();
        self.append_upload(&held);
        let mut end = TrafficPiece::new(TrafficPieceKind::UploadEnd, self.id.as_str());
        end.after = Some(elapsed_micros(self.began));
        end.headers = std::mem::take(&mut self.trailers);
        end.redactions = self.filter.redactions();
        let error = error.map(|error| self.secrets.redact_text(error)).or(self.failure.take());
        end.error = error.map(Into::into);
        let measured = self.meter.finish();
        // The hash of bytes that hold a secret could give the secret away.
        if measured.omitted > 0 || end.redactions == 0 {
            end = end.with_measured_body(measured);
        }
        self.recorder.append(0, &[end]);
    }
}
