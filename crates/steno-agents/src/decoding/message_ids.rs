//! Makes message ids unique: publishers blank ids out, and some agents use an id twice.

use steno_model::name_hash::CompactNameSet;

/// The message ids of one session so far.
#[derive(Debug, Default)]
pub(crate) struct UniqueMessageIds {
    seen_ids: CompactNameSet,
    repeated: u64,
}

impl UniqueMessageIds {
    /// The id itself, or with a number appended if another message already has it.
    pub(crate) fn make_unique(&mut self, id: &str) -> String {
        if self.seen_ids.insert(id) {
            return id.to_owned();
        }
        self.repeated += 1;
        format!("{id}:{}", self.repeated + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_is_given_out_twice() {
        let mut ids = UniqueMessageIds::default();
        assert_eq!(
            ["a", "b", "a", "a", "b"].map(|id| ids.make_unique(id)),
            ["a", "b", "a:2", "a:3", "b:4"]
        );
    }
}
