//! Byte sizes with units: `500000`, `64 MiB`, `1.5GB`.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteSize(pub(crate) u64);

/// The text is not a byte size.
#[derive(Debug, thiserror::Error)]
#[error("not a size in bytes, such as 64 MiB or 500000")]
pub(crate) struct ByteSizeError;

const UNITS: [(&str, u64); 10] = [
    ("", 1),
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KIB", 1 << 10),
    ("MIB", 1 << 20),
    ("GIB", 1 << 30),
    ("TIB", 1 << 40),
];

impl fmt::Display for ByteSize {
    /// Formats the size with three digits: `12.3 MB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)];
        let bytes = self.0 as f64;
        match units.into_iter().find(|(_, factor)| bytes >= *factor) {
            Some((unit, factor)) if bytes >= 99.95 * factor => {
                write!(f, "{:.0} {unit}", bytes / factor)
            }
            Some((unit, factor)) => write!(f, "{:.1} {unit}", bytes / factor),
            None => write!(f, "{} B", self.0),
        }
    }
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, ByteSizeError> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit = unit.trim().to_ascii_uppercase();
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(ByteSizeError)?;
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(*factor).map(Self).ok_or(ByteSizeError);
        }
        let bytes = number.parse::<f64>().map_err(|_| ByteSizeError)? * *factor as f64;
        if bytes < u64::MAX as f64 { Ok(Self(bytes as u64)) } else { Err(ByteSizeError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_printed_with_three_digits() {
        let shown = [0, 999, 1000, 99_949, 99_950, 12_345_678, 5_000_000_000];
        let shown = shown.map(|bytes| ByteSize(bytes).to_string());
        assert_eq!(shown, ["0 B", "999 B", "1.0 KB", "99.9 KB", "100 KB", "12.3 MB", "5.0 GB"]);
    }

    #[test]
    fn sizes_have_units() {
        let size = |text: &str| text.parse::<ByteSize>().map(|size| size.0).ok();
        for (text, bytes) in [
            ("0", 0),
            ("500000", 500_000),
            ("64 MiB", 64 << 20),
            ("1.5kb", 1500),
            ("2GiB", 2 << 30),
        ] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "x", "-1", "5 apples", "1e9", "99999999 TiB"] {
            assert_eq!(size(text), None, "{text}");
        }
    }
}
