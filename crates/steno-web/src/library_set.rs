//! One library for all readers who see the same sessions, so that nothing is cached for one and shown to another.

use std::sync::{Arc, Mutex, PoisonError};

use steno_store::session_owners::{SessionOwners, TeamReader};

use crate::library::SessionLibrary;
use crate::options::ServerOptions;
use crate::team_page::PageReader;

/// How many libraries are cached besides that of the host.
const MAX_LIBRARIES: usize = 16;

/// The libraries of a server.
pub(crate) struct LibrarySet {
    options: ServerOptions,
    /// The library with all sessions that the server sees.
    host: Arc<SessionLibrary>,
    /// Those of readers, the last used one last.
    members: Mutex<Vec<(TeamReader, Arc<SessionLibrary>)>>,
}

impl LibrarySet {
    pub(crate) fn new(options: ServerOptions) -> Self {
        let host = Arc::new(SessionLibrary::new(&options, None));
        Self { options, host, members: Mutex::default() }
    }

    /// The library with all sessions.
    pub(crate) fn host_library(&self) -> Arc<SessionLibrary> {
        Arc::clone(&self.host)
    }

    /// The library with what a reader may see.
    pub(crate) fn library_of(&self, reader: &PageReader) -> Arc<SessionLibrary> {
        let reader = match (reader, &self.options.team) {
            (PageReader::Member(reader), Some(team)) => shared_reader(reader, &(team.owners)()),
            (PageReader::Member(reader), None) => reader.clone(),
            (PageReader::Host, _) => return self.host_library(),
        };
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let known = members.iter().position(|(known, _)| *known == reader);
        let library = match known {
            Some(at) => members.remove(at).1,
            None => Arc::new(SessionLibrary::new(&self.options, Some(reader.clone()))),
        };
        members.push((reader, Arc::clone(&library)));
        if members.len() > MAX_LIBRARIES {
            members.remove(0);
        }
        library
    }
}

/// A reader who sees the same: without a name, if all own sessions are for the others too.
fn shared_reader(reader: &TeamReader, owners: &SessionOwners) -> TeamReader {
    let unnamed = TeamReader { person: String::new(), is_teammate: reader.is_teammate };
    let sees_more =
        owners.iter().any(|(_, _, owner)| reader.may_see(owner) && !unnamed.may_see(owner));
    if sees_more { reader.clone() } else { unnamed }
}
