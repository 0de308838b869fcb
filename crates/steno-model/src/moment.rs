//! Parses times as users type them: a date, a time, or a duration before now.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo};

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

/// Parses `2026-01-05`, `2026-01-05T09:15`, `2026-01`, `2026`, `today`, `yesterday`, or a duration before now: `90m`,
/// `1h 30m`, `7d`, `2w`, `1mo`, with or without `ago` after it.
pub fn parse_moment(
    text: &str,
    edge: DayEdge,
    here: &LocalNow<'_>,
) -> Result<Timestamp, MomentError> {
    let unknown = || MomentError(text.to_owned());
    if let Some((begin, end)) = parse_named_days(text, here) {
        let day = if edge == DayEdge::End { end } else { begin };
        let local = here.zone.to_ambiguous_timestamp(day.to_datetime(Time::midnight()));
        let local = local.compatible().map_err(|_| unknown())?;
        return Ok(Timestamp::from_instant(local, 0));
    }
    let span = text.strip_suffix(" ago").unwrap_or(text);
    if let Some(then) = parse_months_ago(span, here) {
        return Ok(then);
    }
    if let Some(duration) = parse_duration_ago(span) {
        let then = here.now.instant().checked_sub(duration).map_err(|_| unknown())?;
        return Ok(Timestamp::from_instant(then, 0));
    }
    let stated: Timestamp = text.parse().map_err(|_| unknown())?;
    if stated.zone() != TimestampZone::Unstated {
        return Ok(stated);
    }
    let mut wall = stated.wall();
    if edge == DayEdge::End && !text.contains([':', 'T', 't']) {
        wall = wall.checked_add(Span::new().days(1)).map_err(|_| unknown())?;
    }
    let local = here.zone.to_ambiguous_timestamp(wall).compatible().map_err(|_| unknown())?;
    Ok(Timestamp::from_instant(local, 0))
}

/// Parses `today`, `yesterday`, a month such as `2026-01` or a year. Returns the first day and the day after the last one.
fn parse_named_days(text: &str, here: &LocalNow<'_>) -> Option<(Date, Date)> {
    let today = here.now.instant().to_zoned(here.zone.clone()).date();
    match text {
        "today" => Some((today, today.tomorrow().ok()?)),
        "yesterday" => Some((today.yesterday().ok()?, today)),
        _ => {
            let is_year = text.len() == "2026".len() && text.bytes().all(|c| c.is_ascii_digit());
            let is_month = text.len() == "2026-01".len() && text.as_bytes()[4] == b'-';
            let (rest, length) = match (is_year, is_month) {
                (true, _) => ("-01-01", Span::new().years(1)),
                (_, true) => ("-01", Span::new().months(1)),
                _ => return None,
            };
            let first: Date = format!("{text}{rest}").parse().ok()?;
            Some((first, first.checked_add(length).ok()?))
        }
    }
}

/// Parses a duration with months or years, such as `1mo`. They are those of the calendar.
fn parse_months_ago(text: &str, here: &LocalNow<'_>) -> Option<Timestamp> {
    let span: Span = text.parse().ok()?;
    if (span.get_months() == 0 && span.get_years() == 0) || span.is_negative() {
        return None;
    }
    let then = here.now.instant().to_zoned(here.zone.clone()).checked_sub(span).ok()?;
    Some(Timestamp::from_instant(then.timestamp(), 0))
}

/// Parses a duration such as `12h` or `1h 30m`. A day has 24 hours.
fn parse_duration_ago(text: &str) -> Option<SignedDuration> {
    let span: Span = text.parse().ok()?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Some(duration).filter(|duration| !duration.is_negative())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_before_now() {
        let here = LocalNow { now: "2026-01-15T12:00:00Z".parse().unwrap(), zone: &TimeZone::UTC };
        let parse = |text: &str| parse_moment(text, DayEdge::Begin, &here).map(|at| at.to_string());
        for (text, expected) in [
            ("90m", "2026-01-15T10:30:00Z"),
            ("1h 30m", "2026-01-15T10:30:00Z"),
            ("7d", "2026-01-08T12:00:00Z"),
            ("2w", "2026-01-01T12:00:00Z"),
            ("1mo", "2025-12-15T12:00:00Z"),
            ("1 month", "2025-12-15T12:00:00Z"),
            ("1mo ago", "2025-12-15T12:00:00Z"),
            ("90m ago", "2026-01-15T10:30:00Z"),
            ("2 days ago", "2026-01-13T12:00:00Z"),
            ("2025", "2025-01-01T00:00:00Z"),
            ("2026-01-05", "2026-01-05T00:00:00Z"),
            ("2025-12", "2025-12-01T00:00:00Z"),
            ("today", "2026-01-15T00:00:00Z"),
            ("yesterday", "2026-01-14T00:00:00Z"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(expected), "{text}");
        }
        for text in [
            "-7d",
            "-1mo",
            "7",
            "d",
            "2025-13",
            "2025/12",
            "99999999999d",
            "",
            "ago",
            " ago",
            "today ago",
            "-7d ago",
        ] {
            assert_eq!(parse(text), Err(MomentError(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn named_days_end_after_their_last_one() {
        let here = LocalNow { now: "2026-01-15T12:00:00Z".parse().unwrap(), zone: &TimeZone::UTC };
        for (text, expected) in [
            ("2025-12", "2026-01-01T00:00:00Z"),
            ("2025", "2026-01-01T00:00:00Z"),
            ("today", "2026-01-16T00:00:00Z"),
            ("yesterday", "2026-01-15T00:00:00Z"),
        ] {
            let end = parse_moment(text, DayEdge::End, &here).map(|at| at.to_string());
            assert_eq!(end.as_deref(), Ok(expected), "{text}");
        }
    }
}
