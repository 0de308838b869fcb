//! The Agent Client Protocol (ACP): a proxy that records an editor and its agent, a client that runs an agent on a
//! task, and an agent that replays a recorded session.
//!
//! `steno-agents` parses recorded messages, because the index needs them too. This crate prints nothing, reads no
//! environment variables and knows no command line. It uses threads of the standard library, not an async runtime.

pub mod child;
pub mod client;
pub mod proxy;
pub mod recording;
pub mod replay;
