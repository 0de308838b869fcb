//! An HTTP server that gives each request to a handler. The gateway and the replay server share it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use crate::body::BoxedBody;

/// Answers the requests of a server.
pub(crate) trait RequestHandler: Send + Sync + 'static {
    fn handle_request(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<BoxedBody>> + Send;
}

/// How much a client may send ahead on one stream, and on all streams of a connection.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// How much of a stream is buffered for a client that does not read.
const SEND_BUFFER: usize = 64 << 10;

/// Accepts connections until the runtime ends.
pub(crate) async fn serve_listener(listener: TcpListener, handler: Arc<impl RequestHandler>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Most likely too many open files: wait until other connections have closed.
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        tokio::spawn(serve_connection(stream, Arc::clone(&handler)));
    }
}

/// Answers the requests of one connection. Its first bytes show whether the client speaks HTTP/1.1 or HTTP/2.
pub(crate) async fn serve_connection<S>(stream: S, handler: Arc<impl RequestHandler>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let handler = Arc::clone(&handler);
        async move { Ok::<_, Infallible>(handler.handle_request(move_host_to_header(request)).await) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new()).preserve_header_case(true);
    builder.http1().timer(TokioTimer::new()).auto_date_header(false);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).auto_date_header(false).max_send_buf_size(SEND_BUFFER);
    http2.initial_stream_window_size(STREAM_WINDOW);
    http2.initial_connection_window_size(CONNECTION_WINDOW);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    // An error here means that the client has gone; what it received is recorded.
    let _ = connection.await;
}

/// Gives an HTTP/2 request the form of HTTP/1.1, with the host in a header instead of the URI.
fn move_host_to_header(mut request: Request<Incoming>) -> Request<Incoming> {
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

/// Listens on an address; also returns it with the actual port, which matters for port 0.
pub(crate) async fn bind_listener(listen: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
