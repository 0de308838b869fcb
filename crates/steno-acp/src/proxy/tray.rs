//! Where what is passed on is laid down, in the order in which it was said. Nobody is woken for a word: who collects looks every
//! few milliseconds, sleeps when nothing comes, and is called when much lies there.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use steno_core::Timestamp;
use steno_core::agent::acp::wire::Side;

/// Bytes that are not left lying until the next look.
const MUCH: usize = 128 << 10;

/// How often somebody looks while there is something.
const LOOK: Duration = Duration::from_millis(10);

/// Looks in vain after which one sleeps until something comes.
const PATIENCE: u32 = 30;

/// What one side has said at some moment.
pub(super) struct Word {
    pub(super) side: Side,
    pub(super) at: Timestamp,
    pub(super) piece: Piece,
}

/// Bytes of one side.
pub(super) enum Piece {
    /// A copy of them.
    Copied(Vec<u8>),
    /// So many that stand in the side's tap.
    Tapped(usize),
}

/// What was passed on and not collected yet.
#[derive(Default)]
pub(super) struct Tray(Mutex<Laid>);

#[derive(Default)]
struct Laid {
    words: Vec<Word>,
    bytes: usize,
    /// Who sleeps until something comes.
    sleeper: Option<Thread>,
    /// Who is called when much lies here.
    collector: Option<Thread>,
    is_over: bool,
}

impl Tray {
    /// Lays down a word of so many bytes.
    pub(super) fn lay(&self, word: Word, count: usize) {
        let mut laid = self.laid();
        laid.words.push(word);
        let was_little = laid.bytes < MUCH;
        laid.bytes += count;
        let is_much = was_little && laid.bytes >= MUCH;
        let called = laid.sleeper.take().or_else(|| laid.collector.clone().filter(|_| is_much));
        drop(laid);
        if let Some(thread) = called {
            thread.unpark();
        }
    }

    /// Nothing more will be laid down that is to be collected.
    pub(super) fn end(&self) {
        let mut laid = self.laid();
        laid.is_over = true;
        if let Some(thread) = laid.collector.take() {
            thread.unpark();
        }
    }

    /// Gives every word to `collect`, until the end.
    pub(super) fn collect(&self, mut collect: impl FnMut(Word)) {
        self.laid().collector = Some(thread::current());
        let (mut words, mut looks) = (Vec::new(), 0);
        while let Some(pause) = self.take(&mut words, looks) {
            looks = if words.is_empty() { looks + 1 } else { 0 };
            words.drain(..).for_each(&mut collect);
            match pause {
                Pause::None => {}
                Pause::Look => thread::park_timeout(LOOK),
                Pause::Sleep => thread::park(),
            }
        }
    }

    /// Takes all that lies here, in exchange for an empty list; what to do after it, or nothing at the end.
    fn take(&self, words: &mut Vec<Word>, looks: u32) -> Option<Pause> {
        let mut laid = self.laid();
        let bytes = std::mem::take(&mut laid.bytes);
        std::mem::swap(&mut laid.words, words);
        if words.is_empty() && laid.is_over {
            return None;
        }
        let is_asleep = words.is_empty() && looks >= PATIENCE;
        laid.sleeper = is_asleep.then(thread::current);
        // At the end, and while much comes, one looks again at once.
        Some(match (laid.is_over || bytes >= MUCH, is_asleep) {
            (true, _) => Pause::None,
            (false, true) => Pause::Sleep,
            (false, false) => Pause::Look,
        })
    }

    fn laid(&self) -> MutexGuard<'_, Laid> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Pause {
    None,
    Look,
    Sleep,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn all_is_collected_in_its_order_also_after_a_sleep() {
        let tray = Arc::new(Tray::default());
        let other = Arc::clone(&tray);
        let collecting = thread::spawn(move || {
            let mut heard = Vec::new();
            other.collect(|word| {
                let Piece::Copied(bytes) = word.piece else { panic!("only copies") };
                heard.extend(bytes);
            });
            heard
        });
        let at: Timestamp = "2026-01-05T09:15:32Z".parse().unwrap();
        let word = |byte| Word { side: Side::Agent, at, piece: Piece::Copied(vec![byte]) };
        for byte in 0..100 {
            tray.lay(word(byte), if byte % 10 == 0 { MUCH } else { 1 });
            if byte == 50 {
                thread::sleep(LOOK * (PATIENCE + 10));
            }
        }
        tray.end();
        assert_eq!(collecting.join().unwrap(), (0..100).collect::<Vec<u8>>());
    }
}
