//! Which address is answered by what.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connections::ConnectionLimits;
use crate::error::WebError;
use crate::guard::{self, Guard};
use crate::library::Library;
use crate::server::Resume;
use crate::{api, assets, live, pages};

/// What every answer is made from.
#[derive(Clone)]
pub(crate) struct App {
    /// Everything that is kept.
    pub(crate) library: Arc<Library>,
    /// How a session is made ready to go on with, unless the page may only read.
    pub(crate) resume: Option<Resume>,
    /// Bytes of the body of a request.
    pub(crate) body_bytes: usize,
    /// Time for the body of a request.
    pub(crate) body_timeout: Duration,
    /// How long an event stream stays open.
    pub(crate) event_stream_lifetime: Duration,
    event_streams: Arc<Semaphore>,
}

impl App {
    pub(crate) fn new(
        library: Arc<Library>,
        resume: Option<Resume>,
        limits: &ConnectionLimits,
    ) -> Self {
        Self {
            library,
            resume,
            body_bytes: limits.body_bytes,
            body_timeout: limits.body_timeout,
            event_stream_lifetime: limits.event_stream_lifetime,
            event_streams: Arc::new(Semaphore::new(limits.event_streams)),
        }
    }

    /// Takes a place for an event stream; the stream holds it as long as it is open.
    pub(crate) fn take_event_stream(&self) -> Result<OwnedSemaphorePermit, WebError> {
        let permit = Arc::clone(&self.event_streams).try_acquire_owned();
        permit.map_err(|_| WebError::TooManyStreams)
    }

    /// How a session is made ready to go on with; an error where the page may only read.
    pub(crate) fn changing(&self) -> Result<Resume, WebError> {
        self.resume.clone().ok_or_else(|| WebError::Action("this page may only read".to_owned()))
    }

    /// Does work that reads files, away from where requests are taken.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Library) -> Result<T, WebError> + Send + 'static,
    ) -> Result<T, WebError> {
        let Self { library, .. } = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&library)).await;
        done.unwrap_or_else(|_| Err(WebError::Action("this is a mistake in steno".to_owned())))
    }
}

/// All addresses, behind the guard.
pub(crate) fn router(app: App, guard: Arc<Guard>) -> Router {
    let session = Router::new()
        .route("/", get(pages::session::page))
        .route("/part", get(pages::session::part))
        .route("/find", get(pages::session::find))
        .route("/step", get(pages::session::step))
        .route("/notes", get(pages::session::notes))
        .route("/entry/{number}", get(pages::session::entry))
        .route("/picture/{sum}", get(pages::session::picture))
        .route("/replay", get(pages::replay::page))
        .route("/files", get(pages::replay::files));
    Router::new()
        .route("/", get(pages::home::page))
        .route("/sessions", get(pages::home::list))
        .nest("/session/{agent}/{id}", session)
        .route("/search", get(pages::search::page))
        .route("/cost", get(pages::cost::page))
        .route("/compare", get(pages::compare::page))
        .route("/threads", get(pages::threads::page))
        .route("/thread", get(pages::threads::thread))
        .route("/events", get(live::events))
        .route("/assets/{version}/{name}", get(asset))
        .route("/api/openapi.json", get(api::openapi))
        .route("/api/sessions", get(api::sessions))
        .route("/api/sessions/{agent}/{id}", get(api::session))
        .route("/api/sessions/{agent}/{id}/entries", get(api::entries))
        .route("/api/sessions/{agent}/{id}/resume", post(api::resume))
        .route("/api/sessions/{agent}/{id}/notes", get(api::notes).post(api::annotate))
        .route("/api/sessions/{agent}/{id}/notes/{note}", delete(api::remove_note))
        .route("/api/notes", get(api::all_notes))
        .route("/api/search", get(api::search))
        .route("/api/cost", get(api::cost))
        .route("/api/diff", get(api::diff))
        .fallback(|| async { WebError::Unknown("page".to_owned()) })
        .layer(DefaultBodyLimit::max(app.body_bytes))
        .layer(middleware::from_fn_with_state(guard, guard::check))
        .with_state(app)
}

async fn asset(Path((version, name)): Path<(String, String)>) -> Response {
    let asset = assets::ALL.iter().find(|asset| asset.name == name);
    match asset.filter(|_| version == *assets::VERSION) {
        Some(asset) => {
            let lasting = "max-age=31536000, immutable";
            ([(CONTENT_TYPE, asset.media_type), (CACHE_CONTROL, lasting)], asset.text)
                .into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
