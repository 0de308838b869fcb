//! Unique ids that sort by time. The caller passes in the time, because the library reads no clock.

use std::sync::Mutex;

use uuid::{ContextV7, Uuid};

use crate::timestamp::Timestamp;

/// Orders the ids that this process makes within one millisecond.
static ID_ORDER: Mutex<ContextV7> = Mutex::new(ContextV7::new());

/// A new id (UUID version 7) for something that happened at `at`. Later ids sort after earlier ones.
pub fn new_unique_id(at: Timestamp) -> Uuid {
    let instant = at.instant();
    let seconds = u64::try_from(instant.as_second()).unwrap_or_default();
    let nanoseconds = u32::try_from(instant.subsec_nanosecond()).unwrap_or_default();
    Uuid::new_v7(uuid::Timestamp::from_unix(&ID_ORDER, seconds, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_moment_sort_in_the_order_of_creation() {
        let at = "2026-01-05T09:00:00.123Z".parse().unwrap();
        let ids: Vec<Uuid> = (0..1000).map(|_| new_unique_id(at)).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        let (seconds, nanoseconds) = ids[0].get_timestamp().unwrap().to_unix();
        assert_eq!((seconds, nanoseconds), (1_767_603_600, 123_000_000));
    }
}
