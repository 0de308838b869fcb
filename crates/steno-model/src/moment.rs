//! Parses times as users type them: a date, a time, or a duration before now.

use jiff::tz::TimeZone;

use crate::timestamp::{Timestamp, TimestampZone};

/// Which end of the day a date without a time means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DayEdge {
    /// The start of the day.
    Begin,
    /// The start of the next day.
    End,
}

/// The user's current time and time zone.
#[derive(Clone, Copy, Debug)]
pub struct LocalNow<'a> {
    /// The current time.
    pub now: Timestamp,
    /// The user's time zone.
    pub zone: &'a TimeZone,
}

/// An invalid time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a time: {0}")]
pub struct MomentError(String);

/// Parses `2026-01-05`, `2026-01-05T09:15`, or a duration before now: `90m`, `12h`, `7d`, `2w`.
pub fn parse_moment(
    text: &str,
    edge: DayEdge,
    here: &LocalNow<'_>,
) -> Result<Timestamp, MomentError> {
    let unknown = || MomentError(text.to_owned());
    if let Some(seconds) = parse_seconds_ago(text) {
        let now = here.now.instant();
        let then =
            now.checked_sub(jiff::SignedDuration::from_secs(seconds)).map_err(|_| unknown())?;
        return Ok(Timestamp::from_instant(then, 0));
    }
    let stated: Timestamp = text.parse().map_err(|_| unknown())?;
    if stated.zone() != TimestampZone::Unstated {
        return Ok(stated);
    }
    let mut wall = stated.wall();
    if edge == DayEdge::End && !text.contains([':', 'T', 't']) {
        wall = wall.checked_add(jiff::Span::new().days(1)).map_err(|_| unknown())?;
    }
    let local = here.zone.to_ambiguous_timestamp(wall).compatible().map_err(|_| unknown())?;
    Ok(Timestamp::from_instant(local, 0))
}

/// Parses a duration such as `12h` into seconds.
fn parse_seconds_ago(text: &str) -> Option<i64> {
    let unit = match text.chars().next_back()? {
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    text[..text.len() - 1].parse::<u32>().ok().map(|count| i64::from(count) * unit)
}
