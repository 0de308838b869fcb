//! Removes sessions that are older than the owner of the database keeps them.

use super::PostgresRemote;
use crate::prune_summary::PruneSummary;
use crate::team_error::TeamError;

const DAY_MS: i64 = 86_400_000;

const SET_KEEP: &str = "INSERT INTO steno.meta VALUES ('keep_days', $1)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";

impl PostgresRemote {
    /// Removes the sessions that ended more than this many days ago. Members push none of that age from then on.
    pub(crate) fn prune(&mut self, days: u32, is_trial: bool) -> Result<PruneSummary, TeamError> {
        self.check_version()?;
        let days = i64::from(days);
        let oldest = self.now.instant().as_millisecond() - days * DAY_MS;
        if !is_trial {
            self.run("limit how long sessions are kept", |client| {
                client.execute(SET_KEEP, &[&days])
            })?;
        }
        let row = self.run("remove old sessions", |client| {
            client.query_one(
                "SELECT sessions, partitions FROM steno.prune($1, $2)",
                &[&oldest, &is_trial],
            )
        })?;
        let count = |at: usize| u64::try_from(row.get::<_, i64>(at)).unwrap_or(0);
        Ok(PruneSummary { sessions: count(0), months: count(1) })
    }

    /// The end of the oldest sessions that the database keeps, in milliseconds since 1970.
    pub(crate) fn oldest_kept(&mut self) -> Result<Option<i64>, TeamError> {
        let sql = "SELECT value FROM steno.meta WHERE name = 'keep_days'";
        let row =
            self.run("read how long sessions are kept", |client| client.query_opt(sql, &[]))?;
        let now = self.now.instant().as_millisecond();
        Ok(row.map(|row| now.saturating_sub(row.get::<_, i64>(0).saturating_mul(DAY_MS))))
    }
}
