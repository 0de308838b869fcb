//! Combines requests from many callers into batches; one caller serves each batch.
//!
//! Concurrent appends share one write and one sync this way. Requests collect in a batch. The first caller becomes its
//! leader and serves it after the previous batch. All waiting callers wake up at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

/// Yields before a waiting thread goes to sleep.
const MAX_YIELDS: usize = 100;

/// Yields before a batch is closed. After the first yield, nearly all callers of the previous batch have submitted
/// again. Each further yield costs a switch to every waiting thread.
const MAX_GATHER_YIELDS: usize = 2;

/// Serves requests `T` with results `R`, in batches.
#[derive(Debug)]
pub(crate) struct RequestCombiner<T, R> {
    queue: Mutex<BatchQueue<T, R>>,
}

#[derive(Debug)]
struct BatchQueue<T, R> {
    /// Requests of the open batch.
    requests: Vec<T>,
    /// The open batch.
    batch: Arc<RequestBatch<R>>,
    /// The batch being served, or the last one served.
    previous_batch: Option<Arc<RequestBatch<R>>>,
}

#[derive(Debug)]
struct RequestBatch<R> {
    /// Whether a caller has claimed the lead.
    is_led: AtomicBool,
    /// Results in the order of the requests. Each is taken once.
    answers: OnceLock<Vec<Mutex<Option<R>>>>,
}

impl<R> Default for RequestBatch<R> {
    fn default() -> Self {
        Self { is_led: AtomicBool::new(false), answers: OnceLock::new() }
    }
}

impl<T, R> RequestCombiner<T, R> {
    pub(crate) fn new() -> Self {
        let queue =
            BatchQueue { requests: Vec::new(), batch: Arc::default(), previous_batch: None };
        Self { queue: Mutex::new(queue) }
    }

    /// Adds a request to the open batch and waits for its result. The leader of the batch calls `serve`, which returns
    /// one result per request.
    pub(crate) fn serve(&self, request: T, serve: impl FnOnce(Vec<T>) -> Vec<R>) -> R {
        let (batch, index) = self.submit(request);
        if batch.claim_lead() {
            self.lead_batch(&batch, serve);
        }
        batch.wait_until_served();
        let answers = batch.answers.get().expect("the batch was served");
        lock_ignoring_poison(&answers[index]).take().expect("nobody else has this index")
    }

    /// Adds a request to the open batch. Returns the batch and the request's position.
    fn submit(&self, request: T) -> (Arc<RequestBatch<R>>, usize) {
        let mut queue = lock_ignoring_poison(&self.queue);
        let index = queue.requests.len();
        queue.requests.push(request);
        (Arc::clone(&queue.batch), index)
    }

    /// Serves a batch. Only its leader calls this, once.
    fn lead_batch(&self, batch: &RequestBatch<R>, serve: impl FnOnce(Vec<T>) -> Vec<R>) {
        let before = lock_ignoring_poison(&self.queue).previous_batch.clone();
        if let Some(before) = before {
            before.wait_until_served();
        }
        let served = serve(self.close_batch());
        let served = served.into_iter().map(|answer| Mutex::new(Some(answer))).collect();
        assert!(batch.answers.set(served).is_ok(), "a batch is served by one caller");
    }

    /// Closes the batch. Waits while requests keep arriving, because a full batch saves more than an early one. A
    /// single caller loses one yield.
    fn close_batch(&self) -> Vec<T> {
        let mut seen = 0;
        for _ in 0..MAX_GATHER_YIELDS {
            let waiting = lock_ignoring_poison(&self.queue).requests.len();
            if waiting == seen {
                break;
            }
            seen = waiting;
            thread::yield_now();
        }
        let mut queue = lock_ignoring_poison(&self.queue);
        queue.previous_batch = Some(std::mem::take(&mut queue.batch));
        std::mem::take(&mut queue.requests)
    }
}

impl<R> RequestBatch<R> {
    fn claim_lead(&self) -> bool {
        !self.is_led.swap(true, Ordering::AcqRel)
    }

    /// Waits until the batch is served. A sync often completes before a thread could sleep and wake, so it yields
    /// first.
    fn wait_until_served(&self) {
        for _ in 0..MAX_YIELDS {
            if self.answers.get().is_some() {
                return;
            }
            thread::yield_now();
        }
        self.answers.wait();
    }
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    use super::*;

    #[test]
    fn everybody_gets_their_own_answer_and_batches_are_shared() {
        let (combiner, batches) = (RequestCombiner::new(), AtomicU64::new(0));
        thread::scope(|scope| {
            for caller in 0..32_u64 {
                let (combiner, batches) = (&combiner, &batches);
                scope.spawn(move || {
                    for round in 0..50 {
                        let request = caller * 100 + round;
                        let answer = combiner.serve(request, |requests: Vec<u64>| {
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
