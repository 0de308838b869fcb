//! Sums up tokens by message. A file may have millions of messages, so each needs only a few bytes.

use std::sync::LazyLock;

use crate::entry::Entry;
use crate::name_hash::{CompactNameMap, NameHasher, ShortNameHash};
use crate::timestamp::Timestamp;
use crate::usage::{MIN_UNIQUE_LENGTH, Usage};

mod chunks;

use self::chunks::{ChunkOffset, UsageChunks};

/// The hasher of all tallies, so that their names can be compared.
static NAME_HASHER: LazyLock<NameHasher> = LazyLock::new(NameHasher::default);

/// Sums up tokens, counting each API message once even if several records repeat or raise its counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsageTally {
    messages: MessageUsageMap,
    total: Usage,
}

impl UsageTally {
    /// Counts an entry.
    pub fn count_entry(&mut self, entry: &Entry) {
        if let Some(usage) = &entry.usage {
            self.count_message(entry.message_id.as_ref(), entry.created_at, usage);
        }
    }

    /// Counts one record of a message. Returns what it adds to the total.
    pub fn count_message(
        &mut self,
        message: Option<&String>,
        at: Option<Timestamp>,
        usage: &Usage,
    ) -> Usage {
        let Some(message) = message else {
            self.total.add(usage);
            return *usage;
        };
        let name = NAME_HASHER.hash_short(message);
        let everywhere = || match at {
            _ if message.len() >= MIN_UNIQUE_LENGTH => GlobalName::AsLocal,
            Some(at) => GlobalName::Named(NAME_HASHER.hash_short((message, at))),
            None => GlobalName::Unknown,
        };
        let growth = self.messages.raise_usage(name, usage, everywhere);
        self.total.add(&growth);
        growth
    }

    /// The tokens of a message so far.
    pub fn message_usage(&self, message: &String) -> Option<Usage> {
        self.messages.get(NAME_HASHER.hash_short(message))
    }

    /// All tokens so far.
    pub fn total(&self) -> Usage {
        self.total
    }
}

/// Sums up tokens over several session files. A message copied from one file to another counts once.
#[derive(Clone, Debug, Default)]
pub struct UsageLedger {
    messages: MessageUsageMap,
    /// The first tally and its agent. If there is no second, no comparison is needed.
    first: Option<(String, UsageTally)>,
    is_begun: bool,
}

impl UsageLedger {
    /// Adds the tally of one more file of an agent. Returns the part that earlier files had already.
    pub fn add_tally(&mut self, agent: &str, tally: UsageTally) -> Usage {
        if !self.is_begun {
            (self.first, self.is_begun) = (Some((agent.to_owned(), tally)), true);
            return Usage::default();
        }
        if let Some((agent, first)) = self.first.take() {
            self.merge_tally(&agent, &first);
        }
        self.merge_tally(agent, &tally)
    }

    fn merge_tally(&mut self, agent: &str, tally: &UsageTally) -> Usage {
        let mut repeated = Usage::default();
        for (name, everywhere, usage) in tally.messages.iter() {
            let name = match everywhere {
                GlobalName::AsLocal => name,
                GlobalName::Named(other) => other,
                GlobalName::Unknown => continue,
            };
            let name = NAME_HASHER.hash_short((agent, name));
            let growth = self.messages.raise_usage(name, &usage, || GlobalName::AsLocal);
            repeated.add(&usage.subtract(&growth));
        }
        repeated
    }
}

/// The name of a message across all files.
#[derive(Clone, Copy, Debug, PartialEq)]
enum GlobalName {
    /// The same as inside its file.
    AsLocal,
    /// Another name, because the id is so short that only its time makes it unique.
    Named(ShortNameHash),
    /// Unknown.
    Unknown,
}

/// The usage of each message.
#[derive(Clone, Debug, Default, PartialEq)]
struct MessageUsageMap {
    offsets: CompactNameMap<ChunkOffset>,
    /// For each message its global name, then its numbers.
    chunks: UsageChunks,
}

