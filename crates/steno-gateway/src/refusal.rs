//! Errors of the gateway itself, in the JSON format of the called API.

use bytes::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use steno_agents::protocols::traffic::ApiDialect;

use crate::body::{BoxedBody, full_body};

/// A response with the gateway's own error.
pub(crate) fn error_response(path: &str, status: StatusCode, reason: &str) -> Response<BoxedBody> {
    let body = Bytes::from(error_json(path, status, reason).to_string());
    let mut response = Response::new(full_body(body));
    *response.status_mut() = status;
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// The response for an upstream that cannot be reached.
pub(crate) fn unreachable_upstream(path: &str, origin: &str, reason: &str) -> Response<BoxedBody> {
    let message = format!("the gateway could not reach {origin}: {reason}");
    error_response(path, StatusCode::BAD_GATEWAY, &message)
}

fn error_json(path: &str, status: StatusCode, reason: &str) -> Value {
    match ApiDialect::from_path(path) {
        ApiDialect::Messages => {
            json!({"type": "error", "error": {"type": anthropic_type(status), "message": reason}})
        }
        ApiDialect::Generate => {
            json!({"error": {"code": status.as_u16(), "message": reason, "status": google_status(status)}})
        }
        _ if path.contains("/messages") => {
            json!({"type": "error", "error": {"type": anthropic_type(status), "message": reason}})
        }
        _ => {
            let code =
                if status == StatusCode::NOT_FOUND { json!("not_found") } else { json!(null) };
            json!({"error": {"message": reason, "type": openai_type(status), "param": null, "code": code}})
        }
    }
}

fn anthropic_type(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::FORBIDDEN => "permission_error",
        _ => "api_error",
    }
}

fn openai_type(status: StatusCode) -> &'static str {
    if status.is_client_error() { "invalid_request_error" } else { "server_error" }
}

fn google_status(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "NOT_FOUND",
        StatusCode::FORBIDDEN => "PERMISSION_DENIED",
        _ => "UNAVAILABLE",
    }
}
