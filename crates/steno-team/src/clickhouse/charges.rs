//! What sessions cost, summed in the index.

use std::collections::HashMap;

use steno_store::cost::charge::{ChargeTable, SessionAccount, SummedUsage};
use steno_store::index::EntryFilter;

use super::search::session_condition;
use super::{AnswerRow, ClickHouseIndex, integer, text};
use crate::team_error::TeamError;

/// Milliseconds per quarter of an hour. No quarter spans two days in any time zone.
const QUARTER_HOUR_MS: i64 = 900_000;

impl ClickHouseIndex {
    /// The charges of the sessions that a filter selects, per quarter of an hour. Each API message counts once, for the
    /// session that started first (of equal ones, the first by person, agent and id), with the largest number of each kind
    /// that any session states.
    pub fn load_charges(&self, filter: &EntryFilter) -> Result<ChargeTable, TeamError> {
        let mut table = ChargeTable::default();
        let accounts = self.load_accounts(filter, &mut table)?;
        let own = self.own_rows();
        // A quarter in which the filter begins or ends has a sum for each side.
        let ends = [filter.since, filter.until].into_iter().flatten();
        let sides: String =
            ends.map(|at| format!(", at >= {}", at.instant().as_millisecond())).collect();
        let sql = format!(
            "WITH (s.started IS NULL, ifNull(s.started, 0), s.owner, s.agent, s.id) AS place
            SELECT owner.1 AS session, model, band, min(at), max(at), sum(n1), sum(n2), sum(n3), sum(n4),
                sum(n5), sum(n6), sum(n7)
            FROM (
                SELECT argMin((u.session, u.at), place) AS owner, owner.2 AS at,
                    argMinIf(u.model, place, u.model != '') AS model, max(u.band) AS band,
                    max(u.input) AS n1, max(u.cache_read) AS n2, max(u.cache_write) AS n3,
                    max(u.cache_write_5m) AS n4, max(u.cache_write_1h) AS n5, max(u.output) AS n6,
                    max(u.reasoning) AS n7
                FROM (SELECT * FROM steno_usage WHERE {own}) AS u
                INNER JOIN (SELECT session, revision, started, owner, agent, id FROM steno_session FINAL WHERE {own}) AS s
                    ON u.session = s.session AND u.revision = s.revision
                GROUP BY u.key
            )
            GROUP BY session, model, band, intDiv(at, {QUARTER_HOUR_MS}){sides}"
        );
        for row in self.rows("add up usage", &sql)? {
            let account = row.first().and_then(text).and_then(|name| accounts.get(&name).copied());
            if let Some((account, usage)) = account.zip(summed_usage(&row)) {
                let model = row[1].as_str().unwrap_or_default();
                table.add_usage(account, model, usage);
            }
        }
        table.add_tokenless_sessions();
        Ok(table)
    }

    /// Loads the selected sessions as accounts. Returns their indexes by name.
    fn load_accounts(
        &self,
        filter: &EntryFilter,
        table: &mut ChargeTable,
    ) -> Result<HashMap<String, usize>, TeamError> {
        let (own, selected) = (self.own_rows(), session_condition(filter));
        let sql = format!(
            "SELECT session, agent, id, project, title, thread, coalesce(ended, started), cost, tokens, owner
            FROM steno_session FINAL WHERE {own} AND revision != ''{selected} ORDER BY session"
        );
        let mut indexes = HashMap::new();
        for row in self.rows("list sessions", &sql)? {
            let [name, agent, id, project, title, thread, ended, cost, tokens, owner] =
                row.as_slice()
            else {
                continue;
            };
            let (Some(name), Some(agent), Some(session)) = (text(name), text(agent), text(id))
            else {
                continue;
            };
            indexes.insert(name, table.accounts.len());
            table.accounts.push(SessionAccount {
                agent,
                session,
                project: text(project),
                title: text(title),
                thread: text(thread),
                person: text(owner),
                ended_at: integer(ended),
                reported_cost: cost.as_f64(),
                reported_tokens: integer(tokens).unwrap_or(0),
            });
        }
        Ok(indexes)
    }
}

fn summed_usage(row: &AnswerRow) -> Option<SummedUsage> {
    let band = usize::try_from(integer(row.get(2)?)?).ok()?;
    let mut tokens = [0; 7];
    for (at, number) in tokens.iter_mut().enumerate() {
        *number = integer(row.get(5 + at)?)?;
    }
    Some(SummedUsage { band, first: integer(row.get(3)?), last: integer(row.get(4)?), tokens })
}
