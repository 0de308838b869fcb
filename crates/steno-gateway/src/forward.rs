//! A forward proxy for programs that cannot be given another base URL.
//!
//! Requests to recorded hosts are read and recorded as the gateway's own are, over TLS with a certificate for the host
//! that the run's authority signs. All other connections are passed on unread.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use crate::authority::CertificateAuthority;
use crate::model_hosts::RecordedHosts;
use crate::proxy::{Proxy, prepare_forward};
use crate::refusal::refusal;
use crate::server::{self, Answer, Body, BodyError};
use crate::sessions::lock;
use crate::tee::reason;
use crate::upstream::Upstream;

/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 22;

/// What makes a gateway a forward proxy as well.
#[derive(Clone, Debug)]
pub struct ForwardProxy {
    /// Signs certificates for recorded hosts.
    pub authority: Arc<CertificateAuthority>,
    /// Which hosts those are.
    pub hosts: RecordedHosts,
    /// The servers to which connections were passed on unread.
    pub unread: Arc<Mutex<BTreeSet<String>>>,
}

impl Proxy {
    /// Answers `CONNECT host:port`: the connection is read if the host is recorded, else passed on.
    pub(crate) fn connect(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let Some(forward) = self.forward.clone() else {
            let reason = "this gateway is no forward proxy; start one with `steno exec --proxy`";
            return refusal("/", StatusCode::METHOD_NOT_ALLOWED, reason);
        };
        let authority = request.uri().authority().filter(|host| host.port().is_some()).cloned();
        let Some(authority) = authority else {
            return refusal("/", StatusCode::BAD_REQUEST, "CONNECT needs a host and a port");
        };
        tokio::spawn(async move {
            let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
            let host = authority.as_str();
            match forward.hosts.upstream(&format!("https://{host}")) {
                // A client that breaks off has got what it has got.
                Some(_) => drop(self.read_tunnel(&forward, host, upgraded).await),
                None => drop(self.pass_unread(&forward, host, upgraded).await),
            }
        });
        Response::new(Empty::<Bytes>::new().map_err(|never| match never {}).boxed_unsync())
    }

    /// Answers the requests in a tunnel to a recorded host.
    async fn read_tunnel(
        self: Arc<Self>,
        forward: &ForwardProxy,
        host: &str,
        upgraded: Upgraded,
    ) -> Result<(), BodyError> {
        let mut stream = Rewound { first: None, stream: TokioIo::new(upgraded) };
        let first = stream.stream.read_u8().await?;
        stream.first = Some(first);
        let scheme = if first == TLS_HANDSHAKE { "https" } else { "http" };
        let default_port = if first == TLS_HANDSHAKE { ":443" } else { ":80" };
        let origin = format!("{scheme}://{}", host.strip_suffix(default_port).unwrap_or(host));
        let upstream = forward.hosts.upstream(&format!("https://{host}"));
        let Some(upstream) = upstream else { return Ok(()) };
        let upstream = Upstream { origin, ..upstream };
        let answerer = Arc::new(TunnelledHost { proxy: self, forward: forward.clone(), upstream });
        if scheme == "http" {
            server::serve_connection(stream, answerer).await;
            return Ok(());
        }
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let config = forward.authority.server_config(name.trim_matches(['[', ']']))?;
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        server::serve_connection(stream, answerer).await;
        Ok(())
    }

    /// Copies bytes to a host and back.
    async fn pass_unread(
        &self,
        forward: &ForwardProxy,
        host: &str,
        upgraded: Upgraded,
    ) -> Result<(), BodyError> {
        lock(&forward.unread).insert(host.to_owned());
        let mut server = self.clients.dial(host).await?;
        tokio::io::copy_bidirectional(&mut TokioIo::new(upgraded), &mut server).await?;
        Ok(())
    }

    /// Answers `GET http://host/path`, which is how clients ask a proxy without TLS.
    pub(crate) async fn forward_plain(
        &self,
        forward: &ForwardProxy,
        mut request: Request<Incoming>,
    ) -> Response<Body> {
        let uri = request.uri().clone();
        let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return refusal(
                "/",
                StatusCode::BAD_REQUEST,
                "a proxy is asked for http:// or by CONNECT",
            );
        };
        request.headers_mut().remove("proxy-connection");
        let origin = format!("http://{authority}");
        match forward.hosts.upstream(&origin) {
            Some(upstream) => self.pass_host(forward, &upstream, uri, request).await,
            None => {
                lock(&forward.unread).insert(authority.to_string());
                self.pass_unrecorded(uri, request).await
            }
        }
    }

    /// Passes on a request to a recorded host, and records it if it asks the API.
    async fn pass_host(
        &self,
        forward: &ForwardProxy,
        upstream: &Upstream,
        uri: Uri,
        request: Request<Incoming>,
    ) -> Response<Body> {
        match forward.hosts.is_api_path(upstream, uri.path()) {
            true => self.pass(upstream, uri, request).await,
            false => self.pass_unrecorded(uri, request).await,
        }
    }

    async fn pass_unrecorded(&self, uri: Uri, request: Request<Incoming>) -> Response<Body> {
        let (asker, place) = self.clients.take();
        match asker.request(prepare_forward(request, uri)).await {
            Ok(answer) => {
                place.held_by(answer.map(|body| body.map_err(BodyError::from).boxed_unsync()))
            }
            Err(error) => refusal("/", StatusCode::BAD_GATEWAY, &reason(&error)),
        }
    }
}

/// One recorded host, as the client in a tunnel sees it.
struct TunnelledHost {
    proxy: Arc<Proxy>,
    forward: ForwardProxy,
    upstream: Upstream,
}

impl Answer for TunnelledHost {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        match format!("{}{path}", self.upstream.origin).parse::<Uri>() {
            Ok(uri) => {
                let Self { proxy, forward, upstream } = &*self;
                proxy.pass_host(forward, upstream, uri, request).await
            }
            Err(error) => refusal(path, StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }
}

/// A stream of which the first byte was looked at.
struct Rewound<S> {
    first: Option<u8>,
    stream: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        if buffer.remaining() > 0
            && let Some(first) = self.first.take()
        {
            buffer.put_slice(&[first]);
            return std::task::Poll::Ready(Ok(()));
        }
        std::pin::Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        std::pin::Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
