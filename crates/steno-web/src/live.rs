//! Tells a page what grows while agents work: server-sent events.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive, KeepAliveStream};
use futures_core::Stream;
use serde::Deserialize;
use tokio::sync::mpsc::{self, Receiver};

use crate::error::WebError;
use crate::heading;
use crate::library::{Edition, Library};
use crate::routes::App;

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
    All(Edition),
}

/// Events until the page is closed.
pub(crate) async fn events(
    State(app): State<App>,
    Query(watched): Query<Watched>,
) -> Sse<KeepAliveStream<Told>> {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        let mut last = None;
        while !sender.is_closed() {
            let asked = watched.clone();
            if let Ok(seen) = app.work(move |library| look(library, &asked)).await {
                let before = last.replace(seen.clone());
                if let Some(before) = before.filter(|before| *before != seen) {
                    let Ok(event) = tell(&app, &watched, (&before, &seen)).await else { break };
                    if sender.send(event).await.is_err() {
                        break;
                    }
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
    Sse::new(Told(receiver)).keep_alive(KeepAlive::default())
}

fn look(library: &Library, watched: &Watched) -> Result<Seen, WebError> {
    if let (Some(agent), Some(id)) = (&watched.agent, &watched.id) {
        let dir = library.dir(agent, id)?;
        return Ok(Seen::Session { size: dir.size()?, noted: dir.noted() });
    }
    library.ask(|_| Ok(()))?;
    Ok(Seen::All(library.edition()))
}

/// How many entries the session has now, that its notes are others, or that the list is.
async fn tell(
    app: &App,
    watched: &Watched,
    (before, now): (&Seen, &Seen),
) -> Result<Event, WebError> {
    let (Some(agent), Some(id)) = (watched.agent.clone(), watched.id.clone()) else {
        return Ok(Event::default().event("sessions").data("changed"));
    };
    if let (Seen::Session { size: before, .. }, Seen::Session { size: now, .. }) = (before, now)
        && before == now
    {
        return Ok(Event::default().event("notes").data("changed"));
    }
    let told = app.work(move |library| {
        let opened = library.open(&agent, &id)?;
        let runs = heading::runs(&opened.lanes).unwrap_or_default();
        Ok(format!("{} {runs}", opened.transcript.entries.len()))
    });
    Ok(Event::default().event("entries").data(told.await?.trim_end()))
}

/// The events of one page.
pub(crate) struct Told(Receiver<Event>);

impl Stream for Told {
    type Item = Result<Event, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|event| event.map(Ok))
    }
}
