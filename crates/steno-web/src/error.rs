//! Errors of the server, and the pages that show them.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use steno_model::durable::FileError;
use steno_model::moment::MomentError;
use steno_seeds::thread::ThreadError;
use steno_store::format::FormatError;
use steno_store::index::IndexError;
use steno_store::index::query::QueryError;
use steno_store::view::markdown::capitalize_first;

use crate::page::PageHead;

/// Why a request or the server failed.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// There is no session, entry, note or page of this name.
    #[error("not found: {0}")]
    NotFound(String),
    /// A search query could not be parsed.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A time could not be parsed.
    #[error(transparent)]
    Moment(#[from] MomentError),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A session could not be parsed.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The threads of a project could not be read.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// An action is not allowed or failed.
    #[error("{0}")]
    Action(String),
    /// A request body is too large.
    #[error("the request body is too large")]
    BodyTooLarge,
    /// A request body that did not arrive in time.
    #[error("the request body did not arrive in time")]
    BodyTimeout,
    /// The limit of event streams is reached.
    #[error("too many event streams are open")]
    TooManyStreams,
    /// Nobody has checked who asks.
    #[error("unknown reader")]
    UnknownReader,
    /// The address could not be bound.
    #[error("could not listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The reason.
        reason: std::io::Error,
    },
    /// The server itself failed.
    #[error("the server stopped: {0}")]
    Stopped(std::io::Error),
}

impl WebError {
    /// The heading of the error's page.
    fn page_title(&self) -> &'static str {
        match self {
            WebError::NotFound(name) if name.contains('/') => "No such session",
            WebError::NotFound(_) => "Not found",
            _ => "Something went wrong",
        }
    }

    /// The HTTP status code.
    pub(crate) fn status_code(&self) -> StatusCode {
        match self {
            WebError::NotFound(_) => StatusCode::NOT_FOUND,
            WebError::Query(_) | WebError::Moment(_) | WebError::Action(_) => {
                StatusCode::BAD_REQUEST
            }
            WebError::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            WebError::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            WebError::TooManyStreams => StatusCode::SERVICE_UNAVAILABLE,
            WebError::UnknownReader => StatusCode::UNAUTHORIZED,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl WebError {
    /// What to do about it; empty if that is not known.
    pub(crate) fn hint(&self) -> Markup {
        html! {
            @match self {
                Self::NotFound(_) => { "It may have been forgotten or not yet imported: run " code { "steno sync" } ", or search for its text." }
                Self::Moment(_) => { "A date is 2026-01-05, a month 2026-01; 7d is a week ago." }
                _ => {}
            }
        }
    }
}

impl IntoResponse for WebError {
    fn into_response(self) -> Response {
        let body = html! {
            h1 { (self.page_title()) }
            p { (capitalize_first(&self.to_string())) }
            p { (self.hint()) }
            p { a href="/" { "All sessions" } }
        };
        (self.status_code(), PageHead::new("Error", "").with_body(&body)).into_response()
    }
}
