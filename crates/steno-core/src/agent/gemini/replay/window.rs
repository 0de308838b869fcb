//! Brings records into another order without holding many of them.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::json::{Object, Style};

/// What is held of records whose turn has not come, in bytes of JSON.
const ROOM: usize = 16 << 20;

/// Records on their way into the order in which they are wanted.
///
/// If more would have to wait than there is room for, the last ones are let go: then all must pass again.
pub(super) struct Window {
    /// The numbers of the records that are wanted.
    wanted: Vec<NonZeroU32>,
    /// Places among those, in the order of the numbers, where that is another.
    sorted: Option<Vec<u32>>,
    /// How many were told, and how many when the last pass began.
    told: usize,
    before: usize,
    waiting: BTreeMap<usize, String>,
    size: usize,
    room: usize,
}

impl Window {
    pub(super) fn of(wanted: Vec<NonZeroU32>) -> Self {
        let sorted = (!wanted.is_sorted()).then(|| {
            let mut places: Vec<u32> = (0..).take(wanted.len()).collect();
            places.sort_unstable_by_key(|place| wanted[*place as usize]);
            places
        });
        let waiting = BTreeMap::new();
        Self { wanted, sorted, told: 0, before: 0, waiting, size: 0, room: ROOM }
    }

    /// Whether some were told since the last time that this was asked, and others are still to come.
    pub(super) fn has_moved(&mut self) -> bool {
        let has_moved = self.told > self.before && self.told < self.wanted.len();
        self.before = self.told;
        has_moved
    }

    /// Tells of a record if it is the next, and of those that wait for it.
    pub(super) fn pass(&mut self, number: u32, record: Object, tell: &mut dyn FnMut(Object)) {
        let Some(place) = NonZeroU32::new(number).and_then(|number| self.place(number)) else {
            return;
        };
        if place > self.told {
            return self.hold(place, &record);
        }
        if place == self.told {
            self.told += 1;
            tell(record);
        }
        while let Some(text) = self.waiting.remove(&self.told) {
            self.told += 1;
            self.size -= text.len();
            serde_json::from_str(&text).into_iter().for_each(&mut *tell);
        }
    }

    fn place(&self, number: NonZeroU32) -> Option<usize> {
        let Some(sorted) = &self.sorted else { return self.wanted.binary_search(&number).ok() };
        let found = sorted.binary_search_by_key(&number, |place| self.wanted[*place as usize]);
        found.ok().map(|found| sorted[found] as usize)
    }

    fn hold(&mut self, place: usize, record: &Object) {
        let text = Style::COMPACT.print(record);
        self.size += text.len();
        if let Some(same) = self.waiting.insert(place, text) {
            self.size -= same.len();
        }
        while self.size > self.room
            && let Some((_, last)) = self.waiting.pop_last()
        {
            self.size -= last.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Value;

    #[test]
    fn records_come_in_their_order_however_few_may_wait() {
        let wanted = [9, 2, 8, 1, 7, 3, 6, 5].map(|number| NonZeroU32::new(number).unwrap());
        for room in [0, 8, 9, 20, 1000] {
            let mut window = Window { room, ..Window::of(wanted.to_vec()) };
            let (mut told, mut passes) = (Vec::new(), 0);
            while passes == 0 || window.has_moved() {
                for number in 1..=10 {
                    let record = Object::from_iter([("n".to_owned(), Value::from(number))]);
                    window.pass(number, record, &mut |record| told.push(record["n"].clone()));
                }
                passes += 1;
                let held: usize = window.waiting.values().map(String::len).sum();
                assert!(window.size == held && held <= room);
            }
            assert_eq!(told, [9, 2, 8, 1, 7, 3, 6, 5], "{room}");
            assert_eq!(passes == 1, room == 1000, "{room}");
        }
    }

    #[test]
    fn what_does_not_come_is_not_waited_for() {
        let wanted = [1, 5, 3].map(|number| NonZeroU32::new(number).unwrap());
        let mut window = Window::of(wanted.to_vec());
        let mut told = 0;
        for number in 1..5 {
            window.pass(number, Object::new(), &mut |_| told += 1);
        }
        assert!(window.has_moved());
        assert!(!window.has_moved());
        assert_eq!(told, 1);
    }
}
