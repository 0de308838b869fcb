//! Queue of changed files. A file waits until it has been quiet, up to a limit.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest delay of a file that keeps growing.
const MAX_DELAY: Duration = Duration::from_secs(3);

/// Rest time per work time, to limit the load.
const REST_FACTOR: u32 = 3;

/// Longest rest, so that large files are still copied in time.
const MAX_REST: Duration = Duration::from_secs(10);

/// The queue.
#[derive(Debug)]
pub(super) struct PendingFiles {
    quiet_time: Duration,
    waiting: HashMap<PathBuf, FileDelay>,
    /// No file is due before this time.
    rest_until: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct FileDelay {
    first: Instant,
    due: Instant,
}

impl PendingFiles {
    /// Creates a queue with this quiet time.
    pub(super) fn new(quiet_time: Duration) -> Self {
        Self { quiet_time, waiting: HashMap::new(), rest_until: None }
    }

    /// Queues a changed file.
    pub(super) fn touch(&mut self, file: PathBuf, now: Instant) {
        let due = now + self.quiet_time;
        let wait = self.waiting.entry(file).or_insert(FileDelay { first: now, due });
        wait.due = due.min(wait.first + MAX_DELAY.max(self.quiet_time));
    }

    /// Starts a rest after work of this duration.
    pub(super) fn rest_after(&mut self, took: Duration, now: Instant) {
        self.rest_until = Some(now + (took * REST_FACTOR).min(MAX_REST));
    }

    /// Returns when the next file is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = self.waiting.values().map(|wait| wait.due).min()?;
        Some(self.rest_until.map_or(due, |rested| rested.max(due)))
    }

    /// Removes and returns a file that is due; the earliest first.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<PathBuf> {
        if self.rest_until.is_some_and(|rested| now < rested) {
            return None;
        }
        let due = self.waiting.iter().filter(|(_, wait)| wait.due <= now);
        let file = due.min_by_key(|(_, wait)| wait.due)?.0.clone();
        self.waiting.remove(&file);
        Some(file)
    }

    /// Removes and returns all files, due or not.
    pub(super) fn take_all(&mut self) -> Vec<PathBuf> {
        self.waiting.drain().map(|(file, _)| file).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_file_waits_until_it_is_quiet_but_not_for_long() {
        let start = Instant::now();
        let mut pending = PendingFiles::new(ms(500));
        pending.touch("a".into(), start);
        pending.touch("a".into(), start + ms(400));
        assert_eq!(pending.take_due(start + ms(600)), None);
        assert_eq!(pending.next_due(), Some(start + ms(900)));
        assert_eq!(pending.take_due(start + ms(900)), Some("a".into()));
        assert_eq!(pending.next_due(), None);
        for step in 0..100 {
            pending.touch("b".into(), start + ms(step * 100));
        }
        assert_eq!(pending.next_due(), Some(start + MAX_DELAY));
    }

    #[test]
    fn work_is_followed_by_rest() {
        let start = Instant::now();
        let mut pending = PendingFiles::new(ms(0));
        pending.touch("a".into(), start);
        pending.rest_after(ms(100), start);
        assert_eq!(pending.take_due(start + ms(299)), None);
        assert_eq!(pending.next_due(), Some(start + ms(300)));
        pending.rest_after(ms(60_000), start);
        assert_eq!(pending.next_due(), Some(start + MAX_REST));
        assert_eq!(pending.take_due(start + MAX_REST), Some("a".into()));
    }
}
