//! Which address is answered by what.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};

use crate::app::WebApp;
use crate::error::WebError;
use crate::guard::{self, Guard};
use crate::{api, assets, live, pages};

/// All addresses, behind the guard.
pub(crate) fn router(app: WebApp, guard: Arc<Guard>) -> Router {
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
