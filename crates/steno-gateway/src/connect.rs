//! Connections to upstreams: straight, or through the proxy by which the machine reaches others.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tower_service::Service;

use crate::server::{Body, BodyError};
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
pub(crate) type Asker = Client<HttpsConnector<Connector>, Body>;

/// Speaks HTTP/1.1 with upstreams, over TLS where their addresses say so.
pub(crate) fn asker(proxies: &Proxies) -> Asker {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    let mut proxied = Matcher::builder();
    if let Some(https) = &proxies.https {
        proxied = proxied.https(https.as_str()).no(proxies.unproxied.clone().unwrap_or_default());
    }
    let connector = Connector { tcp, proxied: Arc::new(proxied.build()) };
    let builder = HttpsConnectorBuilder::new().with_tls_config(trust::tls_config());
    Client::builder(TokioExecutor::new())
        .http1_preserve_header_case(true)
        .pool_timer(TokioTimer::new())
        .build(builder.https_or_http().enable_http1().wrap_connector(connector))
}

/// Makes connections, through a tunnel where a proxy is in the way.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    proxied: Arc<Matcher>,
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
