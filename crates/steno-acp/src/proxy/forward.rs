//! Forwards what one side writes to the other. Bytes are recorded before they are forwarded.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::recording::{SideRecorder, WireBytes};

/// Bytes that are forwarded at a time: what a pipe of Linux holds.
const BUFFER_SIZE: usize = 64 << 10;

/// How long to wait for a pipe that says that it is not ready.
const RETRY_PAUSE: Duration = Duration::from_millis(1);

/// How far a [`Forwarder`] has come.
#[derive(Clone, Debug)]
pub(super) struct ForwardProgress {
    began: Instant,
    /// Whether bytes are being written.
    is_writing: Arc<AtomicBool>,
    /// When bytes last came, in milliseconds since the beginning.
    last: Arc<AtomicU64>,
}

impl Default for ForwardProgress {
    fn default() -> Self {
        Self { began: Instant::now(), is_writing: Arc::default(), last: Arc::default() }
    }
}

impl ForwardProgress {
    /// Begins to count the time without bytes anew.
    pub(super) fn restart_idle_time(&self) {
        self.last.fetch_max(self.now(), Ordering::AcqRel);
    }

    /// Whether nothing is being written, and nothing has come for so long.
    pub(super) fn is_idle_for(&self, time: Duration) -> bool {
        let last = Duration::from_millis(self.last.load(Ordering::Acquire));
        let idle = self.began.elapsed().saturating_sub(last);
        !self.is_writing.load(Ordering::Acquire) && idle > time
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn note(&self, is_writing: bool) {
        self.last.store(self.now(), Ordering::Release);
        self.is_writing.store(is_writing, Ordering::Release);
    }
}

/// Records and forwards what one side writes.
pub(super) struct Forwarder {
    pub(super) recorder: SideRecorder,
    pub(super) progress: ForwardProgress,
}

impl Forwarder {
    /// Forwards until the side ends or nobody reads any more.
    pub(super) fn forward(mut self, from: &File, to: &File) {
        let mut buffer = Arc::new(Vec::new());
        while let Ok(1..) = self.forward_once(from, to, &mut buffer) {}
    }

    /// Forwards what has come; gives how many bytes that were.
    fn forward_once(
        &mut self,
        from: &File,
        to: &File,
        buffer: &mut Arc<Vec<u8>>,
    ) -> io::Result<usize> {
        let free = match Arc::get_mut(buffer) {
            Some(free) if !free.is_empty() => free,
            // A recorder that hangs still has the last one.
            _ => {
                *buffer = Arc::new(vec![0; BUFFER_SIZE]);
                Arc::get_mut(buffer).expect("nobody else has it yet")
            }
        };
        let count = read(from, free)?;
        if count > 0 {
            self.progress.note(true);
            self.recorder.record_shared(WireBytes::new(buffer, count));
            write_all(to, &buffer[..count])?;
            self.progress.note(false);
        }
        Ok(count)
    }
}

fn read(mut from: &File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if is_temporary(&error) => {}
            read => return read,
        }
    }
}

fn write_all(mut to: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_temporary(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether to try again, after a pause where the pipe is not ready: an editor may give us pipes that do not block.
fn is_temporary(error: &io::Error) -> bool {
    if error.kind() == ErrorKind::WouldBlock {
        thread::sleep(RETRY_PAUSE);
    }
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
