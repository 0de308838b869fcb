//! Formats for exchanging sessions between programs, one module each: reading and writing side by side.

pub mod atif;
pub mod inspect_eval;
pub mod litellm;
pub mod openai;
pub mod otel;
pub mod swe_agent;
pub mod vercel;
