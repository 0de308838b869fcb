//! Forwards bytes from one side to the other. Bytes are recorded before they are forwarded.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::recording::{SideRecorder, WireBytes};

/// How many bytes are forwarded at once: the size of a pipe on Linux.
const BUFFER_SIZE: usize = 64 << 10;

/// How long to wait for a pipe that is not ready.
const RETRY_PAUSE: Duration = Duration::from_millis(1);

/// The progress of a [`ByteForwarder`].
#[derive(Clone, Debug)]
pub(super) struct ForwardProgress {
    began: Instant,
    /// Whether bytes are being written.
    is_writing: Arc<AtomicBool>,
    /// The time of the last bytes, in milliseconds since `began`.
    last_activity: Arc<AtomicU64>,
}

impl Default for ForwardProgress {
    fn default() -> Self {
        Self { began: Instant::now(), is_writing: Arc::default(), last_activity: Arc::default() }
    }
}

impl ForwardProgress {
    /// Restarts the idle time.
    pub(super) fn restart_idle_time(&self) {
        self.last_activity.fetch_max(self.elapsed_millis(), Ordering::AcqRel);
    }

    /// Whether nothing is being written, and the last bytes are older than `time`.
    pub(super) fn is_idle_for(&self, time: Duration) -> bool {
        let last = Duration::from_millis(self.last_activity.load(Ordering::Acquire));
        let idle = self.began.elapsed().saturating_sub(last);
        !self.is_writing.load(Ordering::Acquire) && idle > time
    }

    fn elapsed_millis(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) fn note_activity(&self, is_writing: bool) {
        self.last_activity.store(self.elapsed_millis(), Ordering::Release);
        self.is_writing.store(is_writing, Ordering::Release);
    }
}

/// Records and forwards the bytes of one side.
pub(super) struct ByteForwarder {
    pub(super) recorder: SideRecorder,
    pub(super) progress: ForwardProgress,
}

impl ByteForwarder {
    /// Forwards until one of the files is closed.
    pub(super) fn forward_all(mut self, from: &File, to: &File) {
        let mut buffer = Arc::new(Vec::new());
        while let Ok(1..) = self.forward_once(from, to, &mut buffer) {}
    }

    /// Forwards the available bytes; returns their number.
    fn forward_once(
        &mut self,
        from: &File,
        to: &File,
        buffer: &mut Arc<Vec<u8>>,
    ) -> io::Result<usize> {
        let free = match Arc::get_mut(buffer) {
            Some(free) if !free.is_empty() => free,
            // A recorder that hangs still holds the last buffer.
            _ => {
                *buffer = Arc::new(vec![0; BUFFER_SIZE]);
                Arc::get_mut(buffer).expect("nobody else has it yet")
            }
        };
        let count = read_available(from, free)?;
        if count > 0 {
            self.progress.note_activity(true);
            self.recorder.record_shared(WireBytes::new(buffer, count));
            write_all(to, &buffer[..count])?;
            self.progress.note_activity(false);
        }
        Ok(count)
    }
}

pub(super) fn read_available(mut from: &File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if is_temporary(&error) => {}
            read => return read,
        }
    }
}

pub(super) fn write_all(mut to: &File, mut bytes: &[u8]) -> io::Result<()> {
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

/// Whether to retry. Sleeps first if the pipe is not ready: an editor may pass non-blocking pipes.
fn is_temporary(error: &io::Error) -> bool {
    if error.kind() == ErrorKind::WouldBlock {
        thread::sleep(RETRY_PAUSE);
    }
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
