//! Lets only browsers with the token use the server, and only from its own pages.
//!
//! A page of another site can send requests to a local server too, even under its own name (DNS rebinding). So `Host`
//! and `Origin` must be ours, and every request needs a cookie, which only the token in the first address gives.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION,
    ORIGIN, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};

use crate::connections::{ConnectionSlot, PeerAddress};
use crate::history_routes::is_history_path;
use crate::team_page::{PageReader, ProxyUser, TeamPage, has_same_digest};

/// What pages may load and run: only files of this server.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The path that a local launch file opens, with the token.
pub(crate) const LAUNCH_PATH: &str = "/open";

/// Redirects to the start page from our own origin.
const LAUNCH_PAGE: &str = "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Steno</title>\n\
     <meta http-equiv=\"refresh\" content=\"0;url=/\">\n<a href=\"/\">Open the page</a>\n";

/// An action for the first use of the token.
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

/// Checks requests.
pub(crate) struct TokenGuard {
    /// The token in the first address.
    pub(crate) token: String,
    /// The names of this server, each with its port.
    pub(crate) hosts: Vec<String>,
    /// Whether the server listens on all addresses of the machine.
    pub(crate) is_unspecified: bool,
    /// The cookie's name. It contains the port, because browsers send cookies to all ports of a host.
    pub(crate) cookie: String,
    /// Runs when the token is used for the first time.
    pub(crate) first_visit: FirstVisit,
    /// The team whose record is served, with other ways to sign in.
    pub(crate) team: Option<TeamPage>,
}

impl TokenGuard {
    fn has_own_host(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        self.is_own_host(host)
    }

    /// Whether `host:port` is this server. A server that listens on all addresses accepts any IP address, but no other
    /// names: anybody can point a name at it.
    fn is_own_host(&self, host: &str) -> bool {
        let numbered = host.parse::<SocketAddr>().ok().filter(|_| self.is_unspecified);
        let public = self.team.iter().flat_map(|team| &team.public_hosts);
        let mut hosts = self.hosts.iter().chain(public);
        numbered.is_some() || hosts.any(|known| known.eq_ignore_ascii_case(host))
    }

    /// Whether a request comes from a page of this server, or from no page.
    fn has_own_origin(&self, method: &Method, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(ORIGIN) else { return method.is_safe() };
        let origin = origin.to_str().unwrap_or_default();
        let public = self.team.iter().flat_map(|team| &team.public_hosts);
        let is_public =
            |host: &str| public.into_iter().any(|known| known.eq_ignore_ascii_case(host));
        origin.strip_prefix("http://").is_some_and(|host| self.is_own_host(host))
            || origin.strip_prefix("https://").is_some_and(is_public)
    }

