//! Passes bytes on as they come, to whom they are meant for; who takes them down gets a copy and is not waited for.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::scribe::Ear;

/// Bytes that are passed on at a time.
const PIECE: usize = 64 << 10;

/// Buffers that are kept for later.
const SPARE: usize = 8;

/// How long one waits whose pipe says that it is not ready.
const PAUSE: Duration = Duration::from_millis(1);

/// How far passing on has come, for who waits for its end.
#[derive(Clone, Debug)]
pub(super) struct Passing {
    begun: Instant,
    /// Whether somebody is being given something.
    is_giving: Arc<AtomicBool>,
    /// When something last came, in milliseconds since the beginning.
    last: Arc<AtomicU64>,
}

impl Default for Passing {
    fn default() -> Self {
        Self { begun: Instant::now(), is_giving: Arc::default(), last: Arc::default() }
    }
}

impl Passing {
    /// Who speaks has ended: from now on it counts when something last came.
    pub(super) fn ended(&self) {
        self.last.fetch_max(self.now(), Ordering::AcqRel);
    }

    /// Whether nothing is being passed on, and nothing has come for so long.
    pub(super) fn is_idle_for(&self, time: Duration) -> bool {
        let last = Duration::from_millis(self.last.load(Ordering::Acquire));
        let idle = self.begun.elapsed().saturating_sub(last);
        !self.is_giving.load(Ordering::Acquire) && idle > time
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn touch(&self, is_giving: bool) {
        self.last.store(self.now(), Ordering::Release);
        self.is_giving.store(is_giving, Ordering::Release);
    }
}

/// Passes on what one side writes, until it ends or nobody takes it any more.
pub(super) fn pass(mut from: impl Read, mut to: impl Write, passing: &Passing, ear: &Ear) {
    let mut pieces = Pieces::default();
    loop {
        let mut piece = pieces.next();
        let Some(buffer) = Arc::get_mut(&mut piece) else { continue };
        let count = match from.read(buffer) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if is_passing(&error) => continue,
            Err(_) => return,
        };
        // Who takes down gets it before: else an answer could be heard ahead of what it answers.
        ear.hear_piece(&piece, count);
        passing.touch(true);
        let given = give(&mut to, &piece[..count]);
        passing.touch(false);
        if given.is_err() {
            return;
        }
        pieces.put_back(piece);
    }
}

/// Buffers that are filled again once who takes down has let go of them.
#[derive(Default)]
struct Pieces(Vec<Arc<Vec<u8>>>);

impl Pieces {
    /// One that nobody else has.
    fn next(&mut self) -> Arc<Vec<u8>> {
        let free = self.0.iter().position(|piece| Arc::strong_count(piece) == 1);
        free.map_or_else(|| Arc::new(vec![0; PIECE]), |at| self.0.swap_remove(at))
    }

    fn put_back(&mut self, piece: Arc<Vec<u8>>) {
        if self.0.len() < SPARE {
            self.0.push(piece);
        }
    }
}

fn give(to: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    loop {
        match to.flush() {
            Err(error) if is_passing(&error) => {}
            other => return other,
        }
    }
}

/// Whether to try again: an editor may have given us pipes that do not wait.
fn is_passing(error: &io::Error) -> bool {
    if error.kind() == ErrorKind::WouldBlock {
        thread::sleep(PAUSE);
    }
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
