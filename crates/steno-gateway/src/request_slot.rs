//! Counts the requests that share a client, so that none of its connections gets more than servers allow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many requests share a connection of HTTP/2; most servers allow a hundred.
pub(crate) const MAX_SHARED_REQUESTS: usize = 64;

/// The pending requests of one client.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestCounter {
    count: Arc<AtomicUsize>,
}

impl RequestCounter {
    pub(crate) fn has_room(&self) -> bool {
        self.count.load(Ordering::Relaxed) < MAX_SHARED_REQUESTS
    }

    pub(crate) fn take_slot(&self) -> RequestSlot {
        self.count.fetch_add(1, Ordering::Relaxed);
        RequestSlot(self.clone())
    }
}

/// The slot of one request, which is free again once this is dropped.
#[derive(Debug)]
pub(crate) struct RequestSlot(RequestCounter);

impl Drop for RequestSlot {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}
