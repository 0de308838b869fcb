//! How the requests of an agent name the session that they belong to.

/// Reads a session id from the headers and body of a request.
pub type ReadSessionId = fn(&[(String, String)], &[u8]) -> Option<String>;

/// How one agent names its sessions in requests.
#[derive(Debug)]
pub struct SessionHeaders {
    /// Prefix of the `user-agent` or `originator` header; empty if the session headers are specific enough.
    pub program: &'static str,
    /// Prefix of headers that only this agent sends. Codex takes the name of the program that drives it.
    pub own_headers: Option<&'static str>,
    /// Headers with the session id, the most specific first.
    pub names: &'static [&'static str],
    /// Reads the session id of a request that has none of these headers.
    pub from_body: Option<ReadSessionId>,
}
