//! Schedules retries for a store that could not be written. Reads no clock: the caller passes the time.

use std::time::{Duration, Instant};

/// The normal interval between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The longest interval, for a store that fails again soon after each success.
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// After a slow attempt, the pause is this multiple of its duration.
const PAUSE_PER_ATTEMPT: u32 = 10;

/// Decides when the next attempt is due.
#[derive(Clone, Copy, Debug)]
pub struct RetrySchedule {
    interval: Duration,
    due: Option<Instant>,
    resumed: Option<Instant>,
}

impl Default for RetrySchedule {
    fn default() -> Self {
        Self { interval: RETRY_INTERVAL, due: None, resumed: None }
    }
}

impl RetrySchedule {
    /// Records a failure. The interval doubles if the store worked only briefly.
    pub fn note_failure(&mut self, now: Instant) {
        let is_early = |resumed: Instant| now.duration_since(resumed) < MAX_RETRY_INTERVAL;
        self.interval = match self.resumed.take() {
            Some(resumed) if is_early(resumed) => (self.interval * 2).min(MAX_RETRY_INTERVAL),
            _ => RETRY_INTERVAL,
        };
        self.due = Some(now + self.interval);
    }

    /// Whether an attempt is due.
    pub fn is_due(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| now >= due)
    }

    /// Records a failed attempt that started at `began`.
    pub fn note_failed_attempt(&mut self, began: Instant, now: Instant) {
        let pause = now.duration_since(began) * PAUSE_PER_ATTEMPT;
        self.due = Some(now + pause.max(self.interval));
    }

    /// Records that the store can be written again.
    pub fn note_success(&mut self, now: Instant) {
        (self.due, self.resumed) = (None, Some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_keeps_failing_is_tried_less_often() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut schedule = RetrySchedule::default();
        schedule.note_failure(begin);
        assert!(!schedule.is_due(begin) && schedule.is_due(begin + second));
        schedule.note_success(begin + second);
        schedule.note_failure(begin + second * 2);
        assert!(!schedule.is_due(begin + second * 3) && schedule.is_due(begin + second * 4));
        // After a long time without failure, the interval is reset.
        schedule.note_success(begin + second * 4);
        schedule.note_failure(begin + second * 100);
        assert!(schedule.is_due(begin + second * 101));
    }

    #[test]
    fn a_long_attempt_is_followed_by_a_longer_pause() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut schedule = RetrySchedule::default();
        schedule.note_failure(begin);
        schedule.note_failed_attempt(begin + second, begin + second * 4);
        assert!(!schedule.is_due(begin + second * 33) && schedule.is_due(begin + second * 34));
    }
}
