//! The routes for agents: the Model Context Protocol over HTTP (Streamable HTTP).
//!
//! `/mcp` serves the project that the server was started in, `/mcp/all` all projects.

use std::sync::Arc;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use http_body_util::Full;
use steno_mcp::{AgentHistory, HistoryOptions, HistoryScope, HistoryServer, HttpHistoryService};

use crate::app::WebApp;

/// The paths of the routes.
const PROJECT_PATH: &str = "/mcp";
const ALL_PATH: &str = "/mcp/all";

/// Whether a path belongs to agents. Their programs send the token in a header.
pub(crate) fn is_history_path(path: &str) -> bool {
    matches!(path, PROJECT_PATH | ALL_PATH)
}

/// The routes for agents.
pub(crate) fn build_history_routes(options: HistoryOptions, body_bytes: usize) -> Router<WebApp> {
    let all = HistoryOptions { scope: HistoryScope::All, ..options.clone() };
    let route = |options: HistoryOptions| {
        let server = HistoryServer::new(Arc::new(AgentHistory::new(options)));
        let service = server.into_http_service(body_bytes);
        any(move |app: State<WebApp>, request: Request| answer_agent(service.clone(), app, request))
    };
    Router::new().route(PROJECT_PATH, route(options)).route(ALL_PATH, route(all))
}

async fn answer_agent(
    service: HttpHistoryService,
    State(app): State<WebApp>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    match tokio::time::timeout(app.body_timeout, to_bytes(body, app.body_bytes)).await {
        Ok(Ok(body)) => {
            let request = Request::from_parts(head, Full::new(body));
            service.handle(request).await.into_response()
        }
        Ok(Err(_)) => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
    }
}
