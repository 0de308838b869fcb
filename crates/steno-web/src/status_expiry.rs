//! When the statuses of listed sessions change because time passes, so that cached lists are made again then.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use steno_model::Session;
use steno_store::current_status::StatusCheck;

/// The next time at which a session stops to count as running.
#[derive(Default)]
pub(crate) struct StatusExpiry {
    state: Mutex<ExpiryState>,
}

#[derive(Default)]
struct ExpiryState {
    next: Option<Timestamp>,
    changes: usize,
}

impl StatusExpiry {
    /// Notes when the first of some listed sessions stops to count as running.
    pub(crate) fn note_expiry<'a>(&self, sessions: impl Iterator<Item = &'a Session>) {
        let first = sessions.filter_map(StatusCheck::status_expiry).min();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.next = state.next.into_iter().chain(first).min();
    }

    /// How often a noted time has passed.
    pub(crate) fn count_changes(&self, now: Timestamp) -> usize {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.next.take_if(|next| *next <= now).is_some() {
            state.changes += 1;
        }
        state.changes
    }
}

#[cfg(test)]
mod tests {
    use steno_model::SessionStatus;

    use super::*;

    #[test]
    fn a_list_changes_once_when_a_session_stops_to_count_as_running() {
        let expiry = StatusExpiry::default();
        let mut session = Session::new("one".parse().expect("the id is valid"), "codex");
        session.ended = "2026-01-05T10:00:00Z".parse().ok();
        session.status = SessionStatus::Running;
        expiry.note_expiry([&session].into_iter());
        let at = |time: &str| expiry.count_changes(time.parse().expect("the time is valid"));
        assert_eq!(at("2026-01-05T10:04:00Z"), 0);
        assert_eq!(at("2026-01-05T10:05:00Z"), 1);
        assert_eq!(at("2026-01-05T10:06:00Z"), 1);
    }
}
