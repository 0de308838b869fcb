//! TCP connections to upstreams: direct, or through the proxy that the machine is configured to use.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::body::BodyError;

/// The proxies that the machine's environment variables name.
#[derive(Clone, Debug, Default)]
pub struct OutboundProxies {
    /// The one for TLS: `HTTPS_PROXY`, or `ALL_PROXY`.
    pub https: Option<String>,
    /// Hosts to reach without a proxy: `NO_PROXY`.
    pub unproxied: Option<String>,
}

/// Opens TCP connections, through a `CONNECT` tunnel where a proxy is configured.
#[derive(Clone, Debug)]
pub(crate) struct TunnelConnector {
    tcp: HttpConnector,
    proxies: Arc<Matcher>,
}

impl TunnelConnector {
    pub(crate) fn new(proxies: &OutboundProxies) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let mut matcher = Matcher::builder();
        if let Some(https) = &proxies.https {
            matcher =
                matcher.https(https.as_str()).no(proxies.unproxied.clone().unwrap_or_default());
        }
        Self { tcp, proxies: Arc::new(matcher.build()) }
    }
}

impl Service<Uri> for TunnelConnector {
    type Response = TokioIo<TcpStream>;
    type Error = BodyError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BodyError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        self.tcp.poll_ready(context).map_err(BodyError::from)
    }

    fn call(&mut self, upstream: Uri) -> Self::Future {
        let mut tcp = self.tcp.clone();
        match self.proxies.intercept(&upstream) {
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
