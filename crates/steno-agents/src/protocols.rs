//! The wire between agents, editors and models, decoded into entries.

pub mod acp;
pub mod api_log;
pub(crate) mod gemini_parts;
pub mod responses;
pub mod traffic;
