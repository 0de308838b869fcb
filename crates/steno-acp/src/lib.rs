//! The Agent Client Protocol: a proxy that takes down what an editor and an agent say, a client that runs an agent on
//! a task, and an agent that plays a recorded session.
//!
//! What the wire tells is folded by `steno-core`, whose index needs it too. Nothing here prints, reads the environment
//! or knows the command line; threads are the standard library's.

pub mod child;
pub mod client;
pub mod proxy;
pub mod recording;
pub mod replay;
