//! Records bodies while they are forwarded.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::body::{BodyError, error_chain_text};

/// Records the frames of one body.
pub(crate) trait BodyRecorder {
    /// The recorded error of a body dropped before its end.
    const DROPPED: &'static str;

    /// Records a frame before it is forwarded.
    fn record_frame(&mut self, frame: &Frame<Bytes>);

    /// Records the end of the body, or why it broke off.
    fn finish(self, error: Option<&str>);
}

/// A body, and the recorder that sees each of its frames.
pub(crate) struct RecordedBody<B, R: BodyRecorder> {
    body: B,
    /// Is there until the body has ended.
    recorder: Option<R>,
}

impl<B: Body, R: BodyRecorder> RecordedBody<B, R> {
    pub(crate) fn new(body: B, recorder: R) -> Self {
        let mut recorded = Self { body, recorder: Some(recorder) };
        recorded.finish_at_end();
        recorded
    }

    /// The server polls a body only until it says that it has ended.
    fn finish_at_end(&mut self) {
        if self.body.is_end_stream() {
            self.finish(None);
        }
    }
}

impl<B, R: BodyRecorder> RecordedBody<B, R> {
    fn finish(&mut self, error: Option<&str>) {
        if let Some(recorder) = self.recorder.take() {
            recorder.finish(error);
        }
    }
}

impl<B, R> Body for RecordedBody<B, R>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
    R: BodyRecorder + Unpin,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let frame = frame.map(|frame| frame.map_err(Into::into));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.record_frame(frame);
                }
                self.finish_at_end();
            }
            Some(Err(error)) => self.finish(Some(&error_chain_text(error.as_ref()))),
            None => self.finish(None),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B, R: BodyRecorder> Drop for RecordedBody<B, R> {
    fn drop(&mut self) {
        self.finish(Some(R::DROPPED));
    }
}

/// How much of a prefix is one frame. Recording a frame takes several times its size.
const FRAME_SIZE: usize = 64 << 10;

/// A body of which the first bytes were read before.
pub(crate) struct PrefixedBody {
    pub(crate) prefix: Bytes,
    pub(crate) rest: Incoming,
}

impl Body for PrefixedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if self.prefix.is_empty() {
            return Pin::new(&mut self.rest).poll_frame(context);
        }
        let size = self.prefix.len().min(FRAME_SIZE);
        Poll::Ready(Some(Ok(Frame::data(self.prefix.split_to(size)))))
    }

    fn is_end_stream(&self) -> bool {
        self.prefix.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (prefix, rest) = (self.prefix.len() as u64, self.rest.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + prefix);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + prefix);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http_body_util::{BodyExt, Empty, Full};

    use super::*;
    use crate::locking::lock_unpoisoned;

    /// Notes each frame and the end.
    struct NotingRecorder(Arc<Mutex<Vec<String>>>);

    impl BodyRecorder for NotingRecorder {
        const DROPPED: &'static str = "dropped";

        fn record_frame(&mut self, frame: &Frame<Bytes>) {
            let data = frame.data_ref().expect("the test sends data only");
            lock_unpoisoned(&self.0).push(String::from_utf8_lossy(data).into_owned());
        }

        fn finish(self, error: Option<&str>) {
            lock_unpoisoned(&self.0).push(format!("end: {error:?}"));
        }
    }

    fn noting<B: Body>(body: B) -> (RecordedBody<B, NotingRecorder>, Arc<Mutex<Vec<String>>>) {
        let notes = Arc::<Mutex<Vec<String>>>::default();
        (RecordedBody::new(body, NotingRecorder(Arc::clone(&notes))), notes)
    }

    #[test]
    fn the_end_is_recorded_once() {
        let (body, notes) = noting(Full::new(Bytes::from_static(b"data")));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(body.collect()).unwrap();
        assert_eq!(*lock_unpoisoned(&notes), ["data", "end: None"]);
    }

    #[test]
    fn an_empty_body_is_not_cut_off() {
        // A server does not poll a body without bytes.
        let (body, notes) = noting(Empty::<Bytes>::new());
        drop(body);
        assert_eq!(*lock_unpoisoned(&notes), ["end: None"]);
    }

    #[test]
    fn a_dropped_body_is_an_error() {
        let (body, notes) = noting(Full::new(Bytes::from_static(b"data")));
        drop(body);
        assert_eq!(*lock_unpoisoned(&notes), ["end: Some(\"dropped\")"]);
    }
}
