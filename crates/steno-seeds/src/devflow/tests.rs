//! Tests of the format as a whole.

mod artifacts;
mod finding;
mod lifecycle;
mod recording;
mod round_trip;

use steno_model::timestamp::{Clock, Timestamp};

/// A fixed time.
fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A clock with a fixed time.
fn clock(text: &str) -> Clock {
    Clock::fixed(at(text))
}
