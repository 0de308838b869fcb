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
    /// The place, from 1; `None` for a session without entries, which the list does not count.
    place: Option<usize>,
    /// How many sessions with entries the list has.
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

/// Finds a session in a list. Sessions without entries are left out, as in the count above the list.
fn find_neighbours(sessions: &[&ListedSession], agent: &str, id: &str) -> Option<ListNeighbours> {
    let has_entries = |one: &&ListedSession| one.session.totals.entries > 0;
    let is_same = |one: &ListedSession| one.session.agent == agent && one.session.id.as_str() == id;
    let at = sessions.iter().position(|one| is_same(one))?;
    let link = |one: &&ListedSession| NeighbourLink {
        address: session_address(&one.session.agent, &one.session.id),
        title: heading::session_title(&one.session),
    };
    let (before, rest) = sessions.split_at(at);
    let read_before = before.iter().filter(|one| has_entries(one)).count();
    Some(ListNeighbours {
        place: has_entries(&sessions[at]).then_some(read_before + 1),
        sessions: sessions.iter().filter(|one| has_entries(one)).count(),
        previous: before.iter().rev().find(|one| has_entries(one)).map(link),
        next: rest[1..].iter().find(|one| has_entries(one)).map(link),
    })
}

#[cfg(test)]
mod tests {
    use steno_model::{Session, SessionId};

    use super::*;

    fn listed(id: &str, entries: u64) -> ListedSession {
        let id = id.parse::<SessionId>().expect("the id is valid");
        let mut session = Session::new(id, "codex");
        session.totals.entries = entries;
        ListedSession { session, problem: None }
    }

    #[test]
    fn sessions_without_entries_are_not_counted() {
        let all = [listed("a", 3), listed("b", 0), listed("c", 0), listed("d", 5), listed("e", 0)];
        let all: Vec<&ListedSession> = all.iter().collect();
        let found = |id: &str| {
            let found = find_neighbours(&all, "codex", id).expect("the session is in the list");
            let id_of = |link: Option<NeighbourLink>| {
                link.and_then(|link| link.address.rsplit('/').next().map(str::to_owned))
            };
            (found.place, found.sessions, id_of(found.previous), id_of(found.next))
        };
        let (a, d) = (Some("a".to_owned()), Some("d".to_owned()));
        assert_eq!(found("a"), (Some(1), 2, None, d.clone()));
        assert_eq!(found("d"), (Some(2), 2, a.clone(), None));
        assert_eq!(found("b"), (None, 2, a, d.clone()));
        assert_eq!(found("e"), (None, 2, d, None));
        assert_eq!(find_neighbours(&all, "pi", "a"), None);
    }
}
