//! The page in a real browser: each view is opened, read and used.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![cfg(unix)]

mod axe;
mod changed;
mod charts;
mod driver;
mod fixtures;
#[cfg(target_os = "linux")]
mod flooded;
mod guarded;
mod home;
mod hostile;
mod lists;
mod openapi;
mod phone;
mod printing;
mod reading;
mod reports;
mod site;
mod subagents;
mod views;
mod words_and_edits;
