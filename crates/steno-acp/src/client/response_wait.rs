//! Timeouts for the responses that a client needs to open a session. Prompts have none.

use std::time::{Duration, Instant};

/// When the user learns at the latest that the agent has not answered yet.
const MAX_NOTICE_AFTER: Duration = Duration::from_secs(5);

/// Waits for one response. The time starts again with each message of the agent, because an agent that sends messages
/// is working.
#[derive(Debug)]
pub(super) struct ResponseWait {
    silent_since: Instant,
    timeout: Duration,
    has_noticed: bool,
}

/// What to do when the deadline has passed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WaitStep {
    /// Notify the user.
    Notice,
    /// Stop waiting.
    GiveUp,
}

impl ResponseWait {
    pub(super) fn new(timeout: Duration, now: Instant) -> Self {
        Self { silent_since: now, timeout, has_noticed: false }
    }

    /// Restarts the time.
    pub(super) fn note_message(&mut self, now: Instant) {
        self.silent_since = now;
    }

    /// When the next step is due; `None` if the timeout is too long for a clock.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let notice_after = MAX_NOTICE_AFTER.min(self.timeout / 2);
        self.silent_since.checked_add(if self.has_noticed { self.timeout } else { notice_after })
    }

    /// The next step, once the deadline has passed.
    pub(super) fn step(&mut self) -> WaitStep {
        match std::mem::replace(&mut self.has_noticed, true) {
            false => WaitStep::Notice,
            true => WaitStep::GiveUp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_notified_once_before_the_timeout() {
        let (began, second) = (Instant::now(), Duration::from_secs(1));
        let mut wait = ResponseWait::new(60 * second, began);
        assert_eq!(wait.deadline(), Some(began + 5 * second));
        assert_eq!(wait.step(), WaitStep::Notice);
        assert_eq!(wait.deadline(), Some(began + 60 * second));
        wait.note_message(began + 20 * second);
        assert_eq!(wait.deadline(), Some(began + 80 * second));
        assert_eq!(wait.step(), WaitStep::GiveUp);
        assert_eq!(ResponseWait::new(second, began).deadline(), Some(began + second / 2));
    }
}
