//! Ids of threads, objectives, operations and references, and the source of new ones.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use uuid::Uuid;

/// The id of a thread or an objective. It is also a folder name and can never be a path to another folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeslieId(String);

/// A text that is not a valid id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an id (one folder name, no dot in front, no control characters): {0:?}")]
pub struct LeslieIdError(pub String);

impl LeslieId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for LeslieId {
    type Err = LeslieIdError;

    fn from_str(text: &str) -> Result<Self, LeslieIdError> {
        let leads_out = text.contains(|c: char| c.is_control() || "/\\:".contains(c));
        if text.is_empty() || text.starts_with('.') || leads_out || text.len() > 200 {
            return Err(LeslieIdError(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for LeslieId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Borrow<str> for LeslieId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Serialize for LeslieId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Generates ids. The core uses no random numbers unless the caller passes [`IdSource::random`].
#[derive(Clone)]
pub struct IdSource(Arc<dyn Fn() -> u32 + Send + Sync>);

impl IdSource {
    /// Generates ids from the numbers that `next` returns.
    pub fn new(next: impl Fn() -> u32 + Send + Sync + 'static) -> Self {
        Self(Arc::new(next))
    }

    /// Generates ids from the system's random numbers.
    pub fn random() -> Self {
        Self::new(|| Uuid::new_v4().as_fields().0)
    }

    /// Generates an id: `PREFIX-` and eight hexadecimal digits.
    pub(super) fn next_id(&self, prefix: &str) -> String {
        format!("{prefix}-{:08x}", (self.0)())
    }
}

impl fmt::Debug for IdSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdSource")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_cannot_lead_out() {
        for bad in ["", ".", "..", ".meta", "a/b", "../x", "a\\b", "c:x", "a\0", "a\nb"] {
            assert!(bad.parse::<LeslieId>().is_err(), "{bad:?}");
        }
        for good in ["thread-0a1b2c3d", "no-such-thread", "é 1"] {
            assert!(good.parse::<LeslieId>().is_ok(), "{good:?}");
        }
    }

    #[test]
    fn new_ids_have_eight_digits() {
        assert_eq!(IdSource::new(|| 0x1f).next_id("op"), "op-0000001f");
        assert_eq!(IdSource::random().next_id("thread").len(), "thread-".len() + 8);
    }
}
