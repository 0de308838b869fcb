//! The session id in a request of Claude Code: versions without a header for it put it at the end of the user id.

use std::borrow::Cow;

use serde::Deserialize;

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

/// Reads the session id in the body of a request. `None` for a request of another program.
pub(super) fn session_id_in_body(headers: &[(String, String)], body: &[u8]) -> Option<String> {
    let is_claude = |(name, value): &(String, String)| {
        name.eq_ignore_ascii_case("user-agent") && value.starts_with("claude-cli/")
    };
    if !headers.iter().any(is_claude) {
        return None;
    }
    let user_id = serde_json::from_slice::<ClaudeRequestBody<'_>>(body).ok()?.metadata.user_id;
    let (_, session_id) = user_id.rsplit_once("_session_")?;
    Some(session_id.to_owned())
}
