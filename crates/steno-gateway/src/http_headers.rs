//! Headers of HTTP messages: as text for the record, without secrets, and as they are forwarded.

use hyper::Uri;
use hyper::header::{CONTENT_ENCODING, HOST, HeaderMap, HeaderName, HeaderValue, TE};
use hyper::http::request::Parts;
use steno_agents::protocols::traffic::piece::HttpHeaders;
use steno_agents::protocols::traffic::secrets::TrafficSecrets;

/// Headers that apply to one connection only. `trailer` is not among them, because trailers are forwarded.
const HOP_BY_HOP: [&str; 7] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// A header's value as text; invalid UTF-8 is replaced.
pub(crate) fn header_text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// How a body is compressed; empty if it is not.
pub(crate) fn content_encoding(headers: &HeaderMap) -> String {
    headers.get(CONTENT_ENCODING).map(header_text).unwrap_or_default()
}

/// Adds the secrets in headers to `secrets`.
pub(crate) fn note_header_secrets(headers: &HeaderMap, secrets: &mut TrafficSecrets) {
    headers
        .iter()
        .for_each(|(name, value)| secrets.remember_header(name.as_str(), &header_text(value)));
}

/// Headers as received, secrets included.
pub(crate) fn received_headers(headers: &HeaderMap) -> HttpHeaders {
    let pair = |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), header_text(value));
    headers.iter().map(pair).collect()
}

/// Headers as recorded, without secrets.
pub(crate) fn redacted_headers(headers: &HeaderMap, secrets: &TrafficSecrets) -> HttpHeaders {
    let redacted = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.as_str().to_owned(), secrets.redact_header(name.as_str(), &header_text(value)))
    };
    headers.iter().map(redacted).collect()
}

/// Turns a request to the gateway into one to `uri`.
pub(crate) fn retarget_request(parts: &mut Parts, uri: Uri) {
    let te = parts.headers.get(TE).map(header_text).unwrap_or_default();
    remove_hop_by_hop(&mut parts.headers);
    // The gateway forwards trailers, so it may accept them for the client.
    if te.split(',').any(|coding| coding.trim().eq_ignore_ascii_case("trailers")) {
        parts.headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    let host = uri.authority().and_then(|authority| authority.as_str().parse().ok());
    if let Some(host) = host {
        parts.headers.insert(HOST, host);
    }
    parts.uri = uri;
    parts.version = hyper::Version::HTTP_11;
}

/// Removes the headers that apply to one connection only, those that `Connection` lists included.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let listed = headers.get_all("connection").iter().filter_map(|value| value.to_str().ok());
    let listed: Vec<HeaderName> = listed
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    listed.iter().for_each(|name| drop(headers.remove(name)));
    HOP_BY_HOP.iter().for_each(|name| drop(headers.remove(*name)));
}
