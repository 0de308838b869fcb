//! Connections to upstreams: straight, or through the proxy by which the machine reaches others.
//!
//! Over TLS, upstreams that offer HTTP/2 are asked in it. A server takes only so many requests at once on one connection of
//! HTTP/2, so requests are spread: each [`Asker`] has a connection of its own.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http_body_util::BodyExt;
use hyper::{Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::abrupt_close::TolerantConnector;
use crate::delivery::DeliveredBody;
use crate::server::{Body, BodyError};
use crate::sessions::lock;
use crate::trust;

/// The proxies of the machine, as its variables name them.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    /// The one for TLS: `HTTPS_PROXY`, or `ALL_PROXY`.
    pub https: Option<String>,
    /// Hosts to which none leads: `NO_PROXY`.
    pub unproxied: Option<String>,
}

/// Asks upstreams.
pub(crate) type Asker = Client<TolerantConnector, Body>;

/// How many requests share a connection of HTTP/2; most servers allow a hundred.
const MAX_SHARED_REQUESTS: usize = 64;

/// How much an upstream may send ahead for a client that does not read. All streams of a connection have room for that, so
/// that no client holds up the others.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_SHARED_REQUESTS as u32;

/// How much of an answer is read at once, and how long its head may be: a multiple of it is held while it is recorded.
const READ_BUFFER: usize = 64 << 10;

/// The clients by which upstreams are asked.
pub(crate) struct UpstreamClients {
    connector: Connector,
    tls: ClientConfig,
    shared: Mutex<Vec<SharedClient>>,
    /// Speaks HTTP/1.1 only, which WebSockets begin with.
    pub(crate) upgradable: Asker,
}

struct SharedClient {
    asker: Asker,
    requests: Arc<AtomicUsize>,
}

/// A request under way; its place is free again once this is dropped.
pub(crate) struct RequestPlace(Arc<AtomicUsize>);

impl Drop for RequestPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RequestPlace {
    /// Keeps the place until the answer has ended.
    pub(crate) fn held_by(self, answer: Response<Body>) -> Response<Body> {
        answer.map(|body| DeliveredBody::new(body, self).boxed_unsync())
    }
}

impl UpstreamClients {
    pub(crate) fn new(proxies: &Proxies) -> Self {
        let (connector, tls) = (Connector::new(proxies), trust::tls_config());
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls.clone());
        let https = builder.https_or_http().enable_http1().wrap_connector(connector.clone());
        let upgradable = client(https);
        Self { connector, tls, shared: Mutex::default(), upgradable }
    }

    /// A client with room for one more request.
    pub(crate) fn take(&self) -> (Asker, RequestPlace) {
        let mut shared = lock(&self.shared);
        let with_room =
            |client: &&SharedClient| client.requests.load(Ordering::Relaxed) < MAX_SHARED_REQUESTS;
        let found = shared.iter().find(with_room);
        let (asker, requests) = match found {
            Some(client) => (client.asker.clone(), Arc::clone(&client.requests)),
            None => {
                let client = SharedClient { asker: self.asker(), requests: Arc::default() };
                let taken = (client.asker.clone(), Arc::clone(&client.requests));
                shared.push(client);
                taken
            }
        };
        requests.fetch_add(1, Ordering::Relaxed);
        (asker, RequestPlace(requests))
    }

    /// A connection on which nothing was said yet, by the machine's proxy if there is one.
    pub(crate) async fn dial(&self, host: &str) -> Result<TcpStream, BodyError> {
        let uri: Uri = format!("https://{host}").parse()?;
        Ok(self.connector.clone().call(uri).await?.into_inner())
    }

    fn asker(&self) -> Asker {
        let builder = HttpsConnectorBuilder::new().with_tls_config(self.tls.clone());
        let builder = builder.https_or_http().enable_all_versions();
        client(builder.wrap_connector(self.connector.clone()))
    }
}

fn client(https: HttpsConnector<Connector>) -> Asker {
    Client::builder(TokioExecutor::new())
        .http1_preserve_header_case(true)
        .http1_max_buf_size(READ_BUFFER)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .pool_timer(TokioTimer::new())
        .build(TolerantConnector(https))
}

/// Makes connections, through a tunnel where a proxy is in the way.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    proxied: Arc<Matcher>,
}

impl Connector {
    fn new(proxies: &Proxies) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let mut proxied = Matcher::builder();
        if let Some(https) = &proxies.https {
            proxied =
                proxied.https(https.as_str()).no(proxies.unproxied.clone().unwrap_or_default());
        }
        Self { tcp, proxied: Arc::new(proxied.build()) }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = BodyError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BodyError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        self.tcp.poll_ready(context).map_err(BodyError::from)
    }

    fn call(&mut self, upstream: Uri) -> Self::Future {
        let mut tcp = self.tcp.clone();
        match self.proxied.intercept(&upstream) {
            Some(proxy) => {
                let mut tunnel = Tunnel::new(proxy.uri().clone(), tcp);
                if let Some(auth) = proxy.basic_auth() {
                    tunnel = tunnel.with_auth(auth.clone());
                }
                Box::pin(async move { tunnel.call(upstream).await.map_err(BodyError::from) })
            }
            None => Box::pin(async move { tcp.call(upstream).await.map_err(BodyError::from) }),
        }
    }
}