    /// Who has set the cookie of a request.
    fn find_cookie_reader(&self, headers: &HeaderMap) -> Option<PageReader> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut pairs =
            cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.split_once('='));
        pairs.find_map(|(name, value)| {
            (name.trim() == self.cookie).then(|| self.find_token_reader(value.trim())).flatten()
        })
    }

    /// Whose token a text is.
    fn find_token_reader(&self, text: &str) -> Option<PageReader> {
        if self.is_token(text) {
            return Some(PageReader::Host);
        }
        self.team.as_ref()?.find_token_reader(text).map(PageReader::Member)
    }

    /// Who asks: whom the proxy names, else who has the token or a cookie.
    fn find_reader(&self, request: &Request) -> Result<PageReader, &'static str> {
        let headers = request.headers();
        let peer = request.extensions().get::<PeerAddress>().map(|peer| peer.0);
        match self.team.as_ref().map(|team| team.find_proxy_user(headers, peer)) {
            Some(ProxyUser::Named(reader)) => return Ok(PageReader::Member(reader)),
            Some(ProxyUser::Stranger) => return Err("you are not a member of this team"),
            Some(ProxyUser::Unnamed) | None => {}
        }
        let refusal = "open the address that `steno serve` printed; it contains a token";
        let bearer = self.find_bearer_reader(request.uri(), headers);
        bearer.or_else(|| self.find_cookie_reader(headers)).ok_or(refusal)
    }

    /// Whose token a program sends in a header, to read the JSON API or to query the history. Pages need the cookie.
    fn find_bearer_reader(&self, uri: &Uri, headers: &HeaderMap) -> Option<PageReader> {
        let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        let token = scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())?;
        match uri.path() {
            path if is_history_path(path) => self.is_token(token).then_some(PageReader::Host),
            path if path.starts_with("/api/") => self.find_token_reader(token),
            _ => None,
        }
    }

    /// Whether a request is an agent's query of the history. It has no origin; no page of another site can know the
    /// token in its header.
    fn is_history_query(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let has_token = || self.find_bearer_reader(uri, headers).is_some();
        is_history_path(uri.path()) && !headers.contains_key(ORIGIN) && has_token()
    }

    /// Whether a text is the token. The time of the comparison does not depend on the text.
    fn is_token(&self, text: &str) -> bool {
        has_same_digest(text, &self.token)
    }

    /// Sets the cookie for a token in the address, and redirects to the address without it.
    fn exchange_token(&self, uri: &Uri) -> Option<Response> {
        let query = uri.query()?;
        let token = query.split('&').find_map(|pair| pair.strip_prefix("token="))?;
        match self.find_token_reader(token) {
            Some(PageReader::Host) => self.first_visit.run_once(),
            Some(PageReader::Member(_)) => {}
            None => return Some(refusal_response(StatusCode::UNAUTHORIZED, "invalid token")),
        }
        let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Strict", self.cookie);
        if uri.path() == LAUNCH_PATH {
            // A browser that comes from a local file does not send a `SameSite=Strict` cookie after a redirect. This
            // page loads the next one from our own origin.
            return Some(([(SET_COOKIE, cookie)], Html(LAUNCH_PAGE)).into_response());
        }
        let rest = query.split('&').filter(|pair| !pair.starts_with("token="));
        let rest = rest.collect::<Vec<_>>().join("&");
        let address =
            if rest.is_empty() { uri.path().to_owned() } else { format!("{}?{rest}", uri.path()) };
        Some((StatusCode::SEE_OTHER, [(LOCATION, address), (SET_COOKIE, cookie)]).into_response())
    }
}

/// Refuses requests that fail a check, and adds security headers to all responses.
pub(crate) async fn check_request(
    State(guard): State<Arc<TokenGuard>>,
    mut request: Request,
    next: Next,
) -> Response {
    let (method, headers) = (request.method(), request.headers());
    let needs_no_origin = guard.is_history_query(request.uri(), headers);
    let mut response = if !guard.has_own_host(headers) {
        refusal_response(StatusCode::MISDIRECTED_REQUEST, "unknown host name")
    } else if !needs_no_origin && !guard.has_own_origin(method, headers) {
        refusal_response(
            StatusCode::FORBIDDEN,
            "the request does not come from a page of this server",
        )
    } else if let Some(response) = guard.exchange_token(request.uri()) {
        response
    } else {
        match guard.find_reader(&request) {
            Err(reason) => refusal_response(StatusCode::UNAUTHORIZED, reason),
            Ok(_) if !verify_connection(&request) => {
                refusal_response(StatusCode::SERVICE_UNAVAILABLE, "too many connections are open")
            }
            Ok(reader) => {
                if let Some(team) = &guard.team {
                    (team.before_request)();
                }
                request.extensions_mut().insert(reader);
                next.run(request).await
            }
        }
    };
    add_security_headers(response.headers_mut());
    response
}

fn add_security_headers(headers: &mut HeaderMap) {
    let same_origin = HeaderValue::from_static("same-origin");
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), same_origin.clone());
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), same_origin);
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Marks the connection as verified; returns whether there was room for it.
fn verify_connection(request: &Request) -> bool {
    let slot = request.extensions().get::<Arc<ConnectionSlot>>();
    slot.is_none_or(|slot| slot.verify())
}

/// Refuses a request and closes the connection, so that refused clients hold none.
fn refusal_response(status: StatusCode, reason: &'static str) -> Response {
    (status, [(CONNECTION, "close")], Body::from(format!("{reason}\n"))).into_response()
}
