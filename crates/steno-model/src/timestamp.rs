//! Timestamps that preserve the offset and the sub-second digits of their text.
//!
//! jiff does arithmetic and time zones. This module makes sure that `09:15:32.100+08:00` is never written back as
//! `01:15:32.1Z`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time, with the offset and the number of sub-second digits of its text.
///
/// Timestamps are equal if their texts are equivalent. Use [`Timestamp::instant`] for ordering.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timestamp {
    wall: DateTime,
    digits: u8,
    zone: TimestampZone,
}

/// The time zone in a timestamp's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimestampZone {
    /// The letter `Z`.
    Utc,
    /// A numeric offset in seconds, such as `+08:00`.
    Offset(i32),
    /// No zone; taken as UTC.
    Unstated,
}

/// An invalid timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a timestamp: {0}")]
pub struct ParseTimestampError(pub String);

impl Timestamp {
    /// The time `seconds` after the Unix epoch, in UTC and without sub-second digits.
    pub fn from_unix(seconds: i64) -> Option<Self> {
        let instant = jiff::Timestamp::from_second(seconds).ok()?;
        Some(Self::from_instant(instant, 0))
    }

    /// An instant in UTC, printed with `digits` sub-second digits (at most nine).
    pub fn from_instant(instant: jiff::Timestamp, digits: u8) -> Self {
        let wall = Offset::UTC.to_datetime(instant);
        Self { wall, digits: digits.min(9), zone: TimestampZone::Utc }
    }

    /// The instant, independent of the offset.
    pub fn instant(&self) -> jiff::Timestamp {
        self.offset().to_timestamp(self.wall).unwrap_or(jiff::Timestamp::MIN)
    }

    /// Whole seconds since the Unix epoch.
    pub fn unix_seconds(&self) -> i64 {
        self.instant().as_second()
    }

    /// The date and time as written, without conversion.
    pub fn wall(&self) -> DateTime {
        self.wall
    }

    /// The time zone as written.
    pub fn zone(&self) -> TimestampZone {
        self.zone
    }

    /// The same instant with the offset of `zone` at that time.
    pub fn in_zone(&self, zone: &TimeZone) -> Self {
        let instant = self.instant();
        let offset = zone.to_offset(instant);
        let stated = if zone == &TimeZone::UTC {
            TimestampZone::Utc
        } else {
            TimestampZone::Offset(offset.seconds())
        };
        Self { wall: offset.to_datetime(instant), digits: self.digits, zone: stated }
    }

    /// The time in whole seconds with a numeric offset. A written offset is kept; UTC is converted to `zone`; a time
    /// without a zone is taken as local time in `zone`.
    pub fn to_local_seconds(&self, zone: &TimeZone) -> Self {
        let (wall, offset) = match self.zone {
            TimestampZone::Offset(seconds) => (self.wall, seconds),
            TimestampZone::Utc => {
                let offset = zone.to_offset(self.instant());
                (offset.to_datetime(self.instant()), offset.seconds())
            }
            TimestampZone::Unstated => {
                let instant = zone.to_timestamp(self.wall).unwrap_or_else(|_| self.instant());
                (self.wall, zone.to_offset(instant).seconds())
            }
        };
        Self { wall, digits: 0, zone: TimestampZone::Offset(offset) }
    }

    /// `HH:MM:SS` as written, in the text's own offset.
    pub fn clock_text(&self) -> String {
        self.wall.strftime("%H:%M:%S").to_string()
    }

