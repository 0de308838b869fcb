//! The addresses of sessions, and short forms of file paths.

use axum::extract::Path;
use steno_model::SessionId;

/// The agent and id of a session, as its address has them.
pub(crate) type SessionPath = Path<(String, String)>;

/// The address of a session's page.
pub(crate) fn session_address(agent: &str, id: &SessionId) -> String {
    // Both consist of letters, digits, '.', '_' and '-', so they need no encoding.
    format!("/session/{agent}/{id}")
}

/// The last two segments of a path.
pub(crate) fn short_path(path: &str) -> &str {
    let end = path.trim_end_matches('/');
    let cut = end.match_indices('/').rev().nth(1).map_or(0, |(at, _)| at + 1);
    &end[cut..]
}

/// The last segment of a path.
pub(crate) fn last_segment(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}
