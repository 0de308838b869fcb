//! Maps ids to texts. Equal texts are stored once.

use steno_model::name_hash::{CompactNameMap, NameHasher};

/// Texts by id.
#[derive(Debug, Default)]
pub(crate) struct SharedTexts {
    texts: Vec<Box<str>>,
    /// Index of the text of an id.
    index_by_id: CompactNameMap<u32>,
    index_by_text: CompactNameMap<u32>,
    sums: NameHasher,
}

impl SharedTexts {
    /// Sets the text of an id.
    pub(crate) fn set(&mut self, id: &str, text: &str) {
        let next = self.texts.len() as u32;
        let number = self
            .index_by_text
            .get_mut_or_insert(self.sums.hash_short(text), next)
            .map_or(next, |known| *known);
        if number == next {
            self.texts.push(text.into());
        }
        if let Some(known) = self.index_by_id.get_mut_or_insert(self.sums.hash_short(id), number) {
            *known = number;
        }
    }

    /// The text of an id.
    pub(crate) fn get(&self, id: &str) -> Option<&str> {
        let number = self.index_by_id.get(self.sums.hash_short(id))?;
        self.texts.get(*number as usize).map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_text_of_an_id_counts() {
        let mut texts = SharedTexts::default();
        for (id, text) in [("a", "Read"), ("b", "Read"), ("c", ""), ("a", "Write"), ("d", "Read")] {
            texts.set(id, text);
        }
        let got = ["a", "b", "c", "d", "e"].map(|id| texts.get(id));
        assert_eq!(got, [Some("Write"), Some("Read"), Some(""), Some("Read"), None]);
        assert_eq!(texts.texts.len(), 3);
    }
}