    /// `YYYY-MM-DD HH:MM:SS` as written, in the text's own offset.
    pub fn date_and_clock(&self) -> String {
        self.wall.strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// The format of Go's `time.RFC3339Nano`: no trailing zeros, `Z` for a zero offset.
    pub fn to_rfc3339_nano(&self) -> String {
        let mut text = self.date_time_text();
        let fraction = format!("{:09}", self.wall.subsec_nanosecond());
        let fraction = fraction.trim_end_matches('0');
        if !fraction.is_empty() {
            text.push('.');
            text.push_str(fraction);
        }
        text.push_str(&self.go_offset_text());
        text
    }

    /// The format of Go's `time.RFC3339`: whole seconds.
    pub fn to_rfc3339_seconds(&self) -> String {
        self.date_time_text() + &self.go_offset_text()
    }

    /// The format of Python's `datetime.isoformat`: six sub-second digits or none, never `Z`.
    pub fn to_isoformat(&self) -> String {
        let mut text = self.date_time_text();
        let micros = self.wall.subsec_nanosecond() / 1000;
        if micros != 0 {
            text.push_str(&format!(".{micros:06}"));
        }
        match self.zone {
            TimestampZone::Utc => text.push_str("+00:00"),
            TimestampZone::Offset(seconds) => push_offset(&mut text, seconds),
            TimestampZone::Unstated => {}
        }
        text
    }

    fn offset(&self) -> Offset {
        match self.zone {
            TimestampZone::Utc | TimestampZone::Unstated => Offset::UTC,
            TimestampZone::Offset(seconds) => Offset::from_seconds(seconds).unwrap_or(Offset::UTC),
        }
    }

    /// Date and time, written digit by digit: every record has a timestamp, and `strftime` takes three times as long.
    fn date_time_text(&self) -> String {
        let wall = &self.wall;
        let (year, month, day) = (wall.year().unsigned_abs(), wall.month(), wall.day());
        let mut text = String::with_capacity(40);
        if wall.year() < 0 {
            text.push('-');
        }
        let pairs = [
            (year / 100, ""),
            (year % 100, ""),
            (month.unsigned_abs().into(), "-"),
            (day.unsigned_abs().into(), "-"),
            (wall.hour().unsigned_abs().into(), "T"),
            (wall.minute().unsigned_abs().into(), ":"),
            (wall.second().unsigned_abs().into(), ":"),
        ];
        for (number, before) in pairs {
            text.push_str(before);
            push_two_digits(&mut text, number);
        }
        text
    }

    fn go_offset_text(&self) -> String {
        match self.zone {
            TimestampZone::Offset(seconds) if seconds != 0 => {
                let mut text = String::new();
                push_offset(&mut text, seconds - seconds % 60);
                text
            }
            _ => "Z".to_owned(),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.date_time_text();
        if self.digits > 0 {
            text.push('.');
            let mut rest = self.wall.subsec_nanosecond().unsigned_abs();
            for _ in 0..self.digits {
                text.push(last_digit(rest / 100_000_000));
                rest = rest % 100_000_000 * 10;
            }
        }
        match self.zone {
            TimestampZone::Utc => text.push('Z'),
            TimestampZone::Offset(seconds) => push_offset(&mut text, seconds),
            TimestampZone::Unstated => {}
        }
        f.pad(&text)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    /// Parses ISO 8601 as agents write it: `T` or a space, any number of digits, `Z`, an offset or none.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_timestamp(text.trim()).ok_or_else(|| ParseTimestampError(text.to_owned()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

fn push_two_digits(text: &mut String, number: u16) {
    text.push(last_digit(u32::from(number / 10)));
    text.push(last_digit(u32::from(number)));
}

/// The last digit of a number.
fn last_digit(number: u32) -> char {
    char::from(b'0' + (number % 10) as u8)
}

fn push_offset(text: &mut String, seconds: i32) {
    let sign = if seconds < 0 { '-' } else { '+' };
    let seconds = seconds.unsigned_abs();
    text.push_str(&format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60));
    if !seconds.is_multiple_of(60) {
        text.push_str(&format!(":{:02}", seconds % 60));
    }
}

fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let mut rest = TimestampScanner(text.as_bytes());
    let (year, month, day) = (
        rest.read_number(4)?,
        rest.expect_byte(b'-')?.read_number(2)?,
        rest.expect_byte(b'-')?.read_number(2)?,
    );
    let date = Date::new(year as i16, month as i8, day as i8).ok()?;
    if rest.0.is_empty() {
        return Some(Timestamp {
            wall: date.at(0, 0, 0, 0),
            digits: 0,
            zone: TimestampZone::Unstated,
        });
    }
    rest.one_of(b"Tt ")?;
    let (hour, minute) = (rest.read_number(2)?, rest.expect_byte(b':')?.read_number(2)?);
    let second =
        if rest.peek() == Some(b':') { rest.expect_byte(b':')?.read_number(2)? } else { 0 };
    let (nanos, digits) = rest.read_fraction()?;
    let zone = rest.read_zone()?;
    // Unix time has no leap seconds; second 60 becomes 59.
    let wall = date.to_datetime(
        jiff::civil::Time::new(hour as i8, minute as i8, second.min(59) as i8, nanos).ok()?,
    );
    (second <= 60).then_some(Timestamp { wall, digits, zone })
}

struct TimestampScanner<'a>(&'a [u8]);

impl TimestampScanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    fn expect_byte(&mut self, byte: u8) -> Option<&mut Self> {
        self.one_of(&[byte]).map(|_| self)
    }

    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let byte = self.peek().filter(|b| bytes.contains(b))?;
        self.0 = &self.0[1..];
        Some(byte)
    }

    fn read_number(&mut self, width: usize) -> Option<i32> {
        let digits = self.0.get(..width)?;
        let mut value = 0;
        for digit in digits {
            value = value * 10 + char::from(*digit).to_digit(10)? as i32;
        }
        self.0 = &self.0[width..];
        Some(value)
    }

    fn read_fraction(&mut self) -> Option<(i32, u8)> {
        if self.one_of(b".,").is_none() {
            return Some((0, 0));
        }
        let count = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let kept = count.min(9);
        let nanos = self.read_number(kept).filter(|_| count > 0)? * 10_i32.pow(9 - kept as u32);
        self.0 = &self.0[count - kept..];
        Some((nanos, kept as u8))
    }

    fn read_zone(&mut self) -> Option<TimestampZone> {
        let Some(sign) = self.one_of(b"Zz+-") else {
            return self.0.is_empty().then_some(TimestampZone::Unstated);
        };
        if sign.eq_ignore_ascii_case(&b'z') {
            return self.0.is_empty().then_some(TimestampZone::Utc);
        }
        let mut seconds = self.read_number(2)? * 3600;
        for unit in [60, 1] {
            let colon = self.one_of(b":").is_some();
            if colon || !self.0.is_empty() {
                seconds += self.read_number(2)? * unit;
            }
        }
        Offset::from_seconds(seconds).ok()?;
        let seconds = if sign == b'-' { -seconds } else { seconds };
        self.0.is_empty().then_some(TimestampZone::Offset(seconds))
    }
}

