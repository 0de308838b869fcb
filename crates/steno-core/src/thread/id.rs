//! The ids of threads, objectives, operations and references, and where new ones come from.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use uuid::Uuid;

/// The id of a thread or an objective, which is also a folder's name; it can never lead out of its folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(String);

/// A text that cannot be an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an id (one folder name, no dot in front, no control characters): {0:?}")]
pub struct IdError(pub String);

impl Id {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Id {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let leads_out = text.contains(|c: char| c.is_control() || "/\\:".contains(c));
        if text.is_empty() || text.starts_with('.') || leads_out || text.len() > 200 {
            return Err(IdError(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Borrow<str> for Id {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Where new ids come from; the core never rolls dice by itself.
#[derive(Clone)]
pub struct IdSource(Arc<dyn Fn() -> u32 + Send + Sync>);

impl IdSource {
    /// Ids from the numbers that `next` gives.
    pub fn new(next: impl Fn() -> u32 + Send + Sync + 'static) -> Self {
        Self(Arc::new(next))
    }

    /// Ids from the system's random numbers.
    pub fn random() -> Self {
        Self::new(|| Uuid::new_v4().as_fields().0)
    }

    /// A new id: `PREFIX-` and eight hexadecimal digits.
    pub(super) fn next(&self, prefix: &str) -> String {
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
            assert!(bad.parse::<Id>().is_err(), "{bad:?}");
        }
        for good in ["thread-0a1b2c3d", "no-such-thread", "é 1"] {
            assert!(good.parse::<Id>().is_ok(), "{good:?}");
        }
    }

    #[test]
    fn new_ids_have_eight_digits() {
        assert_eq!(IdSource::new(|| 0x1f).next("op"), "op-0000001f");
        assert_eq!(IdSource::random().next("thread").len(), "thread-".len() + 8);
    }
}
