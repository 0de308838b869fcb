//! The routes of the server.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{StatusCode, Uri};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use steno_mcp::HistoryOptions;

use crate::api::{ApiError, check_query};
use crate::api_parameters::API_PREFIX;
use crate::app::WebApp;
use crate::error::WebError;
use crate::guard::{self, TokenGuard};
use crate::history_routes::build_history_routes;
use crate::{api, assets, live, neighbours, pages, palette, report_api};

/// All routes, behind the guard.
pub(crate) fn build_router(
    app: WebApp,
    guard: Arc<TokenGuard>,
    history: Option<HistoryOptions>,
) -> Router {
    let history = history.map(|options| build_history_routes(options, app.body_bytes));
    let session = Router::new()
        .route("/", get(pages::session::session_page))
        .route("/head", get(pages::session::head_part))
        .route("/part", get(pages::session::entries_part))
        .route("/contents", get(pages::session_sections::contents_section))
        .route("/subagents", get(pages::session_sections::subagents_section))
        .route("/changes", get(pages::session_sections::changes_section))
        .route("/quality", get(pages::session_sections::quality_section))
        .route("/export", get(pages::session_export::export_session))
        .route("/state", get(live::session_state))
        .route("/find", get(pages::session::find_entries))
        .route("/neighbours", get(neighbours::list_neighbours))
        .route("/step", get(pages::session::find_step))
        .route("/notes", get(pages::session::notes_part))
        .route("/entry/{number}", get(pages::session::entry_text))
        .route("/picture/{sum}", get(pages::session::picture_bytes))
        .route("/replay", get(pages::replay::replay_page))
        .route("/files", get(pages::replay::changed_files));
    Router::new()
        .route("/", get(pages::home::home_page))
        .route("/sessions", get(pages::home::session_list))
        .route("/palette", get(palette::palette_results))
        .nest("/session/{agent}/{id}", session)
        .route("/search", get(pages::search::search_page))
        .route("/activity", get(pages::activity::activity_page))
        .route("/trends", get(pages::words::words_page))
        .route("/quality", get(pages::quality::quality_page))
        .route("/cost", get(pages::cost::cost_page))
        .route("/cost.csv", get(pages::cost::download::cost_csv))
        .route("/edits", get(pages::edits::edits_page))
        .route("/compare", get(pages::compare::compare_page))
        .route("/threads", get(pages::threads::threads_page))
        .route("/thread", get(pages::threads::thread_page))
        .route("/events", get(live::event_stream))
        .route("/assets/{version}/{name}", get(serve_asset))
        .route("/api/openapi.json", get(api::get_openapi))
        .route("/api/sessions", get(api::list_sessions))
        .route("/api/sessions/{agent}/{id}", get(api::get_session))
        .route("/api/sessions/{agent}/{id}/entries", get(api::list_entries))
        .route("/api/sessions/{agent}/{id}/resume", post(api::resume_session))
        .route("/api/sessions/{agent}/{id}/notes", get(api::list_notes).post(api::add_note))
        .route("/api/sessions/{agent}/{id}/notes/{note}", delete(api::remove_note))
        .route("/api/notes", get(api::list_all_notes))
        .route("/api/search", get(api::search_entries))
        .route("/api/cost", get(api::get_cost))
        .route("/api/trends", get(report_api::count_words))
        .route("/api/edits", get(report_api::list_edits))
        .route("/api/diff", get(api::get_diff))
        .merge(history.unwrap_or_default())
        .fallback(answer_unknown_path)
        .layer(middleware::from_fn(check_query))
        .layer(DefaultBodyLimit::max(app.body_bytes))
        .layer(middleware::from_fn_with_state(guard, guard::check_request))
        .with_state(app)
}

/// Answers with JSON below the path of the JSON API, else with a page.
async fn answer_unknown_path(uri: Uri) -> Response {
    match uri.path().starts_with(API_PREFIX) {
        true => ApiError::from(WebError::NotFound(uri.path().to_owned())).into_response(),
        false => WebError::NotFound("page".to_owned()).into_response(),
    }
}

async fn serve_asset(Path((version, name)): Path<(String, String)>) -> Response {
    let asset = assets::WEB_ASSETS.iter().find(|asset| asset.name == name);
    match asset.filter(|_| version == *assets::ASSETS_VERSION) {
        Some(asset) => {
            let lasting = "max-age=31536000, immutable";
            ([(CONTENT_TYPE, asset.media_type), (CACHE_CONTROL, lasting)], asset.text)
                .into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
