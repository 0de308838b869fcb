//! Where tests look on: called after each change on disk that a crash could follow.

#[cfg(not(test))]
pub(crate) fn done() {}

#[cfg(test)]
pub(crate) use watched::{done, watch};

#[cfg(test)]
mod watched {
    use std::cell::RefCell;

    type Watcher = Box<dyn FnMut()>;

    thread_local! {
        static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
    }

    /// Has `watcher` called after each step that `work` takes on this thread.
    pub(crate) fn watch<T>(watcher: impl FnMut() + 'static, work: impl FnOnce() -> T) -> T {
        WATCHER.set(Some(Box::new(watcher)));
        let result = work();
        WATCHER.set(None);
        result
    }

    pub(crate) fn done() {
        if let Some(mut watcher) = WATCHER.take() {
            watcher();
            WATCHER.set(Some(watcher));
        }
    }
}
