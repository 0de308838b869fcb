//! The last step of a response on its way to the client.
//!
//! When a body fails, hyper closes the connection at once and drops what it has not written yet. So an error is held
//! back for a moment, and the client gets the bytes before it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use crate::body::{BodyError, BoxedBody};
use crate::request_slot::RequestSlot;

/// How long an error is held back. Writing to a client takes microseconds.
const ERROR_DELAY: Duration = Duration::from_millis(20);

/// Keeps a request's slot until the client has the whole response.
pub(crate) fn deliver_response(
    response: Response<BoxedBody>,
    slot: RequestSlot,
) -> Response<BoxedBody> {
    response.map(|body| DeliveredBody::new(body, slot).boxed_unsync())
}

/// A response's body, and the slot of its request.
struct DeliveredBody {
    body: BoxedBody,
    failure: Option<DelayedError>,
    _slot: RequestSlot,
}

/// An error, and the delay before it is returned.
struct DelayedError {
    delay: Pin<Box<Sleep>>,
    error: BodyError,
}

impl DeliveredBody {
    fn new(body: BoxedBody, slot: RequestSlot) -> Self {
        Self { body, failure: None, _slot: slot }
    }
}

impl Body for DeliveredBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.failure.is_none() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Err(error)) => {
                    let delay = Box::pin(tokio::time::sleep(ERROR_DELAY));
                    self.failure = Some(DelayedError { delay, error });
                }
                frame => return Poll::Ready(frame),
            }
        }
        if let Some(failure) = &mut self.failure {
            ready!(failure.delay.as_mut().poll(context));
        }
        Poll::Ready(self.failure.take().map(|failure| Err(failure.error)))
    }

    fn is_end_stream(&self) -> bool {
        self.failure.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_slot::RequestCounter;

    /// A body that fails after its first frame.
    struct FailingBody {
        first: Option<Bytes>,
    }

    impl Body for FailingBody {
        type Data = Bytes;
        type Error = BodyError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
            let first = self.first.take().map(Frame::data);
            Poll::Ready(Some(first.ok_or_else(|| BodyError::from("cut"))))
        }
    }

    #[test]
    fn an_error_follows_the_bytes_before_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let failing = FailingBody { first: Some(Bytes::from_static(b"Half")) };
            let slot = RequestCounter::default().take_slot();
            let mut body = DeliveredBody::new(failing.boxed_unsync(), slot);
            let first = body.frame().await.unwrap().unwrap();
            assert_eq!(first.into_data().unwrap(), "Half");
            // The server has time to write the first frame: the error is not there yet.
            let is_waiting = std::future::poll_fn(|context| {
                Poll::Ready(Pin::new(&mut body).poll_frame(context).is_pending())
            });
            assert!(is_waiting.await);
            assert_eq!(body.frame().await.unwrap().unwrap_err().to_string(), "cut");
        });
    }
}
