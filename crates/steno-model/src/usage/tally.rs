//! Sums up tokens by message. A file may have millions of messages, so each needs only a few bytes.

use std::sync::LazyLock;

use super::{UNIQUE, Usage};
use crate::entry::Entry;
use crate::sums::{Short, SumMap, Sums};
use crate::timestamp::Timestamp;

mod chunks;

use self::chunks::{Chunks, Place};

/// The hasher of all tallies, so that their names can be compared.
static NAMES: LazyLock<Sums> = LazyLock::new(Sums::default);

/// Sums up tokens, counting each API message once even if several records repeat or raise its counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    messages: Bills,
    total: Usage,
}

impl Tally {
    /// Counts an entry.
    pub fn count(&mut self, entry: &Entry) {
        if let Some(usage) = &entry.usage {
            self.bill(entry.message_id.as_ref(), entry.created_at, usage);
        }
    }

    /// Counts one record of a message. Returns what it adds to the total.
    pub fn bill(
        &mut self,
        message: Option<&String>,
        at: Option<Timestamp>,
        usage: &Usage,
    ) -> Usage {
        let Some(message) = message else {
            self.total.add(usage);
            return *usage;
        };
        let name = NAMES.short(message);
        let everywhere = || match at {
            _ if message.len() >= UNIQUE => Everywhere::Same,
            Some(at) => Everywhere::Other(NAMES.short((message, at))),
            None => Everywhere::Unknown,
        };
        let growth = self.messages.grow(name, usage, everywhere);
        self.total.add(&growth);
        growth
    }

    /// The tokens of a message so far.
    pub fn billed(&self, message: &String) -> Option<Usage> {
        self.messages.get(NAMES.short(message))
    }

    /// All tokens so far.
    pub fn total(&self) -> Usage {
        self.total
    }
}

/// Sums up tokens over several session files. A message copied from one file to another counts once.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    messages: Bills,
    /// The first tally and its agent. If there is no second, no comparison is needed.
    first: Option<(String, Tally)>,
    is_begun: bool,
}

impl Ledger {
    /// Adds the tally of one more file of an agent. Returns the part that earlier files had already.
    pub fn repeated(&mut self, agent: &str, tally: Tally) -> Usage {
        if !self.is_begun {
            (self.first, self.is_begun) = (Some((agent.to_owned(), tally)), true);
            return Usage::default();
        }
        if let Some((agent, first)) = self.first.take() {
            self.add(&agent, &first);
        }
        self.add(agent, &tally)
    }

    fn add(&mut self, agent: &str, tally: &Tally) -> Usage {
        let mut repeated = Usage::default();
        for (name, everywhere, usage) in tally.messages.iter() {
            let name = match everywhere {
                Everywhere::Same => name,
                Everywhere::Other(other) => other,
                Everywhere::Unknown => continue,
            };
            let name = NAMES.short((agent, name));
            let growth = self.messages.grow(name, &usage, || Everywhere::Same);
            repeated.add(&usage.minus(&growth));
        }
        repeated
    }
}

/// The name of a message across all files.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Everywhere {
    /// The same as inside its file.
    Same,
    /// Another name, because the id is so short that only its time makes it unique.
    Other(Short),
    /// Unknown.
    Unknown,
}

/// The usage of each message.
#[derive(Clone, Debug, Default, PartialEq)]
struct Bills {
    places: SumMap<Place>,
    /// For each message its global name, then its numbers.
    bytes: Chunks,
}

impl Bills {
    /// Raises the usage of a message, and returns the difference. Calls `everywhere` only for a new message.
    fn grow(
        &mut self,
        name: Short,
        usage: &Usage,
        everywhere: impl FnOnce() -> Everywhere,
    ) -> Usage {
        let Some(place) = self.places.put(name, self.bytes.end()) else {
            self.bytes.write(everywhere(), usage);
            return *usage;
        };
        let (everywhere, mut billed) = self.bytes.read(*place);
        let growth = billed.grow(usage);
        if !growth.is_empty() {
            *place = self.bytes.end();
            self.bytes.write(everywhere, &billed);
        }
        growth
    }

