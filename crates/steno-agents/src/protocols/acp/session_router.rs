//! Assigns each line of a connection to a session. Every session's log is complete: it starts with the lines that
//! opened the connection.

use std::collections::{HashMap, HashSet};

use super::message_header::AcpMessageHeader;
use super::wire::{AcpSide, WireLine};
use steno_model::timestamp::Timestamp;

/// A line and when it was forwarded.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardedLine {
    /// When the line was forwarded.
    pub at: Timestamp,
    /// The line.
    pub wire: WireLine,
}

/// A line and the session id it belongs to.
pub type RoutedLine = (String, ForwardedLine);

/// Routes the lines of one connection to its sessions.
#[derive(Debug, Default)]
pub struct SessionRouter {
    /// The lines that opened the connection.
    opening: Vec<ForwardedLine>,
    /// Lines that arrived before any session had an id.
    waiting_lines: Vec<ForwardedLine>,
    /// Size of the waiting lines.
    waiting_bytes: usize,
    /// Requests without a response yet, by sender and request id.
    pending_requests: HashMap<(AcpSide, String), RequestContext>,
    seen: HashSet<String>,
    /// The session of the most recent line.
    current: Option<String>,
}

#[derive(Debug)]
enum RequestContext {
    /// A request in a session, or without one.
    InSession(Option<String>),
    /// The `initialize` request.
    Initialize,
    /// A request for a new session, which has no id yet.
    NewSession(Box<ForwardedLine>),
}

impl SessionRouter {
    /// Routes a line by its header. Returns all lines that can be assigned now, in order.
    pub fn route_line(
        &mut self,
        address: Option<&AcpMessageHeader<'_>>,
        line: ForwardedLine,
    ) -> Vec<RoutedLine> {
        let Some(AcpMessageHeader { method, id, session }) = address else {
            return self.route_general(line);
        };
        let (id, session) = (id.map(str::to_owned), session.as_deref());
        match (method, id) {
            (Some(method), id) => self.route_request(line, method, id, session),
            (None, Some(id)) => self.route_response(line, id, session),
            (None, None) => self.route_general(line),
        }
    }

    /// The current session, if the line is a notification in it. Such a line needs no bookkeeping.
    pub fn current_session_of(&self, address: &AcpMessageHeader<'_>) -> Option<&str> {
        let is_told = address.method.is_some() && address.id.is_none();
        let current = self.current.as_deref()?;
        (is_told && address.session.as_deref() == Some(current)).then_some(current)
    }

    /// The lines that belong to no session, in order of arrival.
    pub fn unrouted_lines(self) -> Vec<ForwardedLine> {
        let mut rest = if self.seen.is_empty() { self.opening } else { Vec::new() };
        rest.extend(self.waiting_lines);
        let requests = self.pending_requests.into_values();
        rest.extend(requests.filter_map(|request| match request {
            RequestContext::NewSession(line) => Some(*line),
            RequestContext::InSession(_) | RequestContext::Initialize => None,
        }));
        rest.sort_by_key(|line| line.at.instant());
        rest
    }

    /// Size in bytes of the lines that wait for a session.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Assigns the waiting lines, and all later lines without a session id, to this session.
    pub fn assign_waiting(&mut self, session: &str) -> Vec<RoutedLine> {
        self.begin_session(session)
    }

    fn route_request(
        &mut self,
        line: ForwardedLine,
        method: &str,
        id: Option<String>,
        session: Option<&str>,
    ) -> Vec<RoutedLine> {
        let key = id.map(|id| (line.wire.side, id));
        match (method, key) {
            ("initialize", Some(key)) => {
                self.pending_requests.insert(key, RequestContext::Initialize);
                self.opening.clear();
                self.route_opening(line)
            }
            ("session/new" | "session/fork", Some(key)) => {
                self.pending_requests.insert(key, RequestContext::NewSession(Box::new(line)));
                Vec::new()
            }
            (_, key) => {
                self.pending_requests.extend(
                    key.map(|key| (key, RequestContext::InSession(session.map(str::to_owned)))),
                );
                match session {
                    Some(session) => self.route_to_session(session, [line]),
                    None => self.route_general(line),
                }
            }
        }
    }

    fn route_response(
        &mut self,
        line: ForwardedLine,
        id: String,
        named: Option<&str>,
    ) -> Vec<RoutedLine> {
        match (self.pending_requests.remove(&(line.wire.side.opposite(), id)), named) {
            (Some(RequestContext::Initialize), _) => self.route_opening(line),
            (Some(RequestContext::NewSession(request)), Some(session)) => {
                self.route_to_session(session, [*request, line])
            }
            (Some(RequestContext::NewSession(request)), None) => {
                let mut placed = self.route_general(*request);
                placed.extend(self.route_general(line));
                placed
            }
            (Some(RequestContext::InSession(Some(session))), _) => {
                self.route_to_session(&session, [line])
            }
            (_, Some(session)) => self.route_to_session(session, [line]),
            _ => self.route_general(line),
        }
    }

