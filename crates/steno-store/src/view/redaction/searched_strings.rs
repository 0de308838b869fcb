//! Remembers short strings that were searched and have no secret. A session repeats ids, names of fields and paths in
//! each entry.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;

/// Longer strings are seldom repeated.
const MAX_STRING_BYTES: usize = 128;

/// How many strings are remembered: each replaces another one with the same place.
const PLACES: usize = 1024;

/// How many names of fields are remembered.
const MAX_NAMES: usize = 4096;

/// Strings without secrets, and what names of fields say about values.
#[derive(Clone, Debug, Default)]
pub(super) struct SearchedStrings {
    /// Empty until the first string is remembered.
    places: Vec<String>,
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
    /// Whether a string is known to have no secret.
    pub(super) fn is_clean(&self, text: &str) -> bool {
        text.is_empty()
            || text.len() <= MAX_STRING_BYTES
                && self.places.get(self.place_of(text)).is_some_and(|known| known == text)
    }

    /// Remembers a string without a secret, if it is short.
    pub(super) fn remember_clean(&mut self, text: &str) {
        if text.len() > MAX_STRING_BYTES {
            return;
        }
        if self.places.is_empty() {
            self.places.resize(PLACES, String::new());
        }
        let place = self.place_of(text);
        let place = &mut self.places[place];
        place.clear();
        place.push_str(text);
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
        self.place_hasher.hash_one(text) as usize % PLACES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_string_is_clean() {
        let mut strings = SearchedStrings::default();
        assert!(!strings.is_clean("main"));
        let all: Vec<_> = (0..PLACES * 4).map(|number| format!("string {number}")).collect();
        for text in &all {
            strings.remember_clean(text);
            assert!(strings.is_clean(text));
        }
        let remembered = all.iter().filter(|text| strings.is_clean(text)).count();
        assert!((PLACES / 2..=PLACES).contains(&remembered), "{remembered}");
        assert!(!strings.is_clean("string 1 "));
        let long = "a ".repeat(MAX_STRING_BYTES);
        strings.remember_clean(&long);
        assert!(!strings.is_clean(&long));
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
