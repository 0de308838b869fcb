//! Makes message ids unique: publishers blank ids out, and some agents use an id twice.

use crate::sums::SumSet;

/// The message ids of one session so far.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    met: SumSet,
    repeated: u64,
}

impl Ids {
    /// The id itself, or with a number appended if another message already has it.
    pub(crate) fn own(&mut self, id: &str) -> String {
        if self.met.insert(id) {
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
        let mut ids = Ids::default();
        assert_eq!(
            ["a", "b", "a", "a", "b"].map(|id| ids.own(id)),
            ["a", "b", "a:2", "a:3", "b:4"]
        );
    }
}
