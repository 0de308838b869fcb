//! Moments as people type them: a date, a time, or how long ago.

use jiff::tz::TimeZone;

use crate::timestamp::{Timestamp, Zone};

/// Which end of a day is meant where only a date is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Its first moment.
    Begin,
    /// The first moment after it.
    End,
}

/// When and where somebody types.
#[derive(Clone, Copy, Debug)]
pub struct Here<'a> {
    /// When.
    pub now: Timestamp,
    /// On whose clock.
    pub zone: &'a TimeZone,
}

/// A text that means no moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a time: {0}")]
pub struct MomentError(String);

/// The moment that `text` means: `2026-01-05`, `2026-01-05T09:15`, or `90m`, `12h`, `7d`, `2w` ago.
pub fn parse(text: &str, edge: Edge, here: &Here<'_>) -> Result<Timestamp, MomentError> {
    let unknown = || MomentError(text.to_owned());
    if let Some(seconds) = ago(text) {
        let now = here.now.instant();
        let then =
            now.checked_sub(jiff::SignedDuration::from_secs(seconds)).map_err(|_| unknown())?;
        return Ok(Timestamp::from_instant(then, 0));
    }
    let stated: Timestamp = text.parse().map_err(|_| unknown())?;
    if stated.zone() != Zone::Unstated {
        return Ok(stated);
    }
    let mut wall = stated.wall();
    if edge == Edge::End && !text.contains([':', 'T', 't']) {
        wall = wall.checked_add(jiff::Span::new().days(1)).map_err(|_| unknown())?;
    }
    let local = here.zone.to_ambiguous_timestamp(wall).compatible().map_err(|_| unknown())?;
    Ok(Timestamp::from_instant(local, 0))
}

/// How many seconds ago `12h` was.
fn ago(text: &str) -> Option<i64> {
    let unit = match text.chars().next_back()? {
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    text[..text.len() - 1].parse::<u32>().ok().map(|count| i64::from(count) * unit)
}
