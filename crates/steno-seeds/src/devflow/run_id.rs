//! The name of a run and of its folder: `{date}-{flow}-{identifier}[-{suffix}]`.

use std::fmt;
use std::str::FromStr;

use steno_model::timestamp::Timestamp;

/// The name of a run. It can never be a path to another folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(String);

/// A text that is not a valid run name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a run id (one folder name without control characters): {0:?}")]
pub struct RunIdError(pub String);

impl RunId {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Builds a name as in ADR-011, with the writer's date: `TK-421` in the flow `ticket-to-pr` gives
    /// `2025-01-15-ticket-to-pr-TK421`.
    pub(super) fn build_name(at: Timestamp, flow: &str, identifier: &str) -> String {
        let identifier: String = identifier.chars().filter(|c| c.is_alphanumeric()).collect();
        let flow: String = flow.chars().map(safe_char).collect();
        let mut name = at.wall().date().to_string();
        for part in [flow, identifier].iter().filter(|part| !part.is_empty()) {
            name.push('-');
            name.push_str(part);
        }
        name
    }

    /// Builds a name for a new run, with the first suffix for which `taken` returns false.
    pub(super) fn first_free(
        at: Timestamp,
        flow: &str,
        identifier: &str,
        taken: impl Fn(&RunId) -> bool,
    ) -> Self {
        let name = Self::build_name(at, flow, identifier);
        let suffixed = (2_u64..).map(|suffix| format!("{name}-{suffix}"));
        std::iter::once(name.clone())
            .chain(suffixed)
            .map(RunId)
            .find(|id| !taken(id))
            .expect("there are more suffixes than runs")
    }
}

/// The character, or `-` if a folder name should not have it.
fn safe_char(c: char) -> char {
    if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }
}

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let special = ["", ".", "..", super::index::INDEX_FILE].contains(&text);
        let leads_out = text.contains(|c: char| c.is_control() || "/\\".contains(c));
        if special || leads_out || text.len() > 200 {
            return Err(RunIdError(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(flow: &str, identifier: &str) -> String {
        RunId::build_name("2025-01-15T10:30:00Z".parse().unwrap(), flow, identifier)
    }

    #[test]
    fn names_are_those_of_the_decision() {
        assert_eq!(named("ticket-to-pr", "TK-421"), "2025-01-15-ticket-to-pr-TK421");
        assert_eq!(named("review-pr", "123"), "2025-01-15-review-pr-123");
        assert_eq!(named("manual-run", "001"), "2025-01-15-manual-run-001");
        assert_eq!(named("../evil flow", "a/b\0"), "2025-01-15-..-evil-flow-ab");
        assert_eq!(named("", "--"), "2025-01-15");
    }

    #[test]
    fn a_taken_name_gets_a_suffix() {
        let at = "2025-01-15T10:30:00Z".parse().unwrap();
        let taken = ["2025-01-15-f-1", "2025-01-15-f-1-2"];
        let id = RunId::first_free(at, "f", "1", |id| taken.contains(&id.as_str()));
        assert_eq!(id.as_str(), "2025-01-15-f-1-3");
    }

    #[test]
    fn names_cannot_lead_out() {
        for bad in ["", ".", "..", "a/b", "../x", "a\\b", "a\0", "a\nb", "index.json"] {
            assert!(bad.parse::<RunId>().is_err(), "{bad:?}");
        }
        for good in ["2025-01-15-x", "run 1", "...", "é"] {
            assert!(good.parse::<RunId>().is_ok(), "{good:?}");
        }
    }
}
