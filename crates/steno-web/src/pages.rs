//! The pages, one module each.

pub(crate) mod activity;
pub(crate) mod compare;
pub(crate) mod cost;
pub(crate) mod edits;
pub(crate) mod home;
pub(crate) mod quality;
pub(crate) mod replay;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod session_export;
pub(crate) mod session_sections;
mod subagent;
pub(crate) mod threads;
pub(crate) mod words;
