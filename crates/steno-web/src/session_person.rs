//! Whose a session is, on the page of a team.

use steno_model::Session;

/// Where a session has its owner, among what no field holds.
const PERSON_KEY: &str = "person";

/// The owner of a session on the page of a team.
pub(crate) fn session_person(session: &Session) -> Option<&str> {
    session.extra.get(PERSON_KEY)?.as_str()
}

/// Notes the owner of a session, or that nobody is known.
pub(crate) fn set_session_person(session: &mut Session, person: Option<&str>) {
    session.extra.insert(PERSON_KEY.to_owned(), person.into());
}
