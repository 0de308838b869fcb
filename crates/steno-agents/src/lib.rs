//! What Steno knows about agents: where their sessions are, how to read and resume them, the protocols on their wires,
//! and the formats in which sessions are exchanged.
//!
//! The crate is synchronous, prints nothing and does not read the environment. Callers pass in paths and the clock.

pub mod agent;
pub mod agent_session;
pub mod agents;
pub mod decoding;
pub mod inspect;
pub mod interchange;
pub mod join;
pub mod protocols;
pub mod reader;
pub mod registry;
