//! Server-sent events that notify open pages of new entries, notes and sessions. The server polls vault and index for
//! them while a page is open.

use std::hash::{DefaultHasher, Hasher};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use axum::extract::{Path, Query};
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive, KeepAliveStream};
use futures_core::Stream;
use serde::Deserialize;
use steno_model::Entry;
use steno_store::view::json_rows::EntryRow;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::addresses::SessionPath;
use crate::app::WebApp;
use crate::error::WebError;
use crate::heading;
use crate::library::{CHUNK_ENTRIES, OpenedSession, SessionLibrary};
use crate::session_listing::IndexEdition;

/// How often the state is read.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The session to watch; the list of sessions without one.
#[derive(Clone, Deserialize)]
pub(crate) struct WatchTarget {
    agent: Option<String>,
    id: Option<String>,
    /// The state that the page shows. A change since then is reported at once.
    since: Option<String>,
}

/// The watched state at one time.
#[derive(Clone, PartialEq)]
enum WatchedState {
    Session { size: u64, notes_size: u64 },
    Listing(String),
}

impl WatchedState {
    /// The id of events in this state. A browser that reconnects sends the last id.
    fn event_id(&self) -> String {
        match self {
            WatchedState::Session { size, notes_size } => format!("{size}-{notes_size}"),
            WatchedState::Listing(edition) => edition.clone(),
        }
    }

    /// Parses an event id.
    fn from_event_id(id: &str, watched: &WatchTarget) -> Option<Self> {
        if watched.id.is_none() {
            return Some(WatchedState::Listing(id.to_owned()));
        }
        let (size, notes_size) = id.split_once('-')?;
        Some(WatchedState::Session {
            size: size.parse().ok()?,
            notes_size: notes_size.parse().ok()?,
        })
    }
}

/// Sends events until the page is closed or the stream's lifetime has passed. Browsers then open a new stream.
pub(crate) async fn event_stream(
    app: WebApp,
    Query(watched): Query<WatchTarget>,
    headers: HeaderMap,
) -> Result<Sse<KeepAliveStream<EventStream>>, WebError> {
    let permit = app.take_event_stream()?;
    let (sender, receiver) = mpsc::channel(4);
    let last_id = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let last = last_id.or(watched.since.as_deref());
    let last = last.and_then(|id| WatchedState::from_event_id(id, &watched));
    let lifetime = app.event_stream_lifetime;
    tokio::spawn(tokio::time::timeout(lifetime, send_changes(app, watched, last, sender)));
    Ok(Sse::new(EventStream { receiver, _permit: permit }).keep_alive(KeepAlive::default()))
}

/// Reads the state in intervals and sends changes, until the page is closed.
async fn send_changes(
    app: WebApp,
    watched: WatchTarget,
    mut last: Option<WatchedState>,
    sender: Sender<Event>,
) {
    while !sender.is_closed() {
        let target = watched.clone();
        if let Ok(seen) = app.run_blocking(move |library| read_state(library, &target)).await {
            let event = match last.replace(seen.clone()) {
                Some(before) if before == seen => None,
                Some(before) => match change_event(&app, &watched, &before, &seen).await {
                    Ok(event) => Some(event),
                    Err(_) => break,
                },
                // An event without data only sets the id.
                None => Some(Event::default()),
            };
            if let Some(event) = event
                && sender.send(event.id(seen.event_id())).await.is_err()
            {
                break;
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn read_state(library: &SessionLibrary, watched: &WatchTarget) -> Result<WatchedState, WebError> {
    library.refresh_team();
    if let (Some(agent), Some(id)) = (&watched.agent, &watched.id) {
        let dir = library.session_dir(agent, id)?;
        return Ok(WatchedState::Session {
            size: dir.stored_size()?,
            notes_size: dir.notes_size(),
        });
    }
    library.query_index(|_| Ok(()))?;
    Ok(WatchedState::Listing(edition_id(&library.index_edition())))
}

/// The state of the index as an event id.
pub(crate) fn edition_id(edition: &IndexEdition) -> String {
    let file_id = |file: &Option<(u64, SystemTime)>| {
        let (size, modified) = file.unwrap_or((0, SystemTime::UNIX_EPOCH));
        let nanoseconds = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        format!("{size}.{}", nanoseconds.as_nanos())
    };
    let files: Vec<_> = edition.files.iter().map(file_id).collect();
    format!("{}-{}-{}", files.join("-"), edition.indexed_sessions, edition.status_changes)
}

/// The event for a change: new entries with their number, other notes, or another list.
async fn change_event(
    app: &WebApp,
    watched: &WatchTarget,
    before: &WatchedState,
    now: &WatchedState,
) -> Result<Event, WebError> {
    let (Some(agent), Some(id)) = (watched.agent.clone(), watched.id.clone()) else {
        return Ok(Event::default().event("sessions").data("changed"));
    };
    if let (WatchedState::Session { size: before, .. }, WatchedState::Session { size: now, .. }) =
        (before, now)
        && before == now
    {
        return Ok(Event::default().event("notes").data("changed"));
    }
    let data = app.run_blocking(move |library| entries_state(library, &agent, &id));
    Ok(Event::default().event("entries").data(data.await?))
}

/// What a page needs to add new entries and to replace changed ones: the number of entries, a version of each chunk, the
/// order of the entries, and the runs of subagents.
fn entries_state(library: &SessionLibrary, agent: &str, id: &str) -> Result<String, WebError> {
    let opened = library.open_session(agent, id)?;
    let count = opened.transcript.entries.len();
    let versions = chunk_versions(&opened).join(",");
    let order = heading::lane_runs(&opened.lanes).unwrap_or_default();
    let subagents = opened.outline.runs_text().unwrap_or_default();
    Ok(format!("{count} {versions} {order}|{subagents}"))
}

/// A hash of the entries of each chunk. Entries change where an agent rewrites its file or a row, and where some are
/// forgotten.
fn chunk_versions(opened: &OpenedSession) -> Vec<String> {
    let entries: Vec<&Entry> = opened.entries_in_order().map(|(_, entry)| entry).collect();
    let mut json = Vec::new();
    let mut hash_chunk = |chunk: &[&Entry]| {
        let mut hasher = DefaultHasher::new();
        for entry in chunk {
            json.clear();
            // Writing to memory does not fail.
            let _ = serde_json::to_writer(&mut json, &EntryRow::from_entry(entry, &[]));
            hasher.write(&json);
        }
        format!("{:x}", hasher.finish())
    };
    entries.chunks(CHUNK_ENTRIES).map(&mut hash_chunk).collect()
}

/// The data of an `entries` event, for a page whose connection was lost.
pub(crate) async fn session_state(
    app: WebApp,
    Path((agent, id)): SessionPath,
) -> Result<String, WebError> {
    app.run_blocking(move |library| entries_state(library, &agent, &id)).await
}

/// The events of one page.
pub(crate) struct EventStream {
    receiver: Receiver<Event>,
    /// The permit of this stream.
    _permit: OwnedSemaphorePermit,
}

impl Stream for EventStream {
    type Item = Result<Event, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(context).map(|event| event.map(Ok))
    }
}
