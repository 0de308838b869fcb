//! `--since`: a duration before now, such as `24h` or `7d`.

use std::str::FromStr;

use jiff::SignedDuration;
use steno_model::Timestamp;

/// A duration before now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SinceDuration {
    count: u32,
    unit: DurationUnit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DurationUnit {
    Minute,
    Hour,
    Day,
    Week,
}

impl SinceDuration {
    /// Returns the start of the duration.
    pub(super) fn start_before(self, now: Timestamp) -> Timestamp {
        let count = i64::from(self.count);
        let span = match self.unit {
            DurationUnit::Minute => SignedDuration::from_mins(count),
            DurationUnit::Hour => SignedDuration::from_hours(count),
            DurationUnit::Day => SignedDuration::from_hours(24 * count),
            DurationUnit::Week => SignedDuration::from_hours(7 * 24 * count),
        };
        let instant = now.instant().checked_sub(span);
        Timestamp::from_instant(instant.unwrap_or(jiff::Timestamp::MIN), 9)
    }

    /// Formats the duration in words: `30 days`.
    pub(super) fn to_words(self) -> String {
        let unit = match self.unit {
            DurationUnit::Minute => "minute",
            DurationUnit::Hour => "hour",
            DurationUnit::Day => "day",
            DurationUnit::Week => "week",
        };
        super::pluralize(self.count.into(), unit)
    }
}

impl FromStr for SinceDuration {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "expected a number and m, h, d or w, such as 24h or 7d";
        let (count, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or(expected)?;
        let unit = match unit {
            "m" => DurationUnit::Minute,
            "h" => DurationUnit::Hour,
            "d" => DurationUnit::Day,
            "w" => DurationUnit::Week,
            _ => return Err(expected),
        };
        let count = count.parse().map_err(|_| expected)?;
        Ok(Self { count, unit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_reach_back_from_now() {
        let now: Timestamp = "2025-01-15T10:30:00Z".parse().unwrap();
        let begin = |text: &str| {
            let since: SinceDuration = text.parse().unwrap();
            since.start_before(now).to_rfc3339_nano()
        };
        assert_eq!(begin("24h"), "2025-01-14T10:30:00Z");
        assert_eq!(begin("7d"), begin("1w"));
        assert_eq!(begin("30m"), "2025-01-15T10:00:00Z");
        begin("4294967295w");
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for text in ["", "d", "7", "7y", "-1d", "1.5h", "7é"] {
            assert!(text.parse::<SinceDuration>().is_err(), "{text}");
        }
    }
}
