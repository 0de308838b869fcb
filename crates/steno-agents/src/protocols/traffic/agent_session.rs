//! Identifies the agent session of a request by its headers.
//!
//! Claude Code, Codex and OpenCode send the id of the session that they also write to disk, so the gateway's recording
//! joins the agent's own session files.

use std::borrow::Cow;

use serde::Deserialize;

use super::piece::HttpHeaders;
use steno_model::session::SessionId;

/// An agent's session, as named by a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgentSession {
    /// The agent, by the name of its reader.
    pub agent: &'static str,
    /// The agent's own id for the session.
    pub native_id: String,
}

/// How one agent names its sessions.
struct SessionHeaders {
    agent: &'static str,
    /// Prefix of the `user-agent` or `originator` header; empty if the session headers are specific enough.
    program: &'static str,
    /// Prefix of headers that only this agent sends. Codex takes the name of the program that drives it.
    own_headers: Option<&'static str>,
    /// Headers with the session id, the most specific first.
    names: &'static [&'static str],
}

const SESSION_HEADERS: [SessionHeaders; 3] = [
    SessionHeaders {
        agent: "claude-code",
        program: "",
        own_headers: None,
        names: &["x-claude-code-session-id"],
    },
    SessionHeaders {
        agent: "codex",
        program: "codex",
        own_headers: Some("x-codex-"),
        // A thread has its own session file, even if another session started it.
        names: &["thread-id", "session-id", "session_id", "conversation_id"],
    },
    SessionHeaders {
        agent: "opencode",
        program: "opencode/",
        own_headers: None,
        names: &["x-opencode-session", "x-session-id", "x-session-affinity"],
    },
];

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
        let known = SESSION_HEADERS.iter().filter(|known| {
            known.program.is_empty()
                || is_program(known.program)
                || known.own_headers.is_some_and(has_own)
        });
        known.flat_map(|known| known.names.iter().map(move |name| (known.agent, name))).find_map(
            |(agent, name)| {
                // Ignores values that are not valid session ids.
                let native_id = value(name)?.parse::<SessionId>().ok()?.to_string();
                Some(Self { agent, native_id })
            },
        )
    }

    /// The session that a request names in its headers or body. Versions of Claude Code without the header put the id
    /// at the end of the user id.
    pub fn from_request(headers: &HttpHeaders, body: &[u8]) -> Option<Self> {
        let is_claude = |(name, value): &(String, String)| {
            name.eq_ignore_ascii_case("user-agent") && value.starts_with("claude-cli/")
        };
        Self::from_headers(headers)
            .or_else(|| headers.iter().any(is_claude).then(|| Self::from_user_id(body)).flatten())
    }

    fn from_user_id(body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct ClaudeRequestBody<'a> {
            #[serde(borrow)]
            metadata: ClaudeRequestMetadata<'a>,
        }
        #[derive(Deserialize)]
        struct ClaudeRequestMetadata<'a> {
            #[serde(borrow)]
            user_id: Cow<'a, str>,
        }
        let user_id = serde_json::from_slice::<ClaudeRequestBody<'_>>(body).ok()?.metadata.user_id;
        let (_, native_id) = user_id.rsplit_once("_session_")?;
        let native_id = native_id.parse::<SessionId>().ok()?.to_string();
        Some(Self { agent: "claude-code", native_id })
    }

    /// Whether an agent's requests name their session.
    pub fn agent_names_sessions(agent: &str) -> bool {
        SESSION_HEADERS.iter().any(|known| known.agent == agent)
    }

    /// The session's id in the vault.
    pub fn session_id(&self) -> SessionId {
        SessionId::for_native(self.agent, &self.native_id)
    }
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
