//! The program from outside: each command run as a person would, in a home of its own.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bad_input;
#[cfg(unix)]
mod browser;
mod chibi;
mod cost;
mod crash;
mod databases;
mod devflow;
mod diff;
mod export;
mod harness;
#[cfg(unix)]
mod hooks;
mod killed;
mod moved;
mod places;
#[cfg(unix)]
mod readme;
mod record;
mod restore;
#[cfg(unix)]
mod resume;
mod search;
mod sessions;
mod sync;
#[cfg(unix)]
mod terminal;
mod verify;
#[cfg(unix)]
mod watch;
