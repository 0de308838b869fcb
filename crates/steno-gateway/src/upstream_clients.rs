//! HTTP clients for requests to upstreams.
//!
//! Over TLS, an upstream that offers HTTP/2 gets HTTP/2. A server limits the requests that one HTTP/2 connection
//! carries at once, so requests are spread over several clients, each with a connection of its own.

use std::sync::Mutex;

use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::abrupt_close::TolerantConnector;
use crate::body::{BodyError, BoxedBody};
use crate::connector::{OutboundProxies, TunnelConnector};
use crate::locking::lock_unpoisoned;
use crate::request_slot::{MAX_SHARED_REQUESTS, RequestCounter, RequestSlot};
use crate::trust;

/// Sends requests to upstreams.
pub(crate) type UpstreamClient = Client<TolerantConnector, BoxedBody>;

/// How much an upstream may send ahead for a client that does not read. The window of the connection has room for all
/// of its streams, so that no client holds up the others.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_SHARED_REQUESTS as u32;

/// How much of a response is read at once, and the longest header section. Recording holds a multiple of it in memory.
const READ_BUFFER: usize = 64 << 10;

/// All clients of a gateway.
pub(crate) struct UpstreamClients {
    connector: TunnelConnector,
    tls: ClientConfig,
    shared: Mutex<Vec<SharedClient>>,
    /// Speaks HTTP/1.1 only, which a WebSocket handshake needs.
    pub(crate) upgradable: UpstreamClient,
}

struct SharedClient {
    client: UpstreamClient,
    requests: RequestCounter,
}

impl UpstreamClients {
    pub(crate) fn new(proxies: &OutboundProxies) -> Self {
        let (connector, tls) = (TunnelConnector::new(proxies), trust::tls_config());
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls.clone());
        let https = builder.https_or_http().enable_http1().wrap_connector(connector.clone());
        let upgradable = build_client(https);
        Self { connector, tls, shared: Mutex::default(), upgradable }
    }

    /// A client with room for one more request, and that request's slot.
    pub(crate) fn take_client(&self) -> (UpstreamClient, RequestSlot) {
        let mut shared = lock_unpoisoned(&self.shared);
        if let Some(free) = shared.iter().find(|shared| shared.requests.has_room()) {
            return (free.client.clone(), free.requests.take_slot());
        }
        let new = SharedClient { client: self.new_client(), requests: RequestCounter::default() };
        let taken = (new.client.clone(), new.requests.take_slot());
        shared.push(new);
        taken
    }

    /// A TCP connection to a host, through the machine's proxy if there is one.
    pub(crate) async fn connect_tcp(&self, host: &str) -> Result<TcpStream, BodyError> {
        let uri: Uri = format!("https://{host}").parse()?;
        Ok(self.connector.clone().call(uri).await?.into_inner())
    }

    fn new_client(&self) -> UpstreamClient {
        let builder = HttpsConnectorBuilder::new().with_tls_config(self.tls.clone());
        let builder = builder.https_or_http().enable_all_versions();
        build_client(builder.wrap_connector(self.connector.clone()))
    }
}

fn build_client(https: HttpsConnector<TunnelConnector>) -> UpstreamClient {
    Client::builder(TokioExecutor::new())
        .http1_preserve_header_case(true)
        .http1_max_buf_size(READ_BUFFER)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .pool_timer(TokioTimer::new())
        .build(TolerantConnector(https))
}
