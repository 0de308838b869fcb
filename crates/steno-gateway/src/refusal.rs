//! Errors of our own, in the words of the vendor whose API was asked.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::CONTENT_TYPE;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use steno_core::traffic::Dialect;

use crate::server::Body;

/// An answer that says why there is no other.
pub(crate) fn refusal(path: &str, status: StatusCode, reason: &str) -> Response<Body> {
    let body = Bytes::from(body(path, status, reason).to_string());
    let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

fn body(path: &str, status: StatusCode, reason: &str) -> Value {
    match Dialect::of(path) {
        Dialect::Messages => {
            json!({"type": "error", "error": {"type": anthropic(status), "message": reason}})
        }
        Dialect::Generate => {
            json!({"error": {"code": status.as_u16(), "message": reason, "status": google(status)}})
        }
        _ if path.contains("/messages") => {
            json!({"type": "error", "error": {"type": anthropic(status), "message": reason}})
        }
        _ => {
            let code =
                if status == StatusCode::NOT_FOUND { json!("not_found") } else { json!(null) };
            json!({"error": {"message": reason, "type": openai(status), "param": null, "code": code}})
        }
    }
}

fn anthropic(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::FORBIDDEN => "permission_error",
        _ => "api_error",
    }
}

fn openai(status: StatusCode) -> &'static str {
    if status.is_client_error() { "invalid_request_error" } else { "server_error" }
}

fn google(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "NOT_FOUND",
        StatusCode::FORBIDDEN => "PERMISSION_DENIED",
        _ => "UNAVAILABLE",
    }
}
