//! What the gateway does with each request: forward it to an upstream, act as a forward proxy, or refuse it.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};

use crate::body::BoxedBody;
use crate::exchange::{ExchangeContext, RoutedRequest};
use crate::forward_proxy::ForwardProxy;
use crate::forwarder::forward_recorded;
use crate::guard::OriginGuard;
use crate::refusal::error_response;
use crate::server::RequestHandler;
use crate::upstream::Upstreams;

/// Handles the requests of a gateway.
pub(crate) struct GatewayHandler {
    pub(crate) context: Arc<ExchangeContext>,
    pub(crate) upstreams: Upstreams,
    pub(crate) guard: OriginGuard,
    /// Is there if the gateway is a forward proxy too.
    pub(crate) forward: Option<ForwardProxy>,
}

impl RequestHandler for GatewayHandler {
    async fn handle_request(self: Arc<Self>, request: Request<Incoming>) -> Response<BoxedBody> {
        let plain_path = request.uri().path().to_owned();
        if request.method() == Method::CONNECT {
            return self.accept_connect(request);
        }
        if let Some(forward) = self.forward.as_ref().filter(|_| request.uri().host().is_some()) {
            return forward.forward_plain(&self.context, request).await;
        }
        if let Some(reason) = self.guard.refusal_reason(request.headers()) {
            return error_response(&plain_path, StatusCode::FORBIDDEN, reason);
        }
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        // `GET http://other/` is a request to a forward proxy.
        let route = self.upstreams.route_path(&path).filter(|_| request.uri().host().is_none());
        let Some((upstream, uri)) = route else {
            let names: Vec<_> =
                self.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
            let names = names.join(", ");
            let reason = format!("no upstream for this path; paths start with one of: {names}");
            return error_response(&plain_path, StatusCode::NOT_FOUND, &reason);
        };
        forward_recorded(&self.context, RoutedRequest { upstream, uri, request }).await
    }
}

impl GatewayHandler {
    fn accept_connect(&self, request: Request<Incoming>) -> Response<BoxedBody> {
        let Some(forward) = &self.forward else {
            let reason = "this gateway is not a forward proxy; start one with `steno exec --proxy`";
            return error_response("/", StatusCode::METHOD_NOT_ALLOWED, reason);
        };
        forward.clone().accept_connect(Arc::clone(&self.context), request)
    }
}
