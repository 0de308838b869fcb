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
const MOST_YIELDS: usize = 100;

/// Yields before a batch is closed. After the first yield, nearly all callers of the previous batch have submitted
/// again. Each further yield costs a switch to every waiting thread.
const YIELDS_TO_GATHER: usize = 2;

/// Serves requests `T` with results `R`, in batches.
#[derive(Debug)]
pub(crate) struct Combiner<T, R> {
    queue: Mutex<Queue<T, R>>,
}

#[derive(Debug)]
struct Queue<T, R> {
    /// Requests of the open batch.
    requests: Vec<T>,
    /// The open batch.
    batch: Arc<Batch<R>>,
    /// The batch being served, or the last one served.
    before: Option<Arc<Batch<R>>>,
}

#[derive(Debug)]
pub(crate) struct Batch<R> {
    /// Whether a caller has claimed the lead.
    led: AtomicBool,
    /// Results in the order of the requests. Each is taken once.
    answers: OnceLock<Vec<Mutex<Option<R>>>>,
    /// Wakers of the waiting tasks.
    tasks: Mutex<Vec<Waker>>,
}

/// A request's position in a batch.
#[derive(Debug)]
pub(crate) struct Ticket<R> {
    batch: Arc<Batch<R>>,
    index: usize,
}

impl<R> Default for Batch<R> {
    fn default() -> Self {
        Self { led: AtomicBool::new(false), answers: OnceLock::new(), tasks: Mutex::default() }
    }
}

impl<T, R> Combiner<T, R> {
    pub(crate) fn new() -> Self {
        let queue = Queue { requests: Vec::new(), batch: Arc::default(), before: None };
        Self { queue: Mutex::new(queue) }
    }

    /// Adds a request to the open batch. It is served when a caller waits for any request of the batch.
    pub(crate) fn submit(&self, request: T) -> Ticket<R> {
        let mut queue = lock(&self.queue);
        let index = queue.requests.len();
        queue.requests.push(request);
        Ticket { batch: Arc::clone(&queue.batch), index }
    }

    /// Waits for the result. The leader calls `serve`, which returns one result per request.
    pub(crate) fn wait(&self, ticket: Ticket<R>, serve: impl FnOnce(Vec<T>) -> Vec<R>) -> R {
        if ticket.batch.is_mine_to_lead() {
            self.lead(&ticket.batch, serve);
        }
        ticket.batch.wait();
        ticket.answer().expect("the batch was served")
    }

    /// Serves a batch. Only its leader calls this, once.
    pub(crate) fn lead(&self, batch: &Batch<R>, serve: impl FnOnce(Vec<T>) -> Vec<R>) {
        let before = lock(&self.queue).before.clone();
        if let Some(before) = before {
            before.wait();
        }
        let served = serve(self.gather());
        let served = served.into_iter().map(|answer| Mutex::new(Some(answer))).collect();
        assert!(batch.answers.set(served).is_ok(), "a batch is served by one caller");
        std::mem::take(&mut *lock(&batch.tasks)).into_iter().for_each(Waker::wake);
    }

    /// Closes the batch. Waits while requests keep arriving, because a full batch saves more than an early one. A
    /// single caller loses one yield.
    fn gather(&self) -> Vec<T> {
        let mut seen = 0;
        for _ in 0..YIELDS_TO_GATHER {
            let waiting = lock(&self.queue).requests.len();
            if waiting == seen {
                break;
            }
            seen = waiting;
            thread::yield_now();
        }
        let mut queue = lock(&self.queue);
        queue.before = Some(std::mem::take(&mut queue.batch));
        std::mem::take(&mut queue.requests)
    }
}

impl<R> Ticket<R> {
    /// Polls for the result; the task is woken when it is available. If the batch has no leader yet, `lead` receives
    /// it and must serve it.
    pub(crate) fn poll(&self, task: &Context<'_>, lead: impl FnOnce(Arc<Batch<R>>)) -> Poll<R> {
        if self.batch.is_mine_to_lead() {
            lead(Arc::clone(&self.batch));
        }
        let mut tasks = lock(&self.batch.tasks);
        // Checked under the lock: wakers are taken under it after the results are set.
        if let Some(answer) = self.answer() {
            return Poll::Ready(answer);
        }
        tasks.push(task.waker().clone());
        Poll::Pending
    }

    fn answer(&self) -> Option<R> {
        let answers = self.batch.answers.get()?;
        let answer = lock(&answers[self.index]).take();
        Some(answer.expect("nobody else has this index in the batch"))
    }
}

impl<R> Batch<R> {
    fn is_mine_to_lead(&self) -> bool {
        !self.led.swap(true, Ordering::AcqRel)
    }

    /// Waits until the batch is served. A sync often completes before a thread could sleep and wake, so it yields
    /// first.
    fn wait(&self) {
        for _ in 0..MOST_YIELDS {
            if self.answers.get().is_some() {
                return;
            }
            thread::yield_now();
        }
        self.answers.wait();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
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
        let combiner = Combiner::new();
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
