//! The selected item of a list and the scroll offset.

/// Selection in a list that may be longer than the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListSelection {
    /// Index of the selected item.
    pub(crate) selected: usize,
    /// Index of the first visible item.
    pub(crate) first_visible: usize,
}

impl ListSelection {
    /// Moves the selection; [`Self::clamp_to`] keeps it within the list.
    pub(crate) fn move_by(&mut self, by: isize) {
        self.selected = self.selected.saturating_add_signed(by);
    }

    /// Limits the selection to `count` items and scrolls it into a page of `page` items.
    pub(crate) fn clamp_to(&mut self, count: usize, page: usize) {
        self.selected = self.selected.min(count.saturating_sub(1));
        let page = page.max(1);
        self.first_visible =
            self.first_visible.clamp(self.selected.saturating_sub(page - 1), self.selected);
        self.first_visible = self.first_visible.min(count.saturating_sub(page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_item_stays_on_the_page() {
        let mut choice = ListSelection::default();
        choice.move_by(12);
        choice.clamp_to(20, 5);
        assert_eq!(choice, ListSelection { selected: 12, first_visible: 8 });
        choice.move_by(-3);
        choice.clamp_to(20, 5);
        assert_eq!(choice, ListSelection { selected: 9, first_visible: 8 });
        choice.move_by(isize::MAX);
        choice.clamp_to(20, 5);
        assert_eq!(choice, ListSelection { selected: 19, first_visible: 15 });
        choice.clamp_to(3, 5);
        assert_eq!(choice, ListSelection { selected: 2, first_visible: 0 });
        choice.clamp_to(0, 0);
        assert_eq!(choice, ListSelection::default());
    }
}
