//! TLS connections that a server closes without `close_notify`, as many do at the end of a response without a length.
//!
//! Clients that use OpenSSL read that as the end of the body. The gateway does the same, so that a client works with
//! it as it does without it. A body shorter than its length, or lacks its last chunk, still fails.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::body::BodyError;
use crate::connector::TunnelConnector;

/// Connects to upstreams, and reads an abrupt end of TLS as the end of the stream.
#[derive(Clone)]
pub(crate) struct TolerantConnector(pub(crate) HttpsConnector<TunnelConnector>);

impl Service<Uri> for TolerantConnector {
    type Response = TolerantStream;
    type Error = BodyError;
    type Future = Pin<Box<dyn Future<Output = Result<TolerantStream, BodyError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, upstream: Uri) -> Self::Future {
        let connecting = self.0.call(upstream);
        Box::pin(async move { connecting.await.map(TolerantStream) })
    }
}

/// A connection to an upstream.
pub(crate) struct TolerantStream(MaybeHttpsStream<TokioIo<TcpStream>>);

impl Connection for TolerantStream {
    fn connected(&self) -> Connected {
        self.0.connected()
    }
}

impl Read for TolerantStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.0).poll_read(context, buffer) {
            // A read without bytes is the end of the stream.
            Poll::Ready(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => {
                Poll::Ready(Ok(()))
            }
            read => read,
        }
    }
}

impl Write for TolerantStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, parts)
    }
}
