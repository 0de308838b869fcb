//! What wakes the loop: changes that the system tells of, and signals.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use notify::{Config, Event, RecommendedWatcher, Watcher};

use crate::error::CommandError;

/// What the loop waits for.
pub(super) enum WatchMessage {
    Changed(notify::Result<Event>),
    Stop,
}

/// Sends the changes of all that it watches, except those in our own store and those that are only looks.
pub(super) fn start_watcher(
    sender: Sender<WatchMessage>,
    store: PathBuf,
) -> Option<RecommendedWatcher> {
    let is_news = move |event: &Event| {
        let is_ours = |path: &PathBuf| {
            // Every reader of a database touches its shared memory.
            path.starts_with(&store) || path.to_string_lossy().ends_with("-shm")
        };
        let is_all_ours = !event.paths.is_empty() && event.paths.iter().all(is_ours);
        event.need_rescan() || (!event.kind.is_access() && !is_all_ours)
    };
    let handler = move |event: notify::Result<Event>| {
        if event.as_ref().map_or(true, &is_news) {
            // Nobody listens any more when the program ends.
            let _ = sender.send(WatchMessage::Changed(event));
        }
    };
    RecommendedWatcher::new(handler, Config::default().with_follow_symlinks(false)).ok()
}

/// A flag that the first signal sets, with a message.
pub(super) fn stop_on_signal(
    sender: Sender<WatchMessage>,
) -> Result<Arc<AtomicBool>, CommandError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let handler = move || {
        flag.store(true, Ordering::Relaxed);
        let _ = sender.send(WatchMessage::Stop);
    };
    ctrlc::set_handler(handler).map_err(CommandError::user)?;
    Ok(stop)
}
