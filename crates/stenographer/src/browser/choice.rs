//! Which item of a list is chosen, and which is the first that is shown.

/// A place in a list that may be longer than the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The chosen item.
    pub(crate) at: usize,
    /// The first one that is shown.
    pub(crate) top: usize,
}

impl Choice {
    /// Moves by some items, not beyond the ends.
    pub(crate) fn step(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by);
    }

    /// Keeps the chosen item among `count`, and on a page of `page` items.
    pub(crate) fn settle(&mut self, count: usize, page: usize) {
        self.at = self.at.min(count.saturating_sub(1));
        let page = page.max(1);
        self.top = self.top.clamp(self.at.saturating_sub(page - 1), self.at);
        self.top = self.top.min(count.saturating_sub(page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_item_stays_on_the_page() {
        let mut choice = Choice::default();
        choice.step(12);
        choice.settle(20, 5);
        assert_eq!(choice, Choice { at: 12, top: 8 });
        choice.step(-3);
        choice.settle(20, 5);
        assert_eq!(choice, Choice { at: 9, top: 8 });
        choice.step(isize::MAX);
        choice.settle(20, 5);
        assert_eq!(choice, Choice { at: 19, top: 15 });
        choice.settle(3, 5);
        assert_eq!(choice, Choice { at: 2, top: 0 });
        choice.settle(0, 0);
        assert_eq!(choice, Choice::default());
    }
}
