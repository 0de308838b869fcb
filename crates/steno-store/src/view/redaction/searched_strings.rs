//! Remembers strings that were searched and have no secret. A session repeats ids, names of fields and paths in
//! each entry, and some agents write each result of a tool twice.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;

/// Longer strings have places of their own.
const MAX_SHORT_BYTES: usize = 128;

/// How many short strings are remembered: each replaces another one with the same place.
const SHORT_PLACES: usize = 1024;

/// Longer strings are not remembered.
const MAX_LONG_BYTES: usize = 64 << 10;

/// How many long strings are remembered. Mostly one is repeated soon.
const LONG_PLACES: usize = 32;

/// How many bytes of a long string tell its place: some at the start, in the middle and at the end.
const SAMPLE_BYTES: usize = 16;

/// How many names of fields are remembered.
const MAX_NAMES: usize = 4096;

/// Strings without secrets, and what names of fields say about values.
#[derive(Clone, Debug, Default)]
pub(super) struct SearchedStrings {
    /// Empty until the first short string is remembered.
    short: Vec<String>,
    /// Empty until the first long string is remembered.
    long: Vec<String>,
    remembers_long: bool,
    place_hasher: RandomState,
    names: HashMap<String, SearchedName, RandomState>,
}

/// What is known of the name of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SearchedName {
    /// Whether the name itself has a secret.
    pub(super) has_secret: bool,
    /// Whether the field's whole value may be a secret.
    pub(super) may_name_secret: bool,
}

impl SearchedStrings {
    /// Remembers long strings, too: for a search that takes longer than to compare and copy them.
    pub(super) fn with_long() -> Self {
        Self { remembers_long: true, ..Self::default() }
    }

    /// Whether a string is known to have no secret.
    pub(super) fn is_clean(&self, text: &str) -> bool {
        let places = if is_short(text) { &self.short } else { &self.long };
        let known = || places.get(self.place_of(text)).is_some_and(|known| known == text);
        text.is_empty() || !places.is_empty() && known()
    }

    /// Remembers a string without a secret, if it is not too long.
    pub(super) fn remember_clean(&mut self, text: &str) {
        let is_short = is_short(text);
        let is_remembered = is_short || self.remembers_long && text.len() <= MAX_LONG_BYTES;
        if !is_remembered {
            return;
        }
        let place = self.place_of(text);
        let (places, count) = match is_short {
            true => (&mut self.short, SHORT_PLACES),
            false => (&mut self.long, LONG_PLACES),
        };
        places.resize(count, String::new());
        places[place].clear();
        places[place].push_str(text);
    }

    /// What is known of a name, which `search` finds out if it is new.
    pub(super) fn name(
        &mut self,
        name: &str,
        search: impl FnOnce() -> SearchedName,
    ) -> SearchedName {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        let searched = search();
        if self.names.len() >= MAX_NAMES {
            self.names.clear();
        }
        self.names.insert(name.to_owned(), searched);
        searched
    }

    fn place_of(&self, text: &str) -> usize {
        if is_short(text) {
            return self.place_hasher.hash_one(text) as usize % SHORT_PLACES;
        }
        let bytes = text.as_bytes();
        let samples = [0, bytes.len() / 2, bytes.len() - SAMPLE_BYTES]
            .map(|start| &bytes[start..start + SAMPLE_BYTES]);
        self.place_hasher.hash_one((bytes.len(), samples)) as usize % LONG_PLACES
    }
}

fn is_short(text: &str) -> bool {
    text.len() <= MAX_SHORT_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_string_is_clean() {
        let mut strings = SearchedStrings::default();
        assert!(!strings.is_clean("main"));
        let all: Vec<_> = (0..SHORT_PLACES * 4).map(|number| format!("string {number}")).collect();
        for text in &all {
            strings.remember_clean(text);
            assert!(strings.is_clean(text));
        }
        let remembered = all.iter().filter(|text| strings.is_clean(text)).count();
        assert!((SHORT_PLACES / 2..=SHORT_PLACES).contains(&remembered), "{remembered}");
        assert!(!strings.is_clean("string 1 "));
        let long = "a ".repeat(MAX_SHORT_BYTES);
        strings.remember_clean(&long);
        assert!(!strings.is_clean(&long));
    }

    #[test]
    fn a_long_string_is_compared_as_a_whole() {
        let mut strings = SearchedStrings::with_long();
        let long = "a word ".repeat(MAX_SHORT_BYTES);
        assert!(!strings.is_clean(&long));
        strings.remember_clean(&long);
        assert!(strings.is_clean(&long));
        // Equal where the place is taken from.
        let mut other = long.clone();
        other.replace_range(100..101, "x");
        assert_eq!(strings.place_of(&other), strings.place_of(&long));
        assert!(!strings.is_clean(&other));
        strings.remember_clean(&other);
        assert!(strings.is_clean(&other) && !strings.is_clean(&long));
        let longest = "a".repeat(MAX_LONG_BYTES + 1);
        strings.remember_clean(&longest);
        assert!(!strings.is_clean(&longest));
    }

    #[test]
    fn a_name_is_searched_once() {
        let mut strings = SearchedStrings::default();
        let known = SearchedName { has_secret: false, may_name_secret: true };
        assert_eq!(strings.name("token", || known), known);
        assert_eq!(strings.name("token", || unreachable!("known")), known);
        for number in 0..MAX_NAMES {
            strings.name(&number.to_string(), || known);
        }
        assert!(strings.names.len() <= MAX_NAMES);
    }
}
