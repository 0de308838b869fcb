//! Who belongs to the team of a remote. Only a database knows.

use crate::postgres_remote::PostgresRemote;
use crate::remote::TeamRemote;
use crate::team_error::TeamError;

impl TeamRemote {
    /// The members of this user's team; `None` if the remote does not know, because whoever can read it is a member.
    pub fn list_members(&mut self) -> Result<Option<Vec<String>>, TeamError> {
        match self {
            Self::Postgres(database) => list_members(database).map(Some),
            _ => Ok(None),
        }
    }
}

fn list_members(database: &mut PostgresRemote) -> Result<Vec<String>, TeamError> {
    let sql = "SELECT role::text FROM steno.member WHERE team = (SELECT steno.own_team())";
    let rows = database.run("read the members", |client| client.query(sql, &[]))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
