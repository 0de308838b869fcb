//! How long a client waits for answers while it opens a session. A prompt may take as long as it takes.

use std::time::{Duration, Instant};

/// When a user is told that an agent has not answered yet.
const MAX_NOTICE_AFTER: Duration = Duration::from_secs(5);

/// Waits for one answer. Time counts from the last message of the agent: while it says something, it is at work.
#[derive(Debug)]
pub(super) struct AnswerWait {
    silent_since: Instant,
    timeout: Duration,
    has_noticed: bool,
}

/// What follows when the time is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WaitStep {
    /// The user is told.
    Notice,
    /// The agent does not answer.
    GiveUp,
}

impl AnswerWait {
    pub(super) fn new(timeout: Duration, now: Instant) -> Self {
        Self { silent_since: now, timeout, has_noticed: false }
    }

    /// The agent has said something.
    pub(super) fn note_message(&mut self, now: Instant) {
        self.silent_since = now;
    }

    /// When the next step is due; never for a timeout beyond all time.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let notice_after = MAX_NOTICE_AFTER.min(self.timeout / 2);
        self.silent_since.checked_add(if self.has_noticed { self.timeout } else { notice_after })
    }

    /// The step that is due when the deadline has passed.
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
    fn the_user_is_told_once_and_then_it_is_an_error() {
        let (began, second) = (Instant::now(), Duration::from_secs(1));
        let mut wait = AnswerWait::new(60 * second, began);
        assert_eq!(wait.deadline(), Some(began + 5 * second));
        assert_eq!(wait.step(), WaitStep::Notice);
        assert_eq!(wait.deadline(), Some(began + 60 * second));
        wait.note_message(began + 20 * second);
        assert_eq!(wait.deadline(), Some(began + 80 * second));
        assert_eq!(wait.step(), WaitStep::GiveUp);
        assert_eq!(AnswerWait::new(second, began).deadline(), Some(began + second / 2));
    }
}
