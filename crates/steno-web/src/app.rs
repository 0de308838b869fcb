//! The state that all request handlers share.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connections::ConnectionLimits;
use crate::error::WebError;
use crate::library::SessionLibrary;
use crate::library_set::LibrarySet;
use crate::options::ResumeAction;
use crate::team_page::PageReader;
use crate::viewer::PageViewer;

/// The shared state; a clone refers to the same one.
#[derive(Clone)]
pub(crate) struct WebApp {
    /// What whoever asks may see.
    pub(crate) library: Arc<SessionLibrary>,
    libraries: Arc<LibrarySet>,
    /// Prepares sessions to be resumed; `None` if pages may only read.
    pub(crate) resume: Option<ResumeAction>,
    /// The longest request body, in bytes.
    pub(crate) body_bytes: usize,
    /// How long the body of a request may take to arrive.
    pub(crate) body_timeout: Duration,
    /// How long an event stream stays open.
    pub(crate) event_stream_lifetime: Duration,
    event_streams: Arc<Semaphore>,
}

impl WebApp {
    pub(crate) fn new(
        libraries: LibrarySet,
        resume: Option<ResumeAction>,
        limits: &ConnectionLimits,
    ) -> Self {
        Self {
            library: libraries.host_library(),
            libraries: Arc::new(libraries),
            resume,
            body_bytes: limits.body_bytes,
            body_timeout: limits.body_timeout,
            event_stream_lifetime: limits.event_stream_lifetime,
            event_streams: Arc::new(Semaphore::new(limits.event_streams)),
        }
    }

    /// A permit for an event stream, which holds it as long as it is open.
    pub(crate) fn take_event_stream(&self) -> Result<OwnedSemaphorePermit, WebError> {
        let permit = Arc::clone(&self.event_streams).try_acquire_owned();
        permit.map_err(|_| WebError::TooManyStreams)
    }

    /// The action that prepares sessions to be resumed; an error if pages may only read.
    pub(crate) fn require_writable(&self) -> Result<ResumeAction, WebError> {
        self.resume.clone().ok_or_else(|| WebError::Action("this page is read-only".to_owned()))
    }

    /// Runs work that reads files on a thread for blocking work.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SessionLibrary) -> Result<T, WebError> + Send + 'static,
    ) -> Result<T, WebError> {
        let Self { library, .. } = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&library)).await;
        done.unwrap_or_else(|_| Err(WebError::Action("this is a bug in steno".to_owned())))
    }
}

impl FromRequestParts<WebApp> for PageViewer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &WebApp) -> Result<Self, Infallible> {
        Ok(PageViewer::from_headers(&parts.headers, &app.library.zone))
    }
}

/// The state for one request, with the sessions that whoever asks may see.
impl FromRequestParts<WebApp> for WebApp {
    type Rejection = WebError;

    async fn from_request_parts(parts: &mut Parts, app: &WebApp) -> Result<Self, WebError> {
        let reader = parts.extensions.get::<PageReader>().ok_or(WebError::UnknownReader)?;
        Ok(Self { library: app.libraries.library_of(reader), ..app.clone() })
    }
}
