//! Reorders records within a bounded buffer.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use steno_model::json::{JsonStyle, Object};

/// The buffer's capacity, in bytes of JSON.
const MAX_HELD_BYTES: usize = 16 << 20;

/// Passes records on in a given order.
///
/// Records that come before their turn are buffered. If the buffer is full, the last ones are dropped, and all records
/// must be pushed again.
pub(super) struct ReorderWindow {
    /// The numbers of the records, in the order to pass them on.
    order: Vec<NonZeroU32>,
    /// Positions in `order`, sorted by record number. None if `order` is sorted itself.
    sorted: Option<Vec<u32>>,
    /// How many records were passed on.
    done: usize,
    /// How many were passed on at the last call of `has_moved`.
    done_before: usize,
    /// Buffered records as JSON, by position in `order`.
    buffer: BTreeMap<usize, String>,
    /// Bytes in the buffer.
    size: usize,
    capacity: usize,
}

impl ReorderWindow {
    pub(super) fn new(order: Vec<NonZeroU32>) -> Self {
        let sorted = (!order.is_sorted()).then(|| {
            let mut positions: Vec<u32> = (0..).take(order.len()).collect();
            positions.sort_unstable_by_key(|position| order[*position as usize]);
            positions
        });
        let buffer = BTreeMap::new();
        Self { order, sorted, done: 0, done_before: 0, buffer, size: 0, capacity: MAX_HELD_BYTES }
    }

    /// Whether records were passed on since the last call, and others remain.
    pub(super) fn has_moved(&mut self) -> bool {
        let has_moved = self.done > self.done_before && self.done < self.order.len();
        self.done_before = self.done;
        has_moved
    }

    /// Passes a record on to `emit` if it is the next, and then the buffered records that follow it.
    pub(super) fn push_record(
        &mut self,
        number: u32,
        record: Object,
        emit: &mut dyn FnMut(Object),
    ) {
        let Some(position) = NonZeroU32::new(number).and_then(|number| self.position_of(number))
        else {
            return;
        };
        if position > self.done {
            return self.hold_record(position, &record);
        }
        if position == self.done {
            self.done += 1;
            emit(record);
        }
        while let Some(text) = self.buffer.remove(&self.done) {
            self.done += 1;
            self.size -= text.len();
            serde_json::from_str(&text).into_iter().for_each(&mut *emit);
        }
    }

    fn position_of(&self, number: NonZeroU32) -> Option<usize> {
        let Some(sorted) = &self.sorted else { return self.order.binary_search(&number).ok() };
        let index = sorted.binary_search_by_key(&number, |position| self.order[*position as usize]);
        index.ok().map(|index| sorted[index] as usize)
    }

    fn hold_record(&mut self, position: usize, record: &Object) {
        let text = JsonStyle::COMPACT.print(record);
        self.size += text.len();
        if let Some(same) = self.buffer.insert(position, text) {
            self.size -= same.len();
        }
        while self.size > self.capacity
            && let Some((_, last)) = self.buffer.pop_last()
        {
            self.size -= last.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_model::json::Value;

    #[test]
    fn records_come_in_their_order_however_few_may_wait() {
        let order = [9, 2, 8, 1, 7, 3, 6, 5].map(|number| NonZeroU32::new(number).unwrap());
        for capacity in [0, 8, 9, 20, 1000] {
            let mut window = ReorderWindow { capacity, ..ReorderWindow::new(order.to_vec()) };
            let (mut emitted, mut passes) = (Vec::new(), 0);
            while passes == 0 || window.has_moved() {
                for number in 1..=10 {
                    let record = Object::from_iter([("n".to_owned(), Value::from(number))]);
                    window.push_record(number, record, &mut |record| {
                        emitted.push(record["n"].clone())
                    });
                }
                passes += 1;
                let held: usize = window.buffer.values().map(String::len).sum();
                assert!(window.size == held && held <= capacity);
            }
            assert_eq!(emitted, [9, 2, 8, 1, 7, 3, 6, 5], "{capacity}");
            assert_eq!(passes == 1, capacity == 1000, "{capacity}");
        }
    }

    #[test]
    fn does_not_wait_for_missing_messages() {
        let order = [1, 5, 3].map(|number| NonZeroU32::new(number).unwrap());
        let mut window = ReorderWindow::new(order.to_vec());
        let mut emitted = 0;
        for number in 1..5 {
            window.push_record(number, Object::new(), &mut |_| emitted += 1);
        }
        assert!(window.has_moved());
        assert!(!window.has_moved());
        assert_eq!(emitted, 1);
    }
}
