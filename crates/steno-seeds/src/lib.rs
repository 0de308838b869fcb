//! The formats and runtimes of the four systems that Steno grew from: leslie, devflow, weakincentives and chibi, and the
//! threads of leslie.
//!
//! The crate is synchronous, prints nothing and does not read the environment. Callers pass in paths and the clock.

pub mod chibi;
pub mod devflow;
pub mod leslie;
pub mod thread;
pub mod weakincentives;
