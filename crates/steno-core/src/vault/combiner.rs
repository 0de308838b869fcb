//! Combines requests from many callers into batches; one caller serves each batch.
//!
//! Concurrent appends share one write and one sync this way. Requests collect in a batch. The first caller that waits
//! becomes its leader and serves it after the previous batch. All waiting threads wake up at once; tasks are woken by
//! their wakers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
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
pub(crate) struct RequestBatch<R> {
    /// Whether a caller has claimed the lead.
    is_led: AtomicBool,
    /// Results in the order of the requests. Each is taken once.
    answers: OnceLock<Vec<Mutex<Option<R>>>>,
    /// Wakers of the waiting tasks.
    tasks: Mutex<Vec<Waker>>,
}

/// A request's position in a batch.
#[derive(Debug)]
pub(crate) struct BatchTicket<R> {
    batch: Arc<RequestBatch<R>>,
    index: usize,
}

impl<R> Default for RequestBatch<R> {
    fn default() -> Self {
        Self { is_led: AtomicBool::new(false), answers: OnceLock::new(), tasks: Mutex::default() }
    }
}

impl<T, R> RequestCombiner<T, R> {
    pub(crate) fn new() -> Self {
        let queue =
            BatchQueue { requests: Vec::new(), batch: Arc::default(), previous_batch: None };
        Self { queue: Mutex::new(queue) }
    }

    /// Adds a request to the open batch. It is served when a caller waits for any request of the batch.
    pub(crate) fn submit(&self, request: T) -> BatchTicket<R> {
        let mut queue = lock_ignoring_poison(&self.queue);
        let index = queue.requests.len();
        queue.requests.push(request);
        BatchTicket { batch: Arc::clone(&queue.batch), index }
    }

    /// Waits for the result. The leader calls `serve`, which returns one result per request.
    pub(crate) fn wait(&self, ticket: BatchTicket<R>, serve: impl FnOnce(Vec<T>) -> Vec<R>) -> R {
        if ticket.batch.claim_lead() {
            self.serve_batch(&ticket.batch, serve);
        }
        ticket.batch.wait_until_served();
        ticket.take_answer().expect("the batch was served")
    }

    /// Serves a batch. Only its leader calls this, once.
    pub(crate) fn serve_batch(
        &self,
        batch: &RequestBatch<R>,
        serve: impl FnOnce(Vec<T>) -> Vec<R>,
    ) {
        let before = lock_ignoring_poison(&self.queue).previous_batch.clone();
        if let Some(before) = before {
            before.wait_until_served();
        }
        let served = serve(self.close_batch());
        let served = served.into_iter().map(|answer| Mutex::new(Some(answer))).collect();
        assert!(batch.answers.set(served).is_ok(), "a batch is served by one caller");
        std::mem::take(&mut *lock_ignoring_poison(&batch.tasks)).into_iter().for_each(Waker::wake);
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

impl<R> BatchTicket<R> {
    /// Polls for the result; the task is woken when it is available. If the batch has no leader yet, `lead` receives
    /// it and must serve it.
    pub(crate) fn poll(
        &self,
        task: &Context<'_>,
        lead: impl FnOnce(Arc<RequestBatch<R>>),
    ) -> Poll<R> {
        if self.batch.claim_lead() {
            lead(Arc::clone(&self.batch));
        }
        let mut tasks = lock_ignoring_poison(&self.batch.tasks);
        // Checked under the lock: wakers are taken under it after the results are set.
        if let Some(answer) = self.take_answer() {
            return Poll::Ready(answer);
        }
        tasks.push(task.waker().clone());
        Poll::Pending
    }

    fn take_answer(&self) -> Option<R> {
        let answers = self.batch.answers.get()?;
        let answer = lock_ignoring_poison(&answers[self.index]).take();
        Some(answer.expect("nobody else has this index in the batch"))
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
                        let ticket = combiner.submit(request);
                        let answer = combiner.wait(ticket, |requests: Vec<u64>| {
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

    #[test]
    fn one_thread_may_wait_for_many() {
        let combiner = RequestCombiner::new();
        let mut tickets: Vec<_> = (0..5_u64).map(|request| combiner.submit(request)).collect();
        // Nobody waits for the dropped ticket; it is served with the others.
        drop(tickets.remove(1));
        let mut batches = 0;
        for (ticket, request) in tickets.into_iter().zip([0, 2, 3, 4]) {
            let answer = combiner.wait(ticket, |requests| {
                batches += 1;
                assert_eq!(requests, [0, 1, 2, 3, 4]);
                requests
            });
            assert_eq!(answer, request);
        }
        assert_eq!(batches, 1);
    }
}