    /// Opening lines belong to all later sessions. They also belong to the current session, if the client named one
    /// before the response to `initialize` arrived.
    fn route_opening(&mut self, line: ForwardedLine) -> Vec<RoutedLine> {
        self.opening.push(line.clone());
        self.current.clone().map(|session| (session, line)).into_iter().collect()
    }

    /// A line without a session id belongs to the current session.
    fn route_general(&mut self, line: ForwardedLine) -> Vec<RoutedLine> {
        match self.current.clone() {
            Some(session) => vec![(session, line)],
            None => {
                self.waiting_bytes += line.wire.bytes.len();
                self.waiting_lines.push(line);
                Vec::new()
            }
        }
    }

    fn route_to_session<const N: usize>(
        &mut self,
        session: &str,
        lines: [ForwardedLine; N],
    ) -> Vec<RoutedLine> {
        let mut placed = self.begin_session(session);
        placed.extend(lines.map(|line| (session.to_owned(), line)));
        placed
    }

    fn begin_session(&mut self, session: &str) -> Vec<RoutedLine> {
        self.current = Some(session.to_owned());
        if !self.seen.insert(session.to_owned()) {
            return Vec::new();
        }
        self.waiting_bytes = 0;
        let lines = self.opening.iter().cloned().chain(self.waiting_lines.drain(..));
        lines.map(|line| (session.to_owned(), line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::message_header::parse_agent_name;
    use super::*;

    fn line(side: AcpSide, text: &str) -> ForwardedLine {
        let at = "2026-01-05T09:15:32Z".parse().unwrap();
        ForwardedLine { at, wire: WireLine { side, bytes: text.as_bytes().to_vec() } }
    }

    fn placed(router: &mut SessionRouter, side: AcpSide, text: &str) -> Vec<(String, String)> {
        let text_of = |line: ForwardedLine| String::from_utf8(line.wire.bytes).unwrap();
        let address = AcpMessageHeader::parse(text.as_bytes());
        let placed = router.route_line(address.as_ref(), line(side, text)).into_iter();
        placed.map(|(session, line)| (session, text_of(line))).collect()
    }

    #[test]
    fn each_session_has_all_of_its_lines() {
        let (mut router, client, agent) =
            (SessionRouter::default(), AcpSide::Client, AcpSide::Agent);
        let init = r#"{"id":0,"method":"initialize","params":{}}"#;
        let ready = r#"{"id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"x"}}}"#;
        let new = r#"{"id":1,"method":"session/new","params":{}}"#;
        let ask = r#"{"id":1,"method":"session/request_permission","params":{"sessionId":"a"}}"#;
        assert_eq!(placed(&mut router, client, init), []);
        assert_eq!(placed(&mut router, agent, ready), []);
        assert_eq!(placed(&mut router, agent, "noise"), []);
        assert_eq!(placed(&mut router, client, new), []);
        let named = r#"{"id":1,"result":{"sessionId":"a"}}"#;
        let all = placed(&mut router, agent, named);
        let texts: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, [init, ready, "noise", new, named]);
        // Both sides number their requests from 1.
        assert_eq!(placed(&mut router, agent, ask), [("a".into(), ask.into())]);
        let other = r#"{"id":"1","method":"session/load","params":{"sessionId":"b"}}"#;
        let texts: Vec<_> =
            placed(&mut router, client, other).into_iter().map(|(_, t)| t).collect();
        assert_eq!(texts, [init, ready, other]);
        let yes = r#"{"id":1,"result":{"outcome":{"outcome":"cancelled"}}}"#;
        assert_eq!(placed(&mut router, client, yes), [("a".into(), yes.into())]);
        assert_eq!(parse_agent_name(ready.as_bytes()).as_deref(), Some("x"));
    }

    #[test]
    fn a_client_need_not_wait_for_the_connection_to_be_open() {
        let (mut router, client, agent) =
            (SessionRouter::default(), AcpSide::Client, AcpSide::Agent);
        let init = r#"{"id":0,"method":"initialize","params":{}}"#;
        let prompt = r#"{"id":1,"method":"session/prompt","params":{"sessionId":"a"}}"#;
        let ready = r#"{"id":0,"result":{"protocolVersion":1}}"#;
        assert_eq!(placed(&mut router, client, init), []);
        let texts: Vec<_> =
            placed(&mut router, client, prompt).into_iter().map(|(_, t)| t).collect();
        assert_eq!(texts, [init, prompt]);
        assert_eq!(placed(&mut router, agent, ready), [("a".into(), ready.into())]);
        let load = r#"{"id":2,"method":"session/load","params":{"sessionId":"b"}}"#;
        let texts: Vec<_> = placed(&mut router, client, load).into_iter().map(|(_, t)| t).collect();
        assert_eq!(texts, [init, ready, load]);
    }

    #[test]
    fn keeps_lines_without_a_session() {
        let mut router = SessionRouter::default();
        let lines = [r#"{"id":1,"method":"session/new"}"#, "x", "[1]"];
        for text in lines {
            assert_eq!(placed(&mut router, AcpSide::Client, text), []);
        }
        let rest = router.unrouted_lines();
        assert_eq!(rest.len(), lines.len());
    }
}
