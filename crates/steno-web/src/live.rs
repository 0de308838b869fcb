//! Tells a page what grows while agents work: server-sent events.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive, KeepAliveStream};
use futures_core::Stream;
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::app::WebApp;
use crate::error::WebError;
use crate::heading;
use crate::library::{Edition, Library};

/// How often it is looked.
const PAUSE: Duration = Duration::from_millis(500);

/// Which session is watched; without one, the list of all.
#[derive(Clone, Deserialize)]
pub(crate) struct Watched {
    agent: Option<String>,
    id: Option<String>,
}

/// What was seen last.
#[derive(Clone, PartialEq)]
enum Seen {
    Session { size: u64, noted: u64 },
    All(String),
}

impl Seen {
    /// The id of an event that was sent in this state: a browser that reconnects brings the last one back.
    fn event_id(&self) -> String {
        match self {
            Seen::Session { size, noted } => format!("{size}-{noted}"),
            Seen::All(edition) => edition.clone(),
        }
    }

    /// The state that an event id stands for.
    fn from_event_id(id: &str, watched: &Watched) -> Option<Self> {
        if watched.id.is_none() {
            return Some(Seen::All(id.to_owned()));
        }
        let (size, noted) = id.split_once('-')?;
        Some(Seen::Session { size: size.parse().ok()?, noted: noted.parse().ok()? })
    }
}

/// Events until the page is closed, or the stream has lived long enough: browsers then open a new one.
pub(crate) async fn events(
    State(app): State<WebApp>,
    Query(watched): Query<Watched>,
    headers: HeaderMap,
) -> Result<Sse<KeepAliveStream<EventStream>>, WebError> {
    let permit = app.take_event_stream()?;
    let (sender, receiver) = mpsc::channel(4);
    let last_id = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let last = last_id.and_then(|id| Seen::from_event_id(id, &watched));
    let lifetime = app.event_stream_lifetime;
    tokio::spawn(tokio::time::timeout(lifetime, send_changes(app, watched, last, sender)));
    Ok(Sse::new(EventStream { receiver, _permit: permit }).keep_alive(KeepAlive::default()))
}

/// Looks again and again and sends what has changed, until nobody listens any more.
async fn send_changes(
    app: WebApp,
    watched: Watched,
    mut last: Option<Seen>,
    sender: Sender<Event>,
) {
    while !sender.is_closed() {
        let asked = watched.clone();
        if let Ok(seen) = app.run_blocking(move |library| look(library, &asked)).await {
            let event = match last.replace(seen.clone()) {
                Some(before) if before == seen => None,
                Some(before) => match tell(&app, &watched, &before, &seen).await {
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
        tokio::time::sleep(PAUSE).await;
    }
}

fn look(library: &Library, watched: &Watched) -> Result<Seen, WebError> {
    if let (Some(agent), Some(id)) = (&watched.agent, &watched.id) {
        let dir = library.dir(agent, id)?;
        return Ok(Seen::Session { size: dir.size()?, noted: dir.noted() });
    }
    library.ask(|_| Ok(()))?;
    Ok(Seen::All(edition_id(&library.edition())))
}

/// The sizes and times of the index's files as one word.
fn edition_id(edition: &Edition) -> String {
    let file_id = |file: &Option<(u64, SystemTime)>| {
        let (size, modified) = file.unwrap_or((0, SystemTime::UNIX_EPOCH));
        let nanoseconds = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        format!("{size}.{}", nanoseconds.as_nanos())
    };
    let files: Vec<_> = edition.files.iter().map(file_id).collect();
    format!("{}-{}", files.join("-"), edition.taken)
}

/// How many entries the session has now, that its notes are others, or that the list is.
async fn tell(
    app: &WebApp,
    watched: &Watched,
    before: &Seen,
    now: &Seen,
) -> Result<Event, WebError> {
    let (Some(agent), Some(id)) = (watched.agent.clone(), watched.id.clone()) else {
        return Ok(Event::default().event("sessions").data("changed"));
    };
    if let (Seen::Session { size: before, .. }, Seen::Session { size: now, .. }) = (before, now)
        && before == now
    {
        return Ok(Event::default().event("notes").data("changed"));
    }
    let told = app.run_blocking(move |library| {
        let opened = library.open(&agent, &id)?;
        let runs = heading::runs(&opened.lanes).unwrap_or_default();
        Ok(format!("{} {runs}", opened.transcript.entries.len()))
    });
    Ok(Event::default().event("entries").data(told.await?.trim_end()))
}

/// The events of one page.
pub(crate) struct EventStream {
    receiver: Receiver<Event>,
    /// Its place among the streams that may be open.
    _permit: OwnedSemaphorePermit,
}

impl Stream for EventStream {
    type Item = Result<Event, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.receiver.poll_recv(context).map(|event| event.map(Ok))
    }
}
