//! Where tests look on: called after each change on disk that a crash could follow.

/// Says that something was changed on disk.
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

    /// Has `watcher` called after each step that `work` takes on this thread.
    pub fn watch<T>(watcher: impl FnMut() + 'static, work: impl FnOnce() -> T) -> T {
        WATCHER.set(Some(Box::new(watcher)));
        let result = work();
        WATCHER.set(None);
        result
    }

    /// Says that something was changed on disk.
    pub fn done() {
        if let Some(mut watcher) = WATCHER.take() {
            watcher();
            WATCHER.set(Some(watcher));
        }
    }
}
