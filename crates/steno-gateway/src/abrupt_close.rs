//! Connections whose servers close them without saying goodbye in TLS, as many do at the end of an answer without a length.
//!
//! OpenSSL's clients take that for the end, and so do we: whoever works without the gateway must work with it. Where a
//! length or chunks say that something is missing, that still fails.

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

use crate::connect::Connector;
use crate::server::BodyError;

/// Connects, and takes an abrupt end of TLS for the end.
#[derive(Clone)]
pub(crate) struct TolerantConnector(pub(crate) HttpsConnector<Connector>);

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
            // That nothing was read says that this is the end.
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
