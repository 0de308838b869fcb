//! Finds where a session left the one that it was forked from.

use steno_model::{Entry, Session};

use crate::addresses::session_address;
use crate::heading::session_title;
use crate::library::{OpenedSession, SessionLibrary};
use crate::render::ForkPoint;

/// Where a session left its parent; `None` without a parent in the store. The first position is 0 if the sessions have
/// no entries in common, as when an agent starts another one.
pub(crate) fn find_fork(library: &SessionLibrary, opened: &OpenedSession) -> Option<ForkPoint> {
    let session = &opened.transcript.session;
    let named = session.parent.as_deref()?;
    let listing = library.session_listing().ok()?;
    let is_parent = |other: &&Session| {
        other.id != session.id
            && (other.native_id.as_deref() == Some(named) || other.id.as_str() == named)
    };
    // A session may continue one of another agent, but agents may also give their sessions equal ids.
    let parents = || listing.sessions.iter().map(|one| &one.session).filter(is_parent);
    let parent =
        parents().find(|other| other.agent == session.agent).or_else(|| parents().next())?;
    let other = library.open_session(&parent.agent, parent.id.as_str()).ok()?;
    Some(ForkPoint {
        place: count_common(&other.transcript.entries, &opened.transcript.entries),
        address: session_address(&parent.agent, &parent.id),
        title: session_title(parent),
    })
}

/// How many entries two sessions begin with in common.
fn count_common(a: &[Entry], b: &[Entry]) -> usize {
    let is_same = |(a, b): &(&Entry, &Entry)| {
        (a.role == b.role && a.kind == b.kind)
            && (a.content == b.content && a.tool_input == b.tool_input)
    };
    a.iter().zip(b).take_while(is_same).count()
}

#[cfg(test)]
mod tests {
    use steno_model::{EntryKind, Role};

    use super::*;

    #[test]
    fn a_fork_begins_after_the_common_entries() {
        let entry = |text: &str| Entry::new(Role::User, EntryKind::Text, text);
        let a = [entry("one"), entry("two"), entry("three")];
        let b = [entry("one"), entry("two"), entry("other"), entry("three")];
        assert_eq!(count_common(&a, &b), 2);
        assert_eq!(count_common(&a, &[]), 0);
    }
}