impl MessageUsageMap {
    /// Raises the usage of a message, and returns the difference. Calls `everywhere` only for a new message.
    fn raise_usage(
        &mut self,
        name: ShortNameHash,
        usage: &Usage,
        everywhere: impl FnOnce() -> GlobalName,
    ) -> Usage {
        let Some(place) = self.offsets.get_mut_or_insert(name, self.chunks.next_offset()) else {
            self.chunks.append_usage(everywhere(), usage);
            return *usage;
        };
        let (everywhere, mut billed) = self.chunks.read_usage(*place);
        let growth = billed.raise_and_diff(usage);
        if !growth.is_empty() {
            *place = self.chunks.next_offset();
            self.chunks.append_usage(everywhere, &billed);
        }
        growth
    }

    fn get(&self, name: ShortNameHash) -> Option<Usage> {
        self.offsets.get(name).map(|place| self.chunks.read_usage(*place).1)
    }

    fn iter(&self) -> impl Iterator<Item = (ShortNameHash, GlobalName, Usage)> {
        self.offsets.iter().map(|(name, place)| {
            let (everywhere, usage) = self.chunks.read_usage(*place);
            (name, everywhere, usage)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entry::{EntryKind, Role};

    fn tally(messages: &[(&str, &str, u64)]) -> UsageTally {
        let mut tally = UsageTally::default();
        for (id, at, output) in messages {
            let mut entry = Entry::new(Role::Assistant, EntryKind::Text, "");
            entry.message_id = Some((*id).to_owned());
            entry.created_at = at.parse().ok();
            entry.usage = Some(Usage { output: *output, ..Usage::default() });
            tally.count_entry(&entry);
        }
        tally
    }

    #[test]
    fn a_copied_message_counts_once_and_may_have_grown() {
        let (noon, later) = ("2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z");
        let mut ledger = UsageLedger::default();
        let first = [("msg_0123456789abcdef", noon, 5), ("step-1", noon, 7), ("step-2", "", 9)];
        assert_eq!(ledger.add_tally("a", tally(&first)).output, 0);
        let grown = [("msg_0123456789abcdef", later, 3), ("msg_0123456789abcdef", later, 8)];
        assert_eq!(ledger.add_tally("a", tally(&grown)).output, 5);
        // A short name is another message's unless it has the same time.
        assert_eq!(ledger.add_tally("a", tally(&[("step-1", later, 7)])).output, 0);
        assert_eq!(ledger.add_tally("a", tally(&[("step-1", noon, 7)])).output, 7);
        assert_eq!(ledger.add_tally("a", tally(&[("step-2", "", 9)])).output, 0);
        assert_eq!(ledger.add_tally("b", tally(&first)).output, 0);
    }

    #[test]
    fn many_messages_have_their_bills() {
        let (mut bills, count) = (MessageUsageMap::default(), 20_000);
        let usage = |number| Usage::from_numbers([number, 0, 1, number << 40, 0, 7, 0]);
        for name in 0..count {
            bills.raise_usage(name, &usage(name), || GlobalName::Named(name + 1));
        }
        for name in 0..count {
            let growth = bills.raise_usage(name, &usage(name + 1), || GlobalName::AsLocal);
            assert_eq!((growth.input, growth.output), (1, 0));
        }
        assert_eq!(bills.iter().count() as u64, count);
        for (name, everywhere, billed) in bills.iter() {
            assert_eq!((everywhere, billed), (GlobalName::Named(name + 1), usage(name + 1)));
        }
    }

    proptest! {
        #[test]
        fn bills_are_the_largest_of_each_kind(stated in prop::collection::vec((0..4_u8, any::<[u64; 7]>()), 0..40)) {
            let (mut bills, mut plain) = (MessageUsageMap::default(), std::collections::HashMap::new());
            for (name, numbers) in stated {
                let usage = Usage::from_numbers(numbers.map(|number| number >> (number % 64)));
                let everywhere = match name {
                    0 => GlobalName::Unknown,
                    1 => GlobalName::Named(7),
                    _ => GlobalName::AsLocal,
                };
                let billed: &mut (GlobalName, Usage) =
                    plain.entry(u64::from(name)).or_insert((everywhere, Usage::default()));
                let growth = bills.raise_usage(u64::from(name), &usage, || everywhere);
                prop_assert_eq!(growth, billed.1.raise_and_diff(&usage));
            }
            let read = bills.iter().map(|(name, everywhere, usage)| (name, (everywhere, usage)));
            prop_assert_eq!(read.collect::<std::collections::HashMap<_, _>>(), plain);
        }
    }
}
