//! Test hooks after each change on disk. Crash tests stop at every such step.

/// Reports a change on disk.
#[cfg(not(any(test, feature = "watched-steps")))]
pub fn done() {}

#[cfg(any(test, feature = "watched-steps"))]
pub use watched::{done, watch};

#[cfg(any(test, feature = "watched-steps"))]
mod watched {
    use std::cell::RefCell;

    type Watcher = Box<dyn FnMut()>;

    thread_local! {
        static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
    }

    /// Runs `work`, and calls `watcher` after each step on this thread.
    pub fn watch<T>(watcher: impl FnMut() + 'static, work: impl FnOnce() -> T) -> T {
        WATCHER.set(Some(Box::new(watcher)));
        let result = work();
        WATCHER.set(None);
        result
    }

    /// Reports a change on disk.
    pub fn done() {
        if let Some(mut watcher) = WATCHER.take() {
            watcher();
            WATCHER.set(Some(watcher));
        }
    }
}