    fn get(&self, name: Short) -> Option<Usage> {
        self.places.get(name).map(|place| self.bytes.read(*place).1)
    }

    fn iter(&self) -> impl Iterator<Item = (Short, Everywhere, Usage)> {
        self.places.iter().map(|(name, place)| {
            let (everywhere, usage) = self.bytes.read(*place);
            (name, everywhere, usage)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entry::{Kind, Role};

    fn tally(messages: &[(&str, &str, u64)]) -> Tally {
        let mut tally = Tally::default();
        for (id, at, output) in messages {
            let mut entry = Entry::new(Role::Assistant, Kind::Text, "");
            entry.message_id = Some((*id).to_owned());
            entry.created_at = at.parse().ok();
            entry.usage = Some(Usage { output: *output, ..Usage::default() });
            tally.count(&entry);
        }
        tally
    }

    #[test]
    fn a_copied_message_counts_once_and_may_have_grown() {
        let (noon, later) = ("2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z");
        let mut ledger = Ledger::default();
        let first = [("msg_0123456789abcdef", noon, 5), ("step-1", noon, 7), ("step-2", "", 9)];
        assert_eq!(ledger.repeated("a", tally(&first)).output, 0);
        let grown = [("msg_0123456789abcdef", later, 3), ("msg_0123456789abcdef", later, 8)];
        assert_eq!(ledger.repeated("a", tally(&grown)).output, 5);
        // A short name is another message's unless it has the same time.
        assert_eq!(ledger.repeated("a", tally(&[("step-1", later, 7)])).output, 0);
        assert_eq!(ledger.repeated("a", tally(&[("step-1", noon, 7)])).output, 7);
        assert_eq!(ledger.repeated("a", tally(&[("step-2", "", 9)])).output, 0);
        assert_eq!(ledger.repeated("b", tally(&first)).output, 0);
    }

    #[test]
    fn many_messages_have_their_bills() {
        let (mut bills, count) = (Bills::default(), 20_000);
        let usage = |number| Usage::from_numbers([number, 0, 1, number << 40, 0, 7, 0]);
        for name in 0..count {
            bills.grow(name, &usage(name), || Everywhere::Other(name + 1));
        }
        for name in 0..count {
            let growth = bills.grow(name, &usage(name + 1), || Everywhere::Same);
            assert_eq!((growth.input, growth.output), (1, 0));
        }
        assert_eq!(bills.iter().count() as u64, count);
        for (name, everywhere, billed) in bills.iter() {
            assert_eq!((everywhere, billed), (Everywhere::Other(name + 1), usage(name + 1)));
        }
    }

    proptest! {
        #[test]
        fn bills_are_the_largest_of_each_kind(stated in prop::collection::vec((0..4_u8, any::<[u64; 7]>()), 0..40)) {
            let (mut bills, mut plain) = (Bills::default(), std::collections::HashMap::new());
            for (name, numbers) in stated {
                let usage = Usage::from_numbers(numbers.map(|number| number >> (number % 64)));
                let everywhere = match name {
                    0 => Everywhere::Unknown,
                    1 => Everywhere::Other(7),
                    _ => Everywhere::Same,
                };
                let billed: &mut (Everywhere, Usage) =
                    plain.entry(u64::from(name)).or_insert((everywhere, Usage::default()));
                let growth = bills.grow(u64::from(name), &usage, || everywhere);
                prop_assert_eq!(growth, billed.1.grow(&usage));
            }
            let read = bills.iter().map(|(name, everywhere, usage)| (name, (everywhere, usage)));
            prop_assert_eq!(read.collect::<std::collections::HashMap<_, _>>(), plain);
        }
    }
}
