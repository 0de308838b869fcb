//! An HTTP server that hands each request to one function; shared by the gateway and the replay.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
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

/// What a client may send ahead on one stream, and on all streams of a connection.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// What waits for a client that does not read, for each of its streams.
const SEND_BUFFER: usize = 64 << 10;

/// Takes connections until the runtime ends.
pub(crate) async fn serve(listener: TcpListener, answerer: Arc<impl Answer>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, most likely: others have to end first.
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        tokio::spawn(serve_connection(stream, Arc::clone(&answerer)));
    }
}

/// Answers the requests of one connection. Its first bytes tell whether the client speaks HTTP/1.1 or HTTP/2.
pub(crate) async fn serve_connection<S>(stream: S, answerer: Arc<impl Answer>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let answerer = Arc::clone(&answerer);
        async move { Ok::<_, Infallible>(answerer.answer(with_host(request)).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new()).preserve_header_case(true);
    builder.http1().timer(TokioTimer::new()).auto_date_header(false);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).auto_date_header(false).max_send_buf_size(SEND_BUFFER);
    http2.initial_stream_window_size(STREAM_WINDOW);
    http2.initial_connection_window_size(CONNECTION_WINDOW);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    // A client that goes away is no matter of ours; what it was told is recorded.
    let _ = connection.await;
}

/// Gives a request of HTTP/2 the form of HTTP/1.1: the host stands in a header, not in the address.
fn with_host(mut request: Request<Incoming>) -> Request<Incoming> {
    if request.version() != Version::HTTP_2 || request.method() == Method::CONNECT {
        return request;
    }
    let host = request.uri().authority().and_then(|host| host.as_str().parse().ok());
    if let Some(host) = host {
        request.headers_mut().insert(HOST, host);
    }
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map(Uri::from).unwrap_or_default();
    request
}

/// Binds an address.
pub(crate) async fn bind(listen: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
