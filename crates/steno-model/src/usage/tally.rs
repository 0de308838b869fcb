//! Adds up tokens by message. A file may have millions of messages: each takes a few bytes.

use std::sync::LazyLock;

use super::{UNIQUE, Usage};
use crate::entry::Entry;
use crate::sums::{Short, SumMap, Sums};
use crate::timestamp::Timestamp;

mod chunks;

use self::chunks::{Chunks, Place};

/// What stands for names, the same in all tallies, so that they can be compared.
static NAMES: LazyLock<Sums> = LazyLock::new(Sums::default);

/// Adds up tokens, each API message once: what several records of a message repeat, or let grow, is not added.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    messages: Bills,
    total: Usage,
}

impl Tally {
    /// Counts one more entry.
    pub fn count(&mut self, entry: &Entry) {
        if let Some(usage) = &entry.usage {
            self.bill(entry.message_id.as_ref(), entry.created_at, usage);
        }
    }

    /// Counts what a record of a message states, and tells what that adds.
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

    /// What a message was billed so far.
    pub fn billed(&self, message: &String) -> Option<Usage> {
        self.messages.get(NAMES.short(message))
    }

    /// All tokens so far.
    pub fn total(&self) -> Usage {
        self.total
    }
}

/// Adds up tokens of several sources: a message that was copied from one into another counts once.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    messages: Bills,
    /// The first source and its agent: if it is the only one, nothing need be compared.
    first: Option<(String, Tally)>,
    is_begun: bool,
}

impl Ledger {
    /// Counts what stands in one more source of an agent; tells how much of it earlier ones had already.
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

/// What a message is called in all sources.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Everywhere {
    /// As in its own.
    Same,
    /// Otherwise: its id is so short that only its time tells it from others.
    Other(Short),
    /// Nothing that is known.
    Unknown,
}

/// What messages were billed.
#[derive(Clone, Debug, Default, PartialEq)]
struct Bills {
    places: SumMap<Place>,
    /// For each message what it is called everywhere, then its numbers.
    bytes: Chunks,
}

impl Bills {
    /// Raises what a message was billed, and tells by how much; of a new one, what it is called everywhere is asked.
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
        // A short name is another message's unless it was written at the same time.
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
