//! The last step of an answer on its way to the client.
//!
//! When a body fails, hyper closes the connection at once, with all that it has not written yet. So an error is held back
//! for a moment: what came before it is delivered first.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Sleep;

use crate::connect::RequestPlace;
use crate::server::{Body, BodyError};

/// How long an error waits. Writing to a client takes microseconds.
const ERROR_DELAY: Duration = Duration::from_millis(20);

/// An answer, and the place of its request among others.
pub(crate) struct DeliveredBody {
    body: Body,
    failure: Option<(Pin<Box<Sleep>>, BodyError)>,
    _place: RequestPlace,
}

impl DeliveredBody {
    pub(crate) fn new(body: Body, place: RequestPlace) -> Self {
        Self { body, failure: None, _place: place }
    }
}

impl HttpBody for DeliveredBody {
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
                    self.failure = Some((delay, error));
                }
                frame => return Poll::Ready(frame),
            }
        }
        if let Some((delay, _)) = &mut self.failure {
            ready!(delay.as_mut().poll(context));
        }
        Poll::Ready(self.failure.take().map(|(_, error)| Err(error)))
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
    use http_body_util::BodyExt;

    use super::*;
    use crate::connect::{Proxies, UpstreamClients};

    /// A body that fails after its first frame.
    struct Half {
        first: Option<Bytes>,
    }

    impl HttpBody for Half {
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
    fn an_error_comes_after_what_was_said_before_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let half = Half { first: Some(Bytes::from_static(b"Half")) };
            let place = UpstreamClients::new(&Proxies::default()).take().1;
            let mut body = DeliveredBody::new(half.boxed_unsync(), place);
            let first = body.frame().await.unwrap().unwrap();
            assert_eq!(first.into_data().unwrap(), "Half");
            // Whoever writes is given the time to: the error is not there yet.
            let is_waiting = std::future::poll_fn(|context| {
                Poll::Ready(Pin::new(&mut body).poll_frame(context).is_pending())
            });
            assert!(is_waiting.await);
            assert_eq!(body.frame().await.unwrap().unwrap_err().to_string(), "cut");
        });
    }
}
