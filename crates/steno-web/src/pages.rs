//! The pages, one module each.

pub(crate) mod activity;
pub(crate) mod compare;
pub(crate) mod cost;
pub(crate) mod home;
pub(crate) mod replay;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod session_export;
pub(crate) mod session_sections;
pub(crate) mod threads;

use steno_model::SessionId;

/// The address of a session's page.
pub(crate) fn session_address(agent: &str, id: &SessionId) -> String {
    // Both consist of letters, digits, '.', '_' and '-', so they need no encoding.
    format!("/session/{agent}/{id}")
}
