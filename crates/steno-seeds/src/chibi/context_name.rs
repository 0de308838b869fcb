//! Names of contexts: letters, digits, `_` and `-`, which every release of chibi accepts.

use std::fmt;
use std::str::FromStr;

use steno_model::session::Session;

/// Maximum number of characters, the limit of file systems for a folder's name.
const MAX_NAME_CHARS: usize = 255;

/// The name of a context and of its folder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContextName(String);

/// A text that is not a valid context name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a context name (letters, digits, '_' and '-', no '-' in front, not 'system'): {0:?}")]
pub struct ContextNameError(pub String);

impl ContextName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name for a session: its own if that is valid, else a similar one.
    pub(super) fn for_session(session: &Session) -> Self {
        let own = session.native_id.as_deref().unwrap_or(session.id.as_str());
        own.parse().unwrap_or_else(|_| {
            let plain = |c: char| {
                if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }
            };
            Self(format!("s_{}", session.id.as_str().chars().map(plain).collect::<String>()))
        })
    }

    /// The name with a number appended, for when it is taken.
    pub(super) fn with_number(&self, number: u64) -> Self {
        let ending = format!("_{number}");
        let room = MAX_NAME_CHARS.saturating_sub(ending.len()).min(self.0.len());
        Self(format!("{}{ending}", &self.0[..room]))
    }
}

impl FromStr for ContextName {
    type Err = ContextNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        let reserved = text.starts_with('-') || text.eq_ignore_ascii_case("system");
        if plain && !reserved && (1..=MAX_NAME_CHARS).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ContextNameError(text.to_owned()))
        }
    }
}

impl fmt::Display for ContextName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_model::session::SessionId;

    #[test]
    fn names_cannot_leave_their_folder() {
        for bad in ["", ".", "..", "a/b", "-", "-x", "System", "a b", "ü", &"x".repeat(256)] {
            assert!(bad.parse::<ContextName>().is_err(), "{bad:?}");
        }
        assert!("research-2_b".parse::<ContextName>().is_ok());
        let longest: ContextName = "x".repeat(255).parse().unwrap();
        assert_eq!(longest.with_number(12).as_str(), format!("{}_12", "x".repeat(252)));
    }

    #[test]
    fn every_session_gets_a_name() {
        let mut session = Session::new(SessionId::for_native("x", "a.b"), "x");
        assert_eq!(ContextName::for_session(&session).as_str(), "s_a_b");
        session.native_id = Some("work".to_owned());
        assert_eq!(ContextName::for_session(&session).as_str(), "work");
        session.native_id = Some("../../etc".to_owned());
        assert_eq!(ContextName::for_session(&session).as_str(), "s_a_b");
    }
}
