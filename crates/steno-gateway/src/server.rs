//! An HTTP server that hands each request to one function; shared by the gateway and the replay.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

/// The body of a response: ours, or upstream's passed on. An error in it closes the connection, which is how the client
/// learns that the answer was cut.
pub(crate) type Body = UnsyncBoxBody<Bytes, BodyError>;

/// Why a body has no end.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Answers requests.
pub(crate) trait Answer: Send + Sync + 'static {
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// Takes connections until the runtime ends.
pub(crate) async fn serve(listener: TcpListener, answerer: Arc<impl Answer>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, most likely: others have to end first.
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let answerer = Arc::clone(&answerer);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let answerer = Arc::clone(&answerer);
                async move { Ok::<_, Infallible>(answerer.answer(request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .preserve_header_case(true)
                .auto_date_header(false)
                .serve_connection(TokioIo::new(stream), service);
            // A client that goes away is no matter of ours; what it was told is recorded.
            let _ = connection.await;
        });
    }
}

/// Binds an address.
pub(crate) async fn bind(listen: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
