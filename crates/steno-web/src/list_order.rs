//! The order of the session list. It is a part of the list's address.

use std::cmp::Ordering;

use steno_model::Session;
use steno_store::index::ListedSession;

use crate::session_listing::SessionListing;

/// What sessions are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SortKey {
    LastActive,
    Entries,
    Duration,
    Tokens,
    Cost,
}

/// All keys: the value of the query parameter, and what the page calls it, each way round.
const SORT_KEYS: [(SortKey, &str, [&str; 2]); 5] = [
    (SortKey::LastActive, "last", ["latest first", "oldest first"]),
    (SortKey::Entries, "entries", ["most entries first", "fewest entries first"]),
    (SortKey::Duration, "duration", ["longest first", "shortest first"]),
    (SortKey::Tokens, "tokens", ["most tokens first", "fewest tokens first"]),
    (SortKey::Cost, "cost", ["most expensive first", "cheapest first"]),
];

/// An order: the largest or latest first, or the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionOrder {
    pub(crate) key: SortKey,
    pub(crate) is_reversed: bool,
}

impl SessionOrder {
    /// Parses a query parameter, such as `cost` or `-cost`. Anything unknown is the usual order: the latest first.
    pub(crate) fn parse(text: &str) -> Self {
        let (name, is_reversed) = match text.strip_prefix('-') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let known = SORT_KEYS.iter().find(|(_, known, _)| *known == name);
        known.map_or(Self { key: SortKey::LastActive, is_reversed: false }, |(key, ..)| Self {
            key: *key,
            is_reversed,
        })
    }

    /// The query parameter; empty for the usual order.
    pub(crate) fn to_parameter(self) -> String {
        let name = SORT_KEYS.iter().find(|(key, ..)| *key == self.key).map_or("", |one| one.1);
        match self {
            Self { key: SortKey::LastActive, is_reversed: false } => String::new(),
            Self { is_reversed: true, .. } => format!("-{name}"),
            Self { .. } => name.to_owned(),
        }
    }

    /// What the page calls it.
    pub(crate) fn name(self) -> &'static str {
        let known = SORT_KEYS.iter().find(|(key, ..)| *key == self.key);
        known.map_or("", |(.., names)| names[usize::from(self.is_reversed)])
    }

    /// The order that the heading of a column leads to: by this key, or the other way round if it is the present one.
    pub(crate) fn toggled(self, key: SortKey) -> Self {
        Self { key, is_reversed: self.key == key && !self.is_reversed }
    }

    /// Sorts sessions. Those without a value come last, and equal ones by their last activity.
    pub(crate) fn sort(self, sessions: &mut [&ListedSession], listing: &SessionListing) {
        sessions.sort_by_cached_key(|one| SortValue {
            number: self.value(&one.session, listing).map(Number),
            last: last_active(&one.session),
            is_reversed: self.is_reversed,
        });
    }

    fn value(self, session: &Session, listing: &SessionListing) -> Option<f64> {
        match self.key {
            SortKey::LastActive => last_active(session).map(|at| at.as_millisecond() as f64),
            SortKey::Entries => Some(session.totals.entries as f64),
            SortKey::Duration => {
                // In seconds, as the list shows it.
                let seconds = session.ended?.unix_seconds() - session.started?.unix_seconds();
                (seconds > 0).then_some(seconds as f64)
            }
            SortKey::Tokens => {
                let usage = &session.totals.usage;
                let tokens = usage.prompt_tokens().saturating_add(usage.output);
                (tokens > 0).then_some(tokens as f64)
            }
            SortKey::Cost => listing.known_cost(session),
        }
    }
}

/// The time of the last entry, or of the first.
pub(crate) fn last_active(session: &Session) -> Option<jiff::Timestamp> {
    session.ended.or(session.started).map(|at| at.instant())
}

/// A number with a total order.
#[derive(Clone, Copy, Debug)]
struct Number(f64);

/// What a session is sorted by.
struct SortValue {
    number: Option<Number>,
    last: Option<jiff::Timestamp>,
    is_reversed: bool,
}

impl Ord for SortValue {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_number = match (self.number, other.number) {
            (Some(Number(one)), Some(Number(two))) if self.is_reversed => one.total_cmp(&two),
            (Some(Number(one)), Some(Number(two))) => two.total_cmp(&one),
            (one, two) => two.is_some().cmp(&one.is_some()),
        };
        by_number.then_with(|| other.last.cmp(&self.last))
    }
}

impl PartialOrd for SortValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SortValue {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SortValue {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_a_query_parameter() {
        for text in ["", "-last", "cost", "-cost", "duration", "entries", "-tokens"] {
            assert_eq!(SessionOrder::parse(text).to_parameter(), text);
        }
        assert_eq!(SessionOrder::parse("no-such-order").to_parameter(), "");
        assert_eq!(SessionOrder::parse("last").to_parameter(), "");
    }

    #[test]
    fn a_heading_sorts_and_then_reverses() {
        let latest = SessionOrder::parse("");
        let by_cost = latest.toggled(SortKey::Cost);
        assert_eq!(by_cost.to_parameter(), "cost");
        assert_eq!(by_cost.toggled(SortKey::Cost).to_parameter(), "-cost");
        assert_eq!(by_cost.toggled(SortKey::Cost).toggled(SortKey::Cost), by_cost);
        assert_eq!(latest.toggled(SortKey::LastActive).to_parameter(), "-last");
    }

    #[test]
    fn sessions_without_a_value_come_last() {
        let value = |number: Option<f64>, is_reversed| SortValue {
            number: number.map(Number),
            last: None,
            is_reversed,
        };
        for is_reversed in [false, true] {
            let mut all = [None, Some(1.0), Some(2.0)].map(|number| value(number, is_reversed));
            all.sort();
            let numbers = all.map(|one| one.number.map(|number| number.0));
            let expected = if is_reversed { [1.0, 2.0] } else { [2.0, 1.0] };
            assert_eq!(numbers, [Some(expected[0]), Some(expected[1]), None]);
        }
    }
}
