//! Who may ask: a browser that was given the token, for this host, from this very page.
//!
//! A page of another site could ask a local server too, even under a name that it made point here. So the `Host` has to
//! be ours, an `Origin` has to be ours, and every request brings a cookie that only the token in the first address gives.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, ORIGIN,
    REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::connections::ConnectionSlot;

/// What a page may load and run: only what the server itself gives.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Where a local file leads to, with the token.
pub(crate) const LAUNCH_PATH: &str = "/open";

/// Leads to the page from our own origin.
const LAUNCH_PAGE: &str = "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Steno</title>\n\
     <meta http-equiv=\"refresh\" content=\"0;url=/\">\n<a href=\"/\">Open the page</a>\n";

/// What is to be done when the token is used for the first time.
#[derive(Default)]
pub(crate) struct FirstVisit(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl FirstVisit {
    pub(crate) fn set(&self, action: Box<dyn FnOnce() + Send>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(action);
    }

    fn run_once(&self) {
        let action = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        action.into_iter().for_each(|action| action());
    }
}

/// Who may ask.
pub(crate) struct Guard {
    /// What the first address brings.
    pub(crate) token: String,
    /// Names of this server, each with its port.
    pub(crate) hosts: Vec<String>,
    /// Whether it listens at all addresses of the machine.
    pub(crate) everywhere: bool,
    /// The cookie's name: browsers send those of all ports of a host.
    pub(crate) cookie: String,
    /// What is to be done when the token is used for the first time.
    pub(crate) first_visit: FirstVisit,
}

impl Guard {
    fn knows_host(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        self.is_ours(host)
    }

    /// Whether a name with its port is ours. Who listens everywhere is known by any number, but by no name: a name
    /// can be made to point here.
    fn is_ours(&self, host: &str) -> bool {
        let numbered = host.parse::<SocketAddr>().ok().filter(|_| self.everywhere);
        numbered.is_some() || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }

    /// Whether a request comes from a page of ours, or from no page at all.
    fn knows_origin(&self, method: &Method, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(ORIGIN) else { return method.is_safe() };
        let host = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
        host.is_some_and(|host| self.is_ours(host))
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut pairs =
            cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.split_once('='));
        pairs.any(|(name, value)| name.trim() == self.cookie && self.is_token(value.trim()))
    }

    /// Whether it is the token, in the same time whatever it is.
    fn is_token(&self, text: &str) -> bool {
        Sha256::digest(text.as_bytes()) == Sha256::digest(self.token.as_bytes())
    }

    /// Takes the token of an address for a cookie, and leads to the address without it.
    fn exchange(&self, uri: &Uri) -> Option<Response> {
        let query = uri.query()?;
        let token = query.split('&').find_map(|pair| pair.strip_prefix("token="))?;
        if !self.is_token(token) {
            return Some(refused(StatusCode::UNAUTHORIZED, "this token is not the server's"));
        }
        self.first_visit.run_once();
        let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Strict", self.cookie);
        if uri.path() == LAUNCH_PATH {
            // A browser that comes from a local file would not send the cookie along a redirect: it is for visits
            // from our own pages. This page is one.
            return Some(([(SET_COOKIE, cookie)], Html(LAUNCH_PAGE)).into_response());
        }
        let rest = query.split('&').filter(|pair| !pair.starts_with("token="));
        let rest = rest.collect::<Vec<_>>().join("&");
        let address =
            if rest.is_empty() { uri.path().to_owned() } else { format!("{}?{rest}", uri.path()) };
        Some((StatusCode::SEE_OTHER, [(LOCATION, address), (SET_COOKIE, cookie)]).into_response())
    }
}

/// Lets through what may pass, and tells browsers what answers may do.
pub(crate) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let (method, headers) = (request.method(), request.headers());
    let mut response = if !guard.knows_host(headers) {
        refused(StatusCode::MISDIRECTED_REQUEST, "this is not a name of this server")
    } else if !guard.knows_origin(method, headers) {
        refused(StatusCode::FORBIDDEN, "this was not asked by a page of this server")
    } else if let Some(response) = guard.exchange(request.uri()) {
        response
    } else if !guard.has_cookie(headers) {
        let reason = "open the address that `steno serve` has printed: it holds a token";
        refused(StatusCode::UNAUTHORIZED, reason)
    } else if !verify_connection(&request) {
        refused(StatusCode::SERVICE_UNAVAILABLE, "too many connections are open")
    } else {
        next.run(request).await
    };
    protect(response.headers_mut());
    response
}

fn protect(headers: &mut HeaderMap) {
    let same_origin = HeaderValue::from_static("same-origin");
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), same_origin.clone());
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), same_origin);
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Notes that the connection of a request may be used; returns whether there is room for it.
fn verify_connection(request: &Request) -> bool {
    let slot = request.extensions().get::<Arc<ConnectionSlot>>();
    slot.is_none_or(|slot| slot.verify())
}

/// A refusal; the connection is closed after it, so that refused clients hold none.
fn refused(status: StatusCode, reason: &'static str) -> Response {
    (status, [(CONNECTION, "close")], Body::from(format!("{reason}\n"))).into_response()
}
