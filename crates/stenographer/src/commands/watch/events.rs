//! Events that wake the loop: file changes and signals.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use notify::{Config, Event, RecommendedWatcher, Watcher};

use crate::error::CommandError;

/// A message to the loop.
pub(super) enum WatchMessage {
    Changed(notify::Result<Event>),
    Stop,
}

/// Starts a watcher that sends file changes. Changes in our own store and mere reads are filtered out.
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
            // The receiver is gone when the program ends.
            let _ = sender.send(WatchMessage::Changed(event));
        }
    };
    RecommendedWatcher::new(handler, Config::default().with_follow_symlinks(false)).ok()
}

/// Returns a flag that the first signal sets; the signal also sends a message.
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
