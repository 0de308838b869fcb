//! The formats and runtimes of the four systems that Steno grew from: leslie, devflow, weakincentives and chibi, and the
//! threads of leslie.
//!
//! | system | start with | example |
//! |---|---|---|
//! | weakincentives | [`SliceSession`](weakincentives::SliceSession) | `weakincentives_sessions` |
//! | devflow | [`RunStore`](devflow::RunStore) | `devflow_store` |
//! | chibi | [`ChibiContext`](chibi::ChibiContext) | `chibi_context` |
//! | leslie | [`ThreadStore`](thread::ThreadStore) | `leslie_threads` |
//!
//! `cargo run -p steno-seeds --example NAME` runs an example. `docs/seeds.md` lists what is read and written.
//!
//! The crate is synchronous, prints nothing and does not read the environment. Callers pass in paths and the clock.

pub mod chibi;
pub mod devflow;
pub mod leslie;
pub mod thread;
pub mod weakincentives;

use steno_agents::agent::Agent;

/// All seed systems with a reader, in the order in which they are tried.
pub const SEED_AGENTS: &[&Agent] =
    &[&leslie::AGENT, &devflow::AGENT, &chibi::AGENT, &weakincentives::AGENT];
