//! How long sessions are kept.

use steno_model::session::Session;
use steno_model::timestamp::Timestamp;

/// How many days sessions are kept after they ended; 0 is forever. The rule for a project takes precedence over that
/// for an agent, which takes precedence over that for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionRules {
    /// For all sessions.
    pub days: Option<u32>,
    /// For sessions of an agent.
    pub agents: Vec<(String, u32)>,
    /// For sessions of a project: its folder, or the last part of its path.
    pub projects: Vec<(String, u32)>,
}

const SECONDS_PER_DAY: i64 = 24 * 60 * 60;

impl RetentionRules {
    /// Whether no session is ever too old.
    pub fn is_empty(&self) -> bool {
        let all = self.agents.iter().chain(&self.projects).map(|(_, days)| *days);
        all.chain(self.days).all(|days| days == 0)
    }

    /// Whether a session ended too long ago. One without a time is kept.
    pub fn is_expired(&self, session: &Session, now: Timestamp) -> bool {
        let Some(last) = session.ended.or(session.started) else { return false };
        let days = i64::from(self.days_for(session));
        days > 0 && now.unix_seconds() - last.unix_seconds() > days * SECONDS_PER_DAY
    }

    fn days_for(&self, session: &Session) -> u32 {
        let project = session.project.as_deref().unwrap_or_default().trim_end_matches('/');
        let folder = project.rsplit('/').next().unwrap_or_default();
        let is_project = |(name, _): &&(String, u32)| {
            let name = name.trim_end_matches('/');
            !project.is_empty() && (name == project || name == folder)
        };
        let of_project = self.projects.iter().find(is_project);
        let of_agent = || self.agents.iter().find(|(name, _)| *name == session.agent);
        let named = of_project.or_else(of_agent).map(|(_, days)| *days);
        named.or(self.days).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_rule_decides() {
        let rules = RetentionRules {
            days: Some(100),
            agents: vec![("codex".to_owned(), 10), ("gemini".to_owned(), 0)],
            projects: vec![("acme".to_owned(), 1000), ("/srv/secret".to_owned(), 1)],
        };
        let now = "2026-06-01T00:00:00Z".parse().unwrap();
        let expired = |agent: &str, project: Option<&str>, ended: &str| {
            let mut session = Session::new("s".parse().unwrap(), agent);
            session.project = project.map(str::to_owned);
            session.ended = ended.parse().ok();
            rules.is_expired(&session, now)
        };
        assert!(expired("other", None, "2026-02-01T00:00:00Z"));
        assert!(!expired("other", None, "2026-05-01T00:00:00Z"));
        assert!(expired("codex", None, "2026-05-01T00:00:00Z"));
        assert!(!expired("gemini", None, "2020-05-01T00:00:00Z"));
        assert!(!expired("codex", Some("/home/me/acme/"), "2026-01-01T00:00:00Z"));
        assert!(expired("gemini", Some("/srv/secret"), "2026-05-30T00:00:00Z"));
        assert!(!expired("codex", None, "no time"));
        assert!(!rules.is_empty() && RetentionRules::default().is_empty());
    }
}
