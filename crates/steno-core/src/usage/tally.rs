//! Adds up tokens by message. A file may have millions of messages: each takes a few bytes.

use std::collections::hash_map::Entry as Slot;
use std::sync::LazyLock;

use super::{UNIQUE, Usage};
use crate::entry::Entry;
use crate::sums::{Short, SumMap, Sums};
use crate::timestamp::Timestamp;

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

    /// Counts what a record of a message states.
    pub(crate) fn bill(&mut self, message: Option<&String>, at: Option<Timestamp>, usage: &Usage) {
        let Some(message) = message else { return self.total.add(usage) };
        let name = NAMES.short(message);
        let everywhere = || match at {
            _ if message.len() >= UNIQUE => Everywhere::Same,
            Some(at) => Everywhere::Other(NAMES.short((message, at))),
            None => Everywhere::Unknown,
        };
        self.total.add(&self.messages.grow(name, usage, everywhere));
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
}

impl Ledger {
    /// Counts what stands in one more source of an agent; tells how much of it earlier ones had already.
    pub fn repeated(&mut self, agent: &str, tally: &Tally) -> Usage {
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

/// Where something stands among the bytes.
type Place = [u8; 5];

/// What messages were billed.
#[derive(Clone, Debug, Default, PartialEq)]
struct Bills {
    places: SumMap<Place>,
    /// For each message what it is called everywhere, then its numbers.
    bytes: Vec<u8>,
}

impl Bills {
    /// Raises what a message was billed, and tells by how much; of a new one, what it is called everywhere is asked.
    fn grow(
        &mut self,
        name: Short,
        usage: &Usage,
        everywhere: impl FnOnce() -> Everywhere,
    ) -> Usage {
        let end = place(self.bytes.len());
        match self.places.entry(name) {
            Slot::Vacant(free) => {
                free.insert(end);
                write(&mut self.bytes, everywhere(), usage);
                *usage
            }
            Slot::Occupied(mut known) => {
                let (everywhere, mut billed) = read(&self.bytes[index(*known.get())..]);
                let growth = billed.grow(usage);
                if !growth.is_empty() {
                    known.insert(end);
                    write(&mut self.bytes, everywhere, &billed);
                }
                growth
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = (Short, Everywhere, Usage)> {
        self.places.iter().map(|(name, place)| {
            let (everywhere, usage) = read(&self.bytes[index(*place)..]);
            (*name, everywhere, usage)
        })
    }
}

fn place(index: usize) -> Place {
    let mut place = Place::default();
    place.copy_from_slice(&(index as u64).to_le_bytes()[..5]);
    place
}

fn index(place: Place) -> usize {
    let mut index = [0; 8];
    index[..5].copy_from_slice(&place);
    u64::from_le_bytes(index) as usize
}

/// Writes seven bits of a number to a byte, so that small ones are short.
fn write(bytes: &mut Vec<u8>, everywhere: Everywhere, usage: &Usage) {
    match everywhere {
        Everywhere::Same => bytes.push(0),
        Everywhere::Other(name) => {
            bytes.push(1);
            bytes.extend(name);
        }
        Everywhere::Unknown => bytes.push(2),
    }
    for mut number in usage.numbers() {
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }
}

fn read(mut bytes: &[u8]) -> (Everywhere, Usage) {
    let everywhere = match bytes.split_off_first() {
        Some(1) => {
            let name = bytes.split_off(..size_of::<Short>()).unwrap_or_default();
            Everywhere::Other(name.try_into().unwrap_or_default())
        }
        Some(2) => Everywhere::Unknown,
        _ => Everywhere::Same,
    };
    let numbers = [(); 7].map(|()| {
        let (mut number, mut shift) = (0, 0);
        while let Some(byte) = bytes.split_off_first() {
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if *byte < 0x80 {
                break;
            }
        }
        number
    });
    (everywhere, Usage::from_numbers(numbers))
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
        assert_eq!(ledger.repeated("a", &tally(&first)).output, 0);
        let grown = [("msg_0123456789abcdef", later, 3), ("msg_0123456789abcdef", later, 8)];
        assert_eq!(ledger.repeated("a", &tally(&grown)).output, 5);
        // A short name is another message's unless it was written at the same time.
        assert_eq!(ledger.repeated("a", &tally(&[("step-1", later, 7)])).output, 0);
        assert_eq!(ledger.repeated("a", &tally(&[("step-1", noon, 7)])).output, 7);
        assert_eq!(ledger.repeated("a", &tally(&[("step-2", "", 9)])).output, 0);
        assert_eq!(ledger.repeated("b", &tally(&first)).output, 0);
    }

    proptest! {
        #[test]
        fn bills_are_the_largest_of_each_kind(stated in prop::collection::vec((0..4_u8, any::<[u64; 7]>()), 0..40)) {
            let (mut bills, mut plain) = (Bills::default(), std::collections::HashMap::new());
            for (name, numbers) in stated {
                let usage = Usage::from_numbers(numbers.map(|number| number >> (number % 64)));
                let everywhere = match name {
                    0 => Everywhere::Unknown,
                    1 => Everywhere::Other([7; 11]),
                    _ => Everywhere::Same,
                };
                let billed: &mut (Everywhere, Usage) =
                    plain.entry([name; 11]).or_insert((everywhere, Usage::default()));
                let growth = bills.grow([name; 11], &usage, || everywhere);
                prop_assert_eq!(growth, billed.1.grow(&usage));
            }
            let read = bills.iter().map(|(name, everywhere, usage)| (name, (everywhere, usage)));
            prop_assert_eq!(read.collect::<std::collections::HashMap<_, _>>(), plain);
        }
    }
}
