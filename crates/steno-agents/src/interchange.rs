//! Formats for exchanging sessions between programs, one module each: reading and writing side by side.

pub mod atif;
pub mod inspect_eval;
pub mod litellm;
pub mod openai;
pub mod otel;
pub mod swe_agent;
pub mod vercel;

use crate::agent::Agent;

/// All formats with a reader. [`crate::registry::all_agents`] explains the order.
pub(crate) const FORMATS: &[&Agent] = &[
    &litellm::AGENT,
    &vercel::AGENT,
    &atif::AGENT,
    &swe_agent::AGENT,
    &inspect_eval::AGENT,
    &otel::AGENT,
];
