//! Creates and migrates the schema, and adds partitions for the entries of months.
//!
//! The steps are append-only: a database of version n has had the first n of them.

use postgres::error::SqlState;
use steno_model::Timestamp;

use super::PostgresRemote;
use crate::team_error::TeamError;

/// The SQL that makes each version of the one before. Version 0 is a database without a schema.
const MIGRATIONS: [&str; 4] = [
    include_str!("schema.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
];

/// The version of the schema that this program needs.
const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// Years before and after the present one with a partition per month. Each partition makes every search slower by a tenth of
/// a millisecond, so there are only a few; entries of other times are in one of their own.
const YEARS_AROUND: i16 = 1;

const SET_VERSION: &str = "INSERT INTO steno.meta VALUES ('version', $1)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";

impl PostgresRemote {
    /// The version of the schema; `None` without one.
    fn schema_version(&mut self) -> Result<Option<i64>, TeamError> {
        let mut is_refused = false;
        let version = self.run("read the version of the schema", |client| {
            let found = client.query_one("SELECT to_regclass('steno.meta') IS NOT NULL", &[]);
            let found = found.inspect_err(|error| {
                is_refused = error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE);
            })?;
            if !found.get::<_, bool>(0) {
                return Ok(None);
            }
            let row =
                client.query_opt("SELECT value FROM steno.meta WHERE name = 'version'", &[])?;
            Ok(row.map(|row| row.get(0)))
        });
        if is_refused { Err(self.not_member()) } else { version }
    }

    pub(crate) fn check_version(&mut self) -> Result<(), TeamError> {
        let remote = self.url.clone();
        match self.schema_version()? {
            None => Err(TeamError::NotInitialised(remote)),
            Some(found) if found > SCHEMA_VERSION => {
                Err(TeamError::NewerSchema { remote, found, known: SCHEMA_VERSION })
            }
            Some(found) if found < SCHEMA_VERSION => {
                Err(TeamError::OlderSchema { remote, found, needed: SCHEMA_VERSION })
            }
            Some(_) => self.check_membership(true),
        }
    }

    /// Checks that this role belongs to a team, or is the owner of the schema if `owner_may` be without one. To others, row
    /// level security shows nothing.
    pub(super) fn check_membership(&mut self, owner_may: bool) -> Result<(), TeamError> {
        let sql = "SELECT steno.own_team() IS NOT NULL OR ($1 AND pg_has_role(session_user, nspowner, 'MEMBER'))
            FROM pg_namespace WHERE nspname = 'steno'";
        let row = self.run("look for your team", |client| client.query_one(sql, &[&owner_may]))?;
        if row.get(0) { Ok(()) } else { Err(self.not_member()) }
    }

    fn not_member(&self) -> TeamError {
        TeamError::NotMember { role: self.owner.clone(), remote: self.url.clone() }
    }

    /// Creates or migrates the schema, and adds the partitions that are missing. Returns whether the version changed.
    pub(crate) fn initialise(&mut self) -> Result<bool, TeamError> {
        let version = self.schema_version()?.unwrap_or(0);
        let done = usize::try_from(version).ok().filter(|done| *done <= MIGRATIONS.len());
        let Some(done) = done else { return self.check_version().map(|()| false) };
        let partitions = partition_commands(self.now);
        self.run("create or migrate the schema", |client| {
            let mut transaction = client.client.transaction()?;
            for migration in &MIGRATIONS[done..] {
                transaction.batch_execute(migration)?;
            }
            transaction.execute(SET_VERSION, &[&SCHEMA_VERSION])?;
            transaction.batch_execute(&partitions)?;
            transaction.commit()
        })?;
        Ok(done < MIGRATIONS.len())
    }
}

/// The SQL that adds the partitions around a moment.
fn partition_commands(now: Timestamp) -> String {
    let mut sql = String::new();
    for pair in month_starts(now.wall().year()).windows(2) {
        let [(name, from), (_, to)] = pair else { continue };
        // Entries of this month may be among the others already. There they stay.
        sql.push_str(&format!(
            "DO $$ BEGIN
                CREATE TABLE IF NOT EXISTS steno.{name} PARTITION OF steno.entry
                    FOR VALUES FROM ({from}) TO ({to});
                ALTER TABLE steno.{name} ENABLE ROW LEVEL SECURITY;
            EXCEPTION WHEN check_violation THEN NULL; END $$;\n"
        ));
    }
    sql.push_str("ALTER TABLE steno.entry_other ENABLE ROW LEVEL SECURITY;");
    sql
}

/// Name and start of each month around a year, and of the one after the last, in milliseconds since 1970.
fn month_starts(year: i16) -> Vec<(String, i64)> {
    let mut months = Vec::new();
    for year in year - YEARS_AROUND..=year + YEARS_AROUND + 1 {
        for month in 1..=12 {
            let start = jiff::civil::date(year, month, 1).to_zoned(jiff::tz::TimeZone::UTC);
            let start = start.map_or(0, |start| start.timestamp().as_millisecond());
            months.push((format!("entry_{year}_{month:02}"), start));
        }
    }
    months.truncate(12 * (2 * YEARS_AROUND as usize + 1) + 1);
    months
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_those_of_three_years() {
        let months = month_starts(2026);
        assert_eq!(months.len(), 37, "the last one ends the one before");
        assert_eq!(months[0], ("entry_2025_01".to_owned(), 1_735_689_600_000));
        assert_eq!(months[36].0, "entry_2028_01");
    }
}
