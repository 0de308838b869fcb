//! Combines the requests of many threads: one of them serves all that are waiting.
//!
//! This is how concurrent appends share one write and one sync. Requests gather in a batch; whoever began it serves
//! it as soon as the batch before it is done. One wake-up then reaches all who wait.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

/// How often others are let run before a batch is closed, or before a thread goes to sleep.
const MOST_YIELDS: usize = 100;

/// Serves requests `T` with answers `R`, in batches.
#[derive(Debug)]
pub(crate) struct Combiner<T, R> {
    queue: Mutex<Queue<T, R>>,
}

#[derive(Debug)]
struct Queue<T, R> {
    /// The requests that gather now.
    requests: Vec<T>,
    /// Where their answers will be.
    answers: Arc<Answers<R>>,
    /// The batch that is being served, or was served last.
    before: Option<Arc<Answers<R>>>,
}

/// The answers of a batch, in the order of its requests; each is taken once.
type Answers<R> = OnceLock<Vec<Mutex<Option<R>>>>;

impl<T, R> Combiner<T, R> {
    pub(crate) fn new() -> Self {
        let queue = Queue { requests: Vec::new(), answers: Arc::default(), before: None };
        Self { queue: Mutex::new(queue) }
    }

    /// Has the request served by somebody's `serve`, which gives one answer for each request of a batch.
    pub(crate) fn submit(&self, request: T, serve: impl FnOnce(Vec<T>) -> Vec<R>) -> R {
        let mut queue = lock(&self.queue);
        let place = queue.requests.len();
        queue.requests.push(request);
        let (answers, before) = (Arc::clone(&queue.answers), queue.before.clone());
        drop(queue);
        if place == 0 {
            if let Some(before) = before {
                wait(&before);
            }
            let served = serve(self.gather());
            let served = served.into_iter().map(|answer| Mutex::new(Some(answer))).collect();
            assert!(answers.set(served).is_ok(), "a batch is served by the one who began it");
        }
        let answer = lock(&wait(&answers)[place]).take();
        answer.expect("nobody else has this place in the batch")
    }

    /// Closes the batch. While more requests keep coming they are let in first: a fuller batch is worth more than an
    /// early one, and whoever is alone loses nothing but one yield.
    fn gather(&self) -> Vec<T> {
        let mut seen = 0;
        for _ in 0..MOST_YIELDS {
            let waiting = lock(&self.queue).requests.len();
            if waiting == seen {
                break;
            }
            seen = waiting;
            thread::yield_now();
        }
        let mut queue = lock(&self.queue);
        queue.before = Some(std::mem::take(&mut queue.answers));
        std::mem::take(&mut queue.requests)
    }
}

/// Waits for a batch: a sync is often over before a thread could be put to sleep and woken again, so others are
/// let run for a while first.
fn wait<R>(answers: &Answers<R>) -> &[Mutex<Option<R>>] {
    for _ in 0..MOST_YIELDS {
        if let Some(answers) = answers.get() {
            return answers;
        }
        thread::yield_now();
    }
    answers.wait()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn everybody_gets_their_own_answer_and_batches_are_shared() {
        let (combiner, batches) = (Combiner::new(), AtomicU64::new(0));
        thread::scope(|scope| {
            for caller in 0..32_u64 {
                let (combiner, batches) = (&combiner, &batches);
                scope.spawn(move || {
                    for round in 0..50 {
                        let request = caller * 100 + round;
                        let answer = combiner.submit(request, |requests| {
                            batches.fetch_add(1, Ordering::SeqCst);
                            thread::sleep(Duration::from_micros(200));
                            requests.iter().map(|request| request * 2).collect()
                        });
                        assert_eq!(answer, request * 2);
                    }
                });
            }
        });
        let batches = batches.into_inner();
        assert!(batches < 800, "1600 requests took {batches} batches");
    }
}
