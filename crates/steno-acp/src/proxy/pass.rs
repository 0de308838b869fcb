//! Passes bytes on as they come, to whom they are meant for; they are laid down for who takes them down. Nobody waits for the
//! store: in a flood, at most a moment for who collects what lies there.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use steno_core::Clock;
use steno_core::agent::acp::wire::Side;

use super::tap::Tap;
use super::tray::{Piece, Tray, Word};

/// Bytes that are passed on at a time.
const PIECE: usize = 64 << 10;

/// Bytes at a time from which on the kernel has the moves, where it can.
const MUCH: usize = 16 << 10;

/// Bytes at a time below which we have them again.
const LITTLE: usize = 4 << 10;

/// How long a stream is left to fill its pipe.
const BREATH: Duration = Duration::from_micros(20);

/// How long one waits at a time for room in the tap.
const NAP: Duration = Duration::from_micros(100);

/// How often. Who empties the tap only copies and waits for no disk: if it has not come by then, the machine is at its limit.
const NAPS: u32 = 50;

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

/// Who passes on what one side writes, and lays each piece down.
pub(super) struct Passer {
    pub(super) side: Side,
    pub(super) clock: Clock,
    pub(super) tray: Arc<Tray>,
    pub(super) tap: Option<Tap>,
    pub(super) passing: Passing,
}

impl Passer {
    /// Passes on until the side ends or nobody takes it any more.
    pub(super) fn pass(mut self, from: &File, to: &File) {
        let mut buffer = vec![0; PIECE];
        let mut is_stream = false;
        loop {
            let tapped = if is_stream { self.tapped(from) } else { 0 };
            let passed = match tapped {
                0 => self.copy(from, to, &mut buffer),
                count => self.pass_on(from, to, count).map(|()| count),
            };
            let Ok(count @ 1..) = passed else { return };
            // Of a few bytes, a copy is cheaper.
            is_stream = count >= if is_stream { LITTLE } else { MUCH };
            if is_stream && count < PIECE / 2 {
                // Who is woken for every few bytes of a stream does nothing but wake and sleep.
                thread::sleep(BREATH);
            }
        }
    }

    /// Reads what has come and writes it; says how much that was.
    fn copy(&self, mut from: &File, to: &File, buffer: &mut [u8]) -> io::Result<usize> {
        let count = loop {
            match from.read(buffer) {
                Err(error) if is_passing(&error) => {}
                other => break other?,
            }
        };
        if count > 0 {
            self.lay(Piece::Copied(buffer[..count].to_vec()), count);
            self.passing.touch(true);
            give(to, &buffer[..count])?;
            self.passing.touch(false);
        }
        Ok(count)
    }

    /// Has the kernel put what has come into the tap too; says how much, which may be nothing.
    fn tapped(&mut self, from: &File) -> usize {
        // In a flood it costs less to wait a moment than to make a copy in memory that nobody has used yet.
        let is_full = || self.tap.as_ref().is_some_and(Tap::is_full);
        (0..NAPS).take_while(|_| is_full()).for_each(|_| thread::sleep(NAP));
        match self.tap.as_mut().map(|tap| tap.take(from)) {
            Some(Ok(Some((pipe, count)))) => {
                self.lay(Piece::Tapped { pipe, count }, count);
                count
            }
            Some(Ok(None)) | None => 0,
            Some(Err(_)) => {
                self.tap = None;
                0
            }
        }
    }

    /// Passes on so many bytes that are laid down already.
    fn pass_on(&self, mut from: &File, to: &File, count: usize) -> io::Result<()> {
        self.passing.touch(true);
        let mut left = count;
        while left > 0 {
            match Tap::pass_on(from, to, left) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => left -= count,
                Err(error) if is_passing(&error) => {}
                // Not made for what stands behind it: these bytes go by our hands.
                Err(error) if error.kind() == ErrorKind::InvalidInput => {
                    let mut bytes = vec![0; left];
                    from.read_exact(&mut bytes)?;
                    give(to, &bytes)?;
                    left = 0;
                }
                Err(error) => return Err(error),
            }
        }
        self.passing.touch(false);
        Ok(())
    }

    /// It is laid down before it is passed on: else an answer could be heard ahead of what it answers.
    fn lay(&self, piece: Piece, count: usize) {
        let word = Word { side: self.side, at: self.clock.now(), piece };
        self.tray.lay(word, count);
    }
}

fn give(mut to: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether to try again: an editor may have given us pipes that do not wait.
fn is_passing(error: &io::Error) -> bool {
    if error.kind() == ErrorKind::WouldBlock {
        thread::sleep(PAUSE);
    }
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
