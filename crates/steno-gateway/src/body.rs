//! Bodies of HTTP messages, and the errors that cut them short.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};

/// The body of a request or response: our own or a forwarded one. An error in it closes the connection, and so the
/// other side learns that the body was cut.
pub(crate) type BoxedBody = UnsyncBoxBody<Bytes, BodyError>;

/// Why a body broke off.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A body with these bytes and their length.
pub(crate) fn full_body(bytes: Bytes) -> BoxedBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// A body without bytes.
pub(crate) fn empty_body() -> BoxedBody {
    full_body(Bytes::new())
}

/// An error and its causes in one line. A cause that the line already ends with is not repeated.
pub(crate) fn error_chain_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
