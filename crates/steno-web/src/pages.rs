//! The pages, one module each.

pub(crate) mod compare;
pub(crate) mod cost;
pub(crate) mod home;
pub(crate) mod replay;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod threads;

use steno_core::SessionId;

/// The address of a session.
pub(crate) fn address(agent: &str, id: &SessionId) -> String {
    // Both are letters, digits, '.', '_' and '-'.
    format!("/session/{agent}/{id}")
}
