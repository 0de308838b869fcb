//! Searches the entries of a session in several threads.

use std::num::NonZero;
use std::thread;

use steno_model::entry::Entry;

use super::SecretText;

/// Minimum number of entries per thread.
const MIN_ENTRIES_PER_THREAD: usize = 200;

/// Calls `search` with parts of the entries, in parallel. Returns what it found, in order.
pub(super) fn in_parts(
    entries: &[Entry],
    search: impl Fn(&[Entry]) -> Vec<SecretText> + Sync,
) -> Vec<SecretText> {
    join_parts(entries.chunks(part_size(entries.len())).collect(), &search)
}

/// As [`in_parts`], for entries that change.
pub(super) fn in_parts_mut(
    entries: &mut [Entry],
    redact: impl Fn(&mut [Entry]) -> Vec<SecretText> + Sync,
) -> Vec<SecretText> {
    join_parts(entries.chunks_mut(part_size(entries.len())).collect(), &redact)
}

fn part_size(entries: usize) -> usize {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    entries.div_ceil(threads).max(MIN_ENTRIES_PER_THREAD)
}

fn join_parts<P: Send>(
    mut parts: Vec<P>,
    work: &(impl Fn(P) -> Vec<SecretText> + Sync),
) -> Vec<SecretText> {
    thread::scope(|scope| {
        // This thread does its share too.
        let last = parts.pop();
        let others: Vec<_> = parts.into_iter().map(|part| scope.spawn(|| work(part))).collect();
        let last = last.map(work).unwrap_or_default();
        let join = |part: thread::ScopedJoinHandle<'_, Vec<SecretText>>| {
            part.join().expect("any text can be searched")
        };
        others.into_iter().map(join).chain([last]).flatten().collect()
    })
}
