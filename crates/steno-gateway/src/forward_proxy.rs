//! A forward proxy for programs that accept no other base URL.
//!
//! Requests to recorded hosts are read and recorded like the gateway's own; over TLS, the proxy shows a certificate
//! for the host that the run's authority signs. All other connections are copied unread.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;

use crate::authority::CertificateAuthority;
use crate::body::{BodyError, BoxedBody, empty_body};
use crate::exchange::{ExchangeContext, RoutedRequest};
use crate::forwarder::{forward_recorded, forward_unrecorded};
use crate::locking::lock_unpoisoned;
use crate::model_hosts::RecordedHosts;
use crate::refusal::error_response;
use crate::server::{self, RequestHandler};
use crate::upstream::Upstream;

/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 22;

/// What makes a gateway a forward proxy as well.
#[derive(Clone, Debug)]
pub struct ForwardProxy {
    /// Signs certificates for recorded hosts.
    pub authority: Arc<CertificateAuthority>,
    /// The hosts to record.
    pub hosts: RecordedHosts,
    /// The servers of connections copied unread.
    pub unread: Arc<Mutex<BTreeSet<String>>>,
}

impl ForwardProxy {
    /// Answers `CONNECT host:port`: the connection is read if the host is recorded, else copied.
    pub(crate) fn accept_connect(
        self,
        context: Arc<ExchangeContext>,
        request: Request<Incoming>,
    ) -> Response<BoxedBody> {
        let authority = request.uri().authority().filter(|host| host.port().is_some()).cloned();
        let Some(authority) = authority else {
            return error_response("/", StatusCode::BAD_REQUEST, "CONNECT needs a host and a port");
        };
        tokio::spawn(async move {
            let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
            let host = authority.as_str();
            // An error here ends the connection, which is all that the client can be shown.
            match self.hosts.find_upstream(&format!("https://{host}")) {
                Some(_) => drop(self.read_tunnel(context, host, upgraded).await),
                None => drop(self.copy_unread(&context, host, upgraded).await),
            }
        });
        Response::new(empty_body())
    }

    /// Handles the requests in a tunnel to a recorded host.
    async fn read_tunnel(
        self,
        context: Arc<ExchangeContext>,
        host: &str,
        upgraded: Upgraded,
    ) -> Result<(), BodyError> {
        let mut stream = RewoundStream { first: None, stream: TokioIo::new(upgraded) };
        let first = stream.stream.read_u8().await?;
        stream.first = Some(first);
        let scheme = if first == TLS_HANDSHAKE { "https" } else { "http" };
        let default_port = if first == TLS_HANDSHAKE { ":443" } else { ":80" };
        let origin = format!("{scheme}://{}", host.strip_suffix(default_port).unwrap_or(host));
        let upstream = self.hosts.find_upstream(&format!("https://{host}"));
        let Some(upstream) = upstream else { return Ok(()) };
        let upstream = Upstream { origin, ..upstream };
        let authority = Arc::clone(&self.authority);
        let handler = Arc::new(TunnelHandler { context, forward: self, upstream });
        if scheme == "http" {
            server::serve_connection(stream, handler).await;
            return Ok(());
        }
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let config = authority.server_config(name.trim_matches(['[', ']']))?;
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        server::serve_connection(stream, handler).await;
        Ok(())
    }

    /// Copies bytes to a host and back.
    async fn copy_unread(
        &self,
        context: &ExchangeContext,
        host: &str,
        upgraded: Upgraded,
    ) -> Result<(), BodyError> {
        lock_unpoisoned(&self.unread).insert(host.to_owned());
        let mut server = context.clients.connect_tcp(host).await?;
        tokio::io::copy_bidirectional(&mut TokioIo::new(upgraded), &mut server).await?;
        Ok(())
    }

    /// Answers `GET http://host/path`, the form of requests through a proxy without TLS.
    pub(crate) async fn forward_plain(
        &self,
        context: &ExchangeContext,
        mut request: Request<Incoming>,
    ) -> Response<BoxedBody> {
        let uri = request.uri().clone();
        let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return error_response(
                "/",
                StatusCode::BAD_REQUEST,
                "this proxy accepts http:// addresses and CONNECT",
            );
        };
        request.headers_mut().remove("proxy-connection");
        match self.hosts.find_upstream(&format!("http://{authority}")) {
            Some(upstream) => {
                let routed = RoutedRequest { upstream: &upstream, uri, request };
                self.forward_to_host(context, routed).await
            }
            None => {
                lock_unpoisoned(&self.unread).insert(authority.to_string());
                forward_unrecorded(context, uri, request).await
            }
        }
    }

    /// Forwards a request to a recorded host, and records it if its path belongs to the API.
    async fn forward_to_host(
        &self,
        context: &ExchangeContext,
        routed: RoutedRequest<'_>,
    ) -> Response<BoxedBody> {
        match self.hosts.is_api_path(routed.upstream, routed.uri.path()) {
            true => forward_recorded(context, routed).await,
            false => forward_unrecorded(context, routed.uri, routed.request).await,
        }
    }
}

/// Handles the requests in a tunnel to one recorded host.
struct TunnelHandler {
    context: Arc<ExchangeContext>,
    forward: ForwardProxy,
    upstream: Upstream,
}

impl RequestHandler for TunnelHandler {
    async fn handle_request(self: Arc<Self>, request: Request<Incoming>) -> Response<BoxedBody> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        match format!("{}{path}", self.upstream.origin).parse::<Uri>() {
            Ok(uri) => {
                let routed = RoutedRequest { upstream: &self.upstream, uri, request };
                self.forward.forward_to_host(&self.context, routed).await
            }
            Err(error) => error_response(path, StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }
}

/// A stream that returns a byte which was read before, and then the rest.
struct RewoundStream<S> {
    first: Option<u8>,
    stream: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for RewoundStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if buffer.remaining() > 0
            && let Some(first) = self.first.take()
        {
            buffer.put_slice(&[first]);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RewoundStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
