//! A recorded exchange with a model API, as `show --requests` prints it.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use steno_agents::protocols::traffic::ApiExchange;
use steno_agents::protocols::traffic::piece::HttpHeaders;
use steno_model::timestamp::Timestamp;

/// A request and its response, as recorded: without keys and cookies.
#[derive(Debug, Serialize)]
pub struct ExchangeRow<'a> {
    at: Option<Timestamp>,
    upstream: &'a str,
    method: &'a str,
    path: &'a str,
    request_headers: &'a HttpHeaders,
    request: ExchangeBody<'a>,
    status: Option<u16>,
    headers: &'a HttpHeaders,
    answer: ExchangeBody<'a>,
    /// Milliseconds from the request to the end of the response; null if no end was recorded.
    latency_ms: Option<f64>,
    /// Why the response ended early.
    error: Option<&'a str>,
}

/// JSON as it was sent, or other text as a string. Invalid UTF-8 is replaced.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ExchangeBody<'a> {
    Json(Box<RawValue>),
    Text(Cow<'a, str>),
}

impl<'a> ExchangeRow<'a> {
    /// The row of an exchange.
    pub fn new(exchange: &'a ApiExchange) -> Self {
        let end = exchange.end.as_ref();
        Self {
            at: exchange.started_at,
            upstream: &exchange.upstream,
            method: &exchange.method,
            path: &exchange.path,
            request_headers: &exchange.request_headers,
            request: ExchangeBody::new(exchange.decoded_request()),
            status: exchange.status,
            headers: &exchange.headers,
            answer: ExchangeBody::new(exchange.decoded_response().into()),
            latency_ms: end.map(|end| end.after_micros as f64 / 1000.0),
            error: end.and_then(|end| end.error.as_deref()),
        }
    }
}

impl<'a> ExchangeBody<'a> {
    fn new(bytes: Cow<'a, [u8]>) -> Self {
        // JSON with line breaks would not fit on one line.
        let json = serde_json::from_slice::<Box<RawValue>>(&bytes).ok();
        match json.filter(|json| !json.get().contains(['\n', '\r'])) {
            Some(json) => Self::Json(json),
            None => match bytes {
                Cow::Borrowed(bytes) => Self::Text(String::from_utf8_lossy(bytes)),
                Cow::Owned(bytes) => {
                    Self::Text(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
                }
            },
        }
    }
}
