//! What can go wrong with a page, and how it is told to a browser.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::html;
use steno_core::durable::FileError;
use steno_core::format::FormatError;
use steno_core::index::IndexError;
use steno_core::index::query::QueryError;
use steno_core::moment::MomentError;
use steno_core::thread::ThreadError;

use crate::page;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// Nothing of this name is kept.
    #[error("nothing of this name is kept: {0}")]
    Unknown(String),
    /// A question that cannot be asked.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A text that means no moment.
    #[error(transparent)]
    Moment(#[from] MomentError),
    /// The index could not answer.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A session could not be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The file system said no.
    #[error(transparent)]
    File(#[from] FileError),
    /// The threads of a project could not be read.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// An action that could not be done.
    #[error("{0}")]
    Action(String),
    /// A request body that is too large.
    #[error("the body of the request is too large")]
    BodyTooLarge,
    /// A request body that did not arrive in time.
    #[error("the body of the request did not arrive in time")]
    BodyTimeout,
    /// As many event streams are open as may be.
    #[error("too many event streams are open")]
    TooManyStreams,
    /// The address could not be bound.
    #[error("could not listen on {address}: {reason}")]
    Listen {
        /// Where.
        address: std::net::SocketAddr,
        /// Why.
        reason: std::io::Error,
    },
    /// The server itself failed.
    #[error("the server stopped: {0}")]
    Stopped(std::io::Error),
}

impl WebError {
    /// How it is told over HTTP.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            WebError::Unknown(_) => StatusCode::NOT_FOUND,
            WebError::Query(_) | WebError::Moment(_) | WebError::Action(_) => {
                StatusCode::BAD_REQUEST
            }
            WebError::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            WebError::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            WebError::TooManyStreams => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for WebError {
    fn into_response(self) -> Response {
        let body = html! {
            h1 { "That did not work" }
            p { (self.to_string()) }
            p { a href="/" { "All sessions" } }
        };
        (self.status(), page::shell("Error", "", &body)).into_response()
    }
}
