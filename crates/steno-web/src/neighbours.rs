//! The sessions before and after a session in the list, as it was filtered.

use axum::Json;
use axum::extract::{Path, Query};
use serde::Serialize;
use steno_store::index::ListedSession;

use crate::addresses::{SessionPath, session_address};
use crate::app::WebApp;
use crate::error::WebError;
use crate::heading;
use crate::list_filter::ListFilter;
use crate::viewer::PageViewer;

/// The place of a session in the list, and the sessions beside it.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct ListNeighbours {
    /// The place, from 1.
    place: usize,
    /// How many sessions the list has.
    sessions: usize,
    previous: Option<NeighbourLink>,
    next: Option<NeighbourLink>,
}

/// A session beside another one.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct NeighbourLink {
    address: String,
    title: String,
}

/// The neighbours of a session in the list with these filters, or in the whole list if the filters leave it out.
pub(crate) async fn list_neighbours(
    app: WebApp,
    viewer: PageViewer,
    Path((agent, id)): SessionPath,
    Query(query): Query<ListFilter>,
) -> Result<Json<Option<ListNeighbours>>, WebError> {
    app.run_blocking(move |library| {
        let listing = library.session_listing()?;
        let now = viewer.local_now(&library.clock);
        let all = ListFilter::default();
        let find = |filter: &ListFilter| -> Result<Option<ListNeighbours>, WebError> {
            let matcher = filter.to_matcher(&now)?.with_failures(&listing.failures);
            let sessions = matcher.sorted_sessions(&listing, filter.order());
            Ok(find_neighbours(&sessions, &agent, &id))
        };
        let filtered = find(&query).unwrap_or(None);
        Ok(Json(filtered.map_or_else(|| find(&all), |found| Ok(Some(found)))?))
    })
    .await
}

fn find_neighbours(sessions: &[&ListedSession], agent: &str, id: &str) -> Option<ListNeighbours> {
    let is_same = |at: &usize| {
        let session = &sessions[*at].session;
        session.agent == agent && session.id.as_str() == id
    };
    let at = (0..sessions.len()).find(is_same)?;
    let link = |at: usize| {
        let session = &sessions.get(at)?.session;
        Some(NeighbourLink {
            address: session_address(&session.agent, &session.id),
            title: heading::session_title(session),
        })
    };
    let previous = at.checked_sub(1).and_then(link);
    Some(ListNeighbours { place: at + 1, sessions: sessions.len(), previous, next: link(at + 1) })
}
