//! Bodies of requests. A small one is read whole before it is forwarded, as APIs do too; a large one is recorded while
//! it is forwarded (see `upload`).

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use steno_agents::protocols::traffic::body_format::BodyFormat;

use crate::body::{BodyError, BoxedBody, full_body};
use crate::http_headers::{content_encoding, header_text};
use crate::recorded_body::{BodyRecorder, PrefixedBody, RecordedBody};

/// Larger bodies are not held in memory, because recording a body takes several times its size.
const COLLECTED_LIMIT: usize = 4 << 20;

/// What the headers say about a body.
#[derive(Clone, Debug)]
pub(crate) struct BodyKind {
    pub(crate) fields: BodyFormat,
    pub(crate) coding: String,
    length: Option<u64>,
    is_message: bool,
}

impl BodyKind {
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let kind = headers.get(CONTENT_TYPE).map(header_text).unwrap_or_default();
        let length = headers.get(CONTENT_LENGTH).map(header_text).unwrap_or_default();
        let fields = BodyFormat::from_content_type(&kind);
        let is_text = kind.is_empty() || kind.contains("json") || kind.starts_with("text/");
        let is_message = is_text || fields != BodyFormat::Json;
        Self { fields, coding: content_encoding(headers), length: length.parse().ok(), is_message }
    }
}

/// A body, as far as it was read.
pub(crate) struct RequestBody {
    /// All bytes of the body, or its first ones.
    pub(crate) prefix: Bytes,
    /// The unread rest, if there is one.
    rest: Option<Incoming>,
    /// Headers that followed a whole body.
    pub(crate) trailers: HeaderMap,
}

impl RequestBody {
    /// Reads a small body whole. A body without a length counts as small if its type is one of messages.
    pub(crate) async fn collect(kind: &BodyKind, mut body: Incoming) -> Result<Self, hyper::Error> {
        let is_small =
            kind.length.map_or(kind.is_message, |length| length <= COLLECTED_LIMIT as u64);
        if !is_small {
            return Ok(Self { rest: Some(body), ..Self::empty() });
        }
        let (mut prefix, mut trailers) = (BytesMut::new(), HeaderMap::new());
        while prefix.len() <= COLLECTED_LIMIT {
            let Some(frame) = body.frame().await else {
                return Ok(Self { prefix: prefix.freeze(), rest: None, trailers });
            };
            match frame?.into_data() {
                Ok(data) => prefix.extend_from_slice(&data),
                Err(other) => trailers.extend(other.into_trailers().unwrap_or_default()),
            }
        }
        Ok(Self { prefix: prefix.freeze(), rest: Some(body), trailers })
    }

    /// The body of a request without one.
    pub(crate) fn empty() -> Self {
        Self { prefix: Bytes::new(), rest: None, trailers: HeaderMap::new() }
    }

    /// Whether all of the body was read.
    pub(crate) fn is_whole(&self) -> bool {
        self.rest.is_none()
    }

    /// The body to send. `recorder` records it if it was not read whole.
    pub(crate) fn into_body<R>(self, recorder: R) -> BoxedBody
    where
        R: BodyRecorder + Unpin + Send + 'static,
    {
        match self.rest {
            None if self.trailers.is_empty() => full_body(self.prefix),
            None => {
                let frames = [Frame::trailers(self.trailers), Frame::data(self.prefix)];
                TrailedBody { frames: frames.into() }.boxed_unsync()
            }
            Some(rest) => {
                let body = PrefixedBody { prefix: self.prefix, rest };
                RecordedBody::new(body, recorder).boxed_unsync()
            }
        }
    }
}

/// A whole body with trailers. It states no length, because only a chunked body can have trailers.
struct TrailedBody {
    /// The frames to send, last frame first.
    frames: Vec<Frame<Bytes>>,
}

impl Body for TrailedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(self.frames.pop().map(Ok))
    }
}
