//! Identifies the agent session of a request by its headers.
//!
//! Claude Code, Codex and OpenCode send the id of the session that they also write to disk, so the gateway's recording
//! joins the agent's own session files.

use steno_model::session::SessionId;

use crate::agent::session_headers::SessionHeaders;
use crate::protocols::traffic::piece::HttpHeaders;
use crate::registry;

/// An agent's session, as named by a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgentSession {
    /// The agent, by the name of its reader.
    pub agent: &'static str,
    /// The agent's own id for the session.
    pub native_id: String,
}

impl AgentSession {
    /// The session that a request's headers name.
    pub fn from_headers(headers: &HttpHeaders) -> Option<Self> {
        let value = |header: &str| {
            let named = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(header));
            named.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
        };
        let is_program = |beginning: &str| {
            ["user-agent", "originator"]
                .iter()
                .filter_map(|name| value(name))
                .any(|program| program.starts_with(beginning))
        };
        let has_own = |beginning: &str| {
            let begins = |name: &str| name.to_ascii_lowercase().starts_with(beginning);
            headers.iter().any(|(name, _)| begins(name))
        };
        let known = all_session_headers().filter(|(_, known)| {
            known.program.is_empty()
                || is_program(known.program)
                || known.own_headers.is_some_and(has_own)
        });
        let mut ids =
            known.flat_map(|(agent, known)| known.names.iter().map(move |name| (agent, name)));
        // Ignores values that are not valid session ids.
        ids.find_map(|(agent, name)| Self::new(agent, value(name)?))
    }

    /// The session that a request names in its headers or body.
    pub fn from_request(headers: &HttpHeaders, body: &[u8]) -> Option<Self> {
        let in_body = || {
            all_session_headers()
                .find_map(|(agent, known)| Self::new(agent, &known.from_body?(headers, body)?))
        };
        Self::from_headers(headers).or_else(in_body)
    }

    /// `None` if the id is not a valid session id.
    fn new(agent: &'static str, native_id: &str) -> Option<Self> {
        Some(Self { agent, native_id: native_id.parse::<SessionId>().ok()?.to_string() })
    }

    /// Whether an agent's requests name their session.
    pub fn agent_names_sessions(agent: &str) -> bool {
        all_session_headers().any(|(known, _)| known == agent)
    }

    /// The session's id in the vault.
    pub fn session_id(&self) -> SessionId {
        SessionId::for_native(self.agent, &self.native_id)
    }
}

/// The agents that name their sessions in requests.
fn all_session_headers() -> impl Iterator<Item = (&'static str, &'static SessionHeaders)> {
    registry::all_agents().filter_map(|agent| Some((agent.name(), agent.session_headers.as_ref()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(headers: &[(&str, &str)]) -> Option<(&'static str, String)> {
        let headers: HttpHeaders =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        AgentSession::from_headers(&headers).map(|session| (session.agent, session.native_id))
    }

    #[test]
    fn agents_name_their_sessions() {
        let id = "47285798-90b0-4dfa-9151-58a1950ad6ca";
        assert_eq!(
            session(&[("X-Claude-Code-Session-Id", id)]),
            Some(("claude-code", id.to_owned()))
        );
        let codex = [
            ("originator", "codex_exec"),
            ("session-id", "01a1e33a-28b0-7100-8fcd-60894d9c4582"),
            ("thread-id", id),
        ];
        assert_eq!(session(&codex), Some(("codex", id.to_owned())));
        let driven =
            [("originator", "zed"), ("X-Codex-Window-Id", "w:0"), ("Thread-Id", id), ("x", "y")];
        assert_eq!(session(&driven), Some(("codex", id.to_owned())));
        let opencode =
            [("User-Agent", "opencode/1.18.33 ai-sdk"), ("x-session-id", "ses_e1cc58bd1ffe")];
        assert_eq!(session(&opencode), Some(("opencode", "ses_e1cc58bd1ffe".to_owned())));
    }

    #[test]
    fn other_programs_name_none() {
        assert_eq!(session(&[("x-session-id", "abc"), ("user-agent", "python/3")]), None);
        assert_eq!(session(&[("x-claude-code-session-id", "../../x")]), None);
        assert_eq!(session(&[("x-claude-code-session-id", "")]), None);
    }

    #[test]
    fn older_claude_code_names_its_session_in_the_users_id() {
        let id = "47285798-90b0-4dfa-9151-58a1950ad6ca";
        let body = format!(
            r#"{{"model":"m","messages":[],"metadata":{{"user_id":"user_1f_account__session_{id}"}}}}"#
        );
        let session = |program: &str| {
            let headers = vec![("User-Agent".to_owned(), program.to_owned())];
            AgentSession::from_request(&headers, body.as_bytes())
        };
        let named = session("claude-cli/1.0.60 (external, cli)").unwrap();
        assert_eq!((named.agent, named.native_id.as_str()), ("claude-code", id));
        assert_eq!(session("python/3"), None);
    }
}
