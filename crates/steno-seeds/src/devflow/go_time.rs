//! Formats durations as Go does.

use jiff::SignedDuration;

/// Formats the duration in whole seconds, as Go's `Duration.Round(time.Second).String()`: `0s`, `15m32s`, `1h0m1s`.
pub(super) fn format_rounded(duration: SignedDuration) -> String {
    let half = if duration.is_negative() { -1 } else { 1 };
    let carried = duration.saturating_add(SignedDuration::from_millis(500 * half));
    let seconds = carried.as_secs();
    let sign = if seconds < 0 { "-" } else { "" };
    let total = seconds.unsigned_abs();
    let (hours, minutes, seconds) = (total / 3600, total / 60 % 60, total % 60);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_half_away_from_zero() {
        for (millis, text) in [
            (0, "0s"),
            (499, "0s"),
            (500, "1s"),
            (-500, "-1s"),
            (932_000, "15m32s"),
            (3_600_500, "1h0m1s"),
            (90_000_000, "25h0m0s"),
        ] {
            assert_eq!(format_rounded(SignedDuration::from_millis(millis)), text);
        }
    }
}
