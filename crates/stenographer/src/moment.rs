//! Parses dates and times in the user's time zone.

use steno_model::Timestamp;
use steno_model::moment::{self, DayEdge, LocalNow};

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;

/// Parses `2026-01-05`, `2026-01`, `today`, `yesterday`, `2026-01-05T09:15`, or `90m`, `12h`, `7d`, `2w`, `1mo` ago.
pub(crate) fn parse_moment(
    text: &str,
    edge: DayEdge,
    env: &ProcessEnvironment,
) -> Result<Timestamp, CommandError> {
    let here = LocalNow { now: env.clock.now(), zone: &env.zone };
    moment::parse_moment(text, edge, &here).map_err(|error| {
        CommandError::user(error).hint(
            "use a date such as 2026-01-05, 2026-01 or yesterday, a time such as 2026-01-05T09:15, or 90m, 12h, 7d, 2w, 1mo ago",
        )
    })
}
