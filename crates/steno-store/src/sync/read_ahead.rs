//! Parses each session while the one before it is written to the vault.

use std::sync::mpsc;
use std::thread;

use crate::format::FoundSession;
use crate::keep::session_reading::ParsedFiles;

/// Parsed sessions that wait for their import. More would only take memory.
const WAITING_SESSIONS: usize = 1;

/// Calls `import` with each session, in order. A session that `should_read` selects is parsed before, in another thread.
pub(super) fn import_with_read_ahead(
    sessions: Vec<FoundSession>,
    is_indexing: bool,
    should_read: impl Fn(&FoundSession) -> bool + Send,
    mut import: impl FnMut(&FoundSession, Option<ParsedFiles>),
) {
    let (sender, upcoming) = mpsc::sync_channel(WAITING_SESSIONS);
    thread::scope(|scope| {
        scope.spawn(move || {
            // Consumed one by one, as there may be very many.
            for found in sessions {
                let wanted = Some(&found).filter(|found| should_read(found));
                let parsed = wanted.and_then(|found| ParsedFiles::read_ahead(found, is_indexing));
                if sender.send((found, parsed)).is_err() {
                    return;
                }
            }
        });
        upcoming.into_iter().for_each(|(found, parsed)| import(&found, parsed));
    });
}
