//! Who belongs to the team of a remote. Only a database knows.

use crate::remote::TeamRemote;
use crate::team_error::TeamError;

impl TeamRemote {
    /// The members of this user's team; `None` if the remote does not know, because whoever can read it is a member.
    pub fn list_members(&mut self) -> Result<Option<Vec<String>>, TeamError> {
        match self {
            Self::Postgres(database) => database.list_members().map(Some),
            _ => Ok(None),
        }
    }
}
