//! The recorder of one side of a connection.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steno_agents::protocols::acp::wire::AcpSide;
use steno_model::Clock;

use super::{QueueState, RecorderMessage, STORE_TIMEOUT};

/// How many bytes may be queued while the store hangs. More are dropped, until half of the queue is written.
const MAX_QUEUED_BYTES: usize = 256 << 20;

/// Records the bytes of one side.
#[derive(Debug)]
pub struct SideRecorder {
    side: AcpSide,
    messages: Sender<RecorderMessage>,
    queue: QueueState,
    clock: Clock,
    /// How many writes were queued.
    queued: u64,
    /// How many writes are done.
    written: Arc<WrittenCount>,
    is_dropping: bool,
    store_timeout: Duration,
}

/// The first bytes of a shared buffer, which are written and forwarded without a copy.
#[derive(Clone, Debug)]
pub(crate) struct WireBytes {
    buffer: Arc<Vec<u8>>,
    length: usize,
}

impl WireBytes {
    /// The first `length` bytes of a buffer.
    pub(crate) fn new(buffer: &Arc<Vec<u8>>, length: usize) -> Self {
        Self { buffer: Arc::clone(buffer), length }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }
}

impl SideRecorder {
    pub(super) fn new(
        side: AcpSide,
        messages: Sender<RecorderMessage>,
        queue: QueueState,
        clock: Clock,
    ) -> Self {
        let (written, store_timeout) = (Arc::default(), STORE_TIMEOUT);
        Self { side, messages, queue, clock, queued: 0, written, is_dropping: false, store_timeout }
    }

    /// Records bytes before they are forwarded. They are in the log when this returns, unless the store hangs.
    pub fn record(&mut self, bytes: &[u8]) {
        self.record_shared(WireBytes::new(&Arc::new(bytes.to_vec()), bytes.len()));
    }

    /// Records bytes before they are forwarded, without a copy.
    pub(crate) fn record_shared(&mut self, bytes: WireBytes) {
        let at = self.clock.now();
        let limit = if self.is_dropping { MAX_QUEUED_BYTES / 2 } else { MAX_QUEUED_BYTES };
        let was_dropping = self.is_dropping;
        self.is_dropping = self.queue.queued_bytes.load(Ordering::Acquire) >= limit;
        if self.is_dropping {
            let lines = memchr::memchr_iter(b'\n', bytes.as_slice()).count() as u64;
            self.queue.dropped_lines.fetch_add(lines, Ordering::AcqRel);
            if !was_dropping {
                let _ = self.messages.send(RecorderMessage::Overflow(self.side, at));
            }
            return;
        }
        // Earlier bytes are still queued, so the store hangs. Do not wait for it.
        let hangs = self.written.get() < self.queued;
        self.queue.queued_bytes.fetch_add(bytes.len(), Ordering::AcqRel);
        self.queued += 1;
        let (side, written) = (self.side, Arc::clone(&self.written));
        let _ = self.messages.send(RecorderMessage::Write { side, at, bytes, written });
        if !hangs {
            self.written.wait_for(self.queued, self.store_timeout);
        }
    }
}

/// Counts the finished writes of one side.
#[derive(Debug, Default)]
pub(super) struct WrittenCount {
    count: Mutex<u64>,
    changed: Condvar,
}

impl WrittenCount {
    pub(super) fn increment(&self) {
        *self.lock() += 1;
        self.changed.notify_one();
    }

    fn get(&self) -> u64 {
        *self.lock()
    }

    fn wait_for(&self, count: u64, timeout: Duration) {
        let _ = self.changed.wait_timeout_while(self.lock(), timeout, |known| *known < count);
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver};

    use super::*;

    fn side_recorder(store_timeout: Duration) -> (SideRecorder, Receiver<RecorderMessage>) {
        let (messages, received) = mpsc::channel();
        let queue = QueueState::default();
        let recorder = SideRecorder::new(AcpSide::Agent, messages, queue, Clock::system());
        (SideRecorder { store_timeout, ..recorder }, received)
    }

    fn written(message: RecorderMessage) -> Vec<u8> {
        let RecorderMessage::Write { bytes, written, .. } = message else { panic!("not written") };
        written.increment();
        bytes.as_slice().to_vec()
    }

    #[test]
    fn record_returns_after_the_bytes_were_written() {
        let (mut recorder, received) = side_recorder(Duration::MAX);
        let (wrote, waiting) = mpsc::channel();
        let writer = std::thread::spawn(move || {
            for message in received {
                let bytes = written_after(message, &wrote);
                assert!(!bytes.is_empty());
            }
        });
        for count in 1..=100 {
            recorder.record(b"a\n");
            assert_eq!(waiting.try_iter().count(), 1, "message {count} was not written first");
        }
        drop(recorder);
        writer.join().unwrap();
    }

    fn written_after(message: RecorderMessage, wrote: &Sender<()>) -> Vec<u8> {
        std::thread::yield_now();
        wrote.send(()).unwrap();
        written(message)
    }

    #[test]
    fn a_store_that_hangs_delays_only_once() {
        let (mut recorder, received) = side_recorder(Duration::from_millis(1));
        recorder.record(b"a\n");
        recorder.store_timeout = Duration::MAX;
        recorder.record(b"b\n");
        // Once the store has caught up, `record` waits for it again.
        received.try_iter().for_each(|message| drop(written(message)));
        let writer = std::thread::spawn(move || written(received.recv().unwrap()));
        recorder.record(b"c\n");
        assert_eq!(recorder.written.get(), 3);
        assert_eq!(writer.join().unwrap(), b"c\n");
    }

    #[test]
    fn lines_over_the_queue_limit_are_dropped_and_counted() {
        let (mut recorder, received) = side_recorder(Duration::ZERO);
        let queued_bytes = Arc::clone(&recorder.queue.queued_bytes);
        queued_bytes.store(MAX_QUEUED_BYTES, Ordering::Release);
        recorder.record(b"a\nb\n");
        recorder.record(b"c\n");
        // Recording continues only when the queue is below half of its limit.
        queued_bytes.store(MAX_QUEUED_BYTES / 2, Ordering::Release);
        recorder.record(b"d\n");
        assert!(matches!(received.try_recv(), Ok(RecorderMessage::Overflow(AcpSide::Agent, _))));
        assert!(received.try_recv().is_err());
        assert_eq!(recorder.queue.dropped_lines.load(Ordering::Acquire), 4);
        queued_bytes.store(0, Ordering::Release);
        recorder.record(b"e\n");
        assert_eq!(written(received.try_recv().unwrap()), b"e\n");
        assert_eq!(queued_bytes.load(Ordering::Acquire), 2);
    }
}
