//! A store of agent sessions: keep them, search them, count their tokens and costs, compare them and show them.
//!
//! The crate is synchronous, prints nothing and does not read the environment. Callers pass in paths and the clock.

pub mod compare;
pub mod cost;
pub mod entry_filter;
pub mod format;
pub mod index;
pub mod model_call_capture;
pub mod repository;
pub mod transcript;
pub mod view;
