//! Collects what is passed on, and tells it to who takes it down. It keeps the taps from being full, so it does nothing else.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use steno_core::agent::acp::wire::Side;
use steno_core::vault::record::Closing;

use super::pass::{Passer, Passing};
use super::tap;
use super::tray::{Piece, Tray, Word};
use crate::scribe::{Assignment, Ear, Kept, Scribe};

/// How long the end may take without anything being taken down. What is not sealed then, the next recorder seals.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who collects, and who takes down.
pub(super) struct Collecting {
    tray: Arc<Tray>,
    scribe: Scribe,
    collector: JoinHandle<()>,
}

/// Where one side is collected.
struct Basket {
    ear: Ear,
    tapped: Option<File>,
}

impl Collecting {
    /// Begins to collect what the two passers lay down.
    pub(super) fn start(assignment: Assignment, passings: [Passing; 2]) -> (Self, [Passer; 2]) {
        let (tray, clock) = (Arc::<Tray>::default(), assignment.clock.clone());
        let scribe = Scribe::start(assignment);
        let mut baskets = HashMap::new();
        let [client, agent] = passings;
        let passers = [(Side::Client, client), (Side::Agent, agent)].map(|(side, passing)| {
            let (tap, tapped) = tap::tap().unzip();
            baskets.insert(side, Basket { ear: scribe.ear(side), tapped });
            let (clock, tray) = (clock.clone(), Arc::clone(&tray));
            Passer { side, clock, tray, tap, passing }
        });
        let laid = Arc::clone(&tray);
        let collector = thread::Builder::new()
            .name("collector".to_owned())
            .spawn(move || laid.collect(|word| hear(&baskets, word)));
        let collector = collector.expect("the system has room for a thread");
        (Self { tray, scribe, collector }, passers)
    }

    /// The connection has ended; gives the sessions that were taken down.
    pub(super) fn finish(self, closing: Closing) -> Vec<Kept> {
        self.tray.end();
        let _ = self.collector.join();
        self.scribe.finish(closing, PATIENCE)
    }
}

fn hear(baskets: &HashMap<Side, Basket>, word: Word) {
    let basket = &baskets[&word.side];
    let bytes = match word.piece {
        Piece::Copied(bytes) => bytes,
        Piece::Tapped(count) => tapped(basket, count),
    };
    basket.ear.hear_at(word.at, bytes);
}

/// They stand there since before the word was laid down, so nobody waits for them.
fn tapped(basket: &Basket, count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count);
    if let Some(tapped) = &basket.tapped {
        let _ = tapped.take(count as u64).read_to_end(&mut bytes);
    }
    bytes
}