/// The source of the current time. The core never reads the system clock itself.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that calls `now` each time.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The system clock, in UTC with microseconds.
    pub fn system() -> Self {
        Self::new(|| Timestamp::from_instant(jiff::Timestamp::now(), 6))
    }

    /// A clock that always returns `at`.
    pub fn fixed(at: Timestamp) -> Self {
        Self::new(move || at)
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn text_comes_back_as_written() {
        for text in [
            "2026-01-05T09:15:32Z",
            "2026-01-05T09:15:32.100Z",
            "2026-01-05T09:15:32.123456789+08:00",
            "2026-01-05T09:15:32-03:30",
            "2026-01-05T09:15:32.5",
            "0001-01-01T00:00:00Z",
        ] {
            assert_eq!(at(text).to_string(), text);
        }
    }

    #[test]
    fn a_local_clock_shows_its_offset_and_whole_seconds() {
        let zone = TimeZone::fixed(Offset::from_seconds(8 * 3600).unwrap());
        for (given, expected) in [
            ("2026-02-08T06:30:00.75Z", "2026-02-08T14:30:00+08:00"),
            ("2026-02-08T06:30:00.75-03:00", "2026-02-08T06:30:00-03:00"),
            ("2026-02-08T14:30:00", "2026-02-08T14:30:00+08:00"),
        ] {
            assert_eq!(at(given).to_local_seconds(&zone).to_string(), expected);
        }
        let utc = at("2026-02-08T06:30:00Z").to_local_seconds(&TimeZone::UTC);
        assert_eq!(utc.to_string(), "2026-02-08T06:30:00+00:00");
    }

    #[test]
    fn each_language_has_its_own_form() {
        let moment = at("2026-01-05T09:15:35.250Z");
        assert_eq!(moment.to_rfc3339_nano(), "2026-01-05T09:15:35.25Z");
        assert_eq!(moment.to_isoformat(), "2026-01-05T09:15:35.250000+00:00");
        assert_eq!(at("2026-01-05T17:15:36+08:00").to_isoformat(), "2026-01-05T17:15:36+08:00");
        assert_eq!(at("2026-01-05T09:15:32+00:00").to_rfc3339_nano(), "2026-01-05T09:15:32Z");
        assert_eq!(at("2026-01-05T17:15:36+08:00").unix_seconds(), 1767604536);
    }

    #[test]
    fn rejects_invalid_timestamps() {
        for text in [
            "",
            "yesterday",
            "2026-13-01T00:00:00Z",
            "2026-01-05T25:00:00Z",
            "2026-01-05T09:15:32.Z",
            "2026-01-05T09:15:32Zulu",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Timestamp>();
        }

        #[test]
        fn writing_and_reading_agree(seconds in -62135596800i64..253402300799, nanos in 0i32..1_000_000_000, digits in 0u8..=9, offset in -1000i32..1000) {
            let unit = 10_i32.pow(9 - u32::from(digits));
            let instant = jiff::Timestamp::new(seconds, 0).unwrap();
            let wall = Offset::UTC.to_datetime(instant);
            let wall = wall.with().subsec_nanosecond(nanos - nanos % unit).build().unwrap();
            let original = Timestamp { wall, digits, zone: TimestampZone::Offset(offset * 60) };
            prop_assert_eq!(at(&original.to_string()), original);
        }
    }
}
