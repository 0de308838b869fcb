//! Changed files that wait until they have been quiet, but not for long.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The longest that a file waits while it keeps growing.
const LONGEST: Duration = Duration::from_secs(3);

/// Of its time the program rests so many parts for each that it works.
const REST: u32 = 3;

/// But it rests no longer than this, so that what is large is safe too.
const LONGEST_REST: Duration = Duration::from_secs(10);

/// The files that wait.
#[derive(Debug)]
pub(super) struct Pending {
    quiet: Duration,
    waiting: HashMap<PathBuf, Wait>,
    /// Until when to rest.
    rested: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    first: Instant,
    due: Instant,
}

impl Pending {
    /// Files wait until they have been quiet for so long.
    pub(super) fn new(quiet: Duration) -> Self {
        Self { quiet, waiting: HashMap::new(), rested: None }
    }

    /// The file has changed.
    pub(super) fn touch(&mut self, file: PathBuf, now: Instant) {
        let due = now + self.quiet;
        let wait = self.waiting.entry(file).or_insert(Wait { first: now, due });
        wait.due = due.min(wait.first + LONGEST.max(self.quiet));
    }

    /// Work took so long.
    pub(super) fn worked(&mut self, took: Duration, now: Instant) {
        self.rested = Some(now + (took * REST).min(LONGEST_REST));
    }

    /// When the next file is due.
    pub(super) fn next(&self) -> Option<Instant> {
        let due = self.waiting.values().map(|wait| wait.due).min()?;
        Some(self.rested.map_or(due, |rested| rested.max(due)))
    }

    /// A file that is due; the longest waiting first.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<PathBuf> {
        if self.rested.is_some_and(|rested| now < rested) {
            return None;
        }
        let due = self.waiting.iter().filter(|(_, wait)| wait.due <= now);
        let file = due.min_by_key(|(_, wait)| wait.due)?.0.clone();
        self.waiting.remove(&file);
        Some(file)
    }

    /// All files that wait, due or not.
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
        let mut pending = Pending::new(ms(500));
        pending.touch("a".into(), start);
        pending.touch("a".into(), start + ms(400));
        assert_eq!(pending.take_due(start + ms(600)), None);
        assert_eq!(pending.next(), Some(start + ms(900)));
        assert_eq!(pending.take_due(start + ms(900)), Some("a".into()));
        assert_eq!(pending.next(), None);
        for step in 0..100 {
            pending.touch("b".into(), start + ms(step * 100));
        }
        assert_eq!(pending.next(), Some(start + LONGEST));
    }

    #[test]
    fn work_is_followed_by_rest() {
        let start = Instant::now();
        let mut pending = Pending::new(ms(0));
        pending.touch("a".into(), start);
        pending.worked(ms(100), start);
        assert_eq!(pending.take_due(start + ms(299)), None);
        assert_eq!(pending.next(), Some(start + ms(300)));
        pending.worked(ms(60_000), start);
        assert_eq!(pending.next(), Some(start + LONGEST_REST));
        assert_eq!(pending.take_due(start + LONGEST_REST), Some("a".into()));
    }
}
