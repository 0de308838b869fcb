//! Assigns each line of a connection to a session. Every session's log is complete: it starts with the lines that
//! opened the connection.

use std::collections::{HashMap, HashSet};

use super::address::Address;
use super::wire::{Side, Wire};
use crate::timestamp::Timestamp;

/// A line and when it was forwarded.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// When the line was forwarded.
    pub at: Timestamp,
    /// The line.
    pub wire: Wire,
}

/// A line and the session id it belongs to.
pub type Placed = (String, Line);

/// Routes the lines of one connection to its sessions.
#[derive(Debug, Default)]
pub struct Router {
    /// The lines that opened the connection.
    opening: Vec<Line>,
    /// Lines that arrived before any session had an id.
    waiting: Vec<Line>,
    /// Size of the waiting lines.
    waiting_bytes: usize,
    /// Requests without a response yet, by sender and request id.
    asked: HashMap<(Side, String), Asked>,
    seen: HashSet<String>,
    /// The session of the most recent line.
    current: Option<String>,
}

#[derive(Debug)]
enum Asked {
    /// A request in a session, or without one.
    In(Option<String>),
    /// The `initialize` request.
    Opening,
    /// A request for a new session, which has no id yet.
    New(Box<Line>),
}

impl Router {
    /// Routes a line by its header. Returns all lines that can be assigned now, in order.
    pub fn place(&mut self, address: Option<&Address<'_>>, line: Line) -> Vec<Placed> {
        let Some(Address { method, id, session }) = address else {
            return self.general(line);
        };
        let (id, session) = (id.map(str::to_owned), session.as_deref());
        match (method, id) {
            (Some(method), id) => self.call(line, method, (id, session)),
            (None, Some(id)) => self.answer(line, id, session),
            (None, None) => self.general(line),
        }
    }

    /// The current session, if the line is a notification in it. Such a line needs no bookkeeping.
    pub fn running(&self, address: &Address<'_>) -> Option<&str> {
        let is_told = address.method.is_some() && address.id.is_none();
        let current = self.current.as_deref()?;
        (is_told && address.session.as_deref() == Some(current)).then_some(current)
    }

    /// The lines that belong to no session, in order of arrival.
    pub fn rest(self) -> Vec<Line> {
        let mut rest = if self.seen.is_empty() { self.opening } else { Vec::new() };
        rest.extend(self.waiting);
        let requests = self.asked.into_values();
        rest.extend(requests.filter_map(|request| match request {
            Asked::New(line) => Some(*line),
            Asked::In(_) | Asked::Opening => None,
        }));
        rest.sort_by_key(|line| line.at.instant());
        rest
    }

    /// Size in bytes of the lines that wait for a session.
    pub fn waiting(&self) -> usize {
        self.waiting_bytes
    }

    /// Assigns the waiting lines, and all later lines without a session id, to this session.
    pub fn settle(&mut self, session: &str) -> Vec<Placed> {
        self.begin(session)
    }

    fn call(
        &mut self,
        line: Line,
        method: &str,
        (id, session): (Option<String>, Option<&str>),
    ) -> Vec<Placed> {
        let key = id.map(|id| (line.wire.side, id));
        match (method, key) {
            ("initialize", Some(key)) => {
                self.asked.insert(key, Asked::Opening);
                self.opening.clear();
                self.open(line)
            }
            ("session/new" | "session/fork", Some(key)) => {
                self.asked.insert(key, Asked::New(Box::new(line)));
                Vec::new()
            }
            (_, key) => {
                self.asked.extend(key.map(|key| (key, Asked::In(session.map(str::to_owned)))));
                match session {
                    Some(session) => self.of(session, [line]),
                    None => self.general(line),
                }
            }
        }
    }

    fn answer(&mut self, line: Line, id: String, named: Option<&str>) -> Vec<Placed> {
        match (self.asked.remove(&(line.wire.side.other(), id)), named) {
            (Some(Asked::Opening), _) => self.open(line),
            (Some(Asked::New(request)), Some(session)) => self.of(session, [*request, line]),
            (Some(Asked::New(request)), None) => {
                let mut placed = self.general(*request);
                placed.extend(self.general(line));
                placed
            }
            (Some(Asked::In(Some(session))), _) => self.of(&session, [line]),
            (_, Some(session)) => self.of(session, [line]),
            _ => self.general(line),
        }
    }

    /// Opening lines belong to all later sessions. They also belong to the current session, if the client named one
    /// before the response to `initialize` arrived.
    fn open(&mut self, line: Line) -> Vec<Placed> {
        self.opening.push(line.clone());
        self.current.clone().map(|session| (session, line)).into_iter().collect()
    }

    /// A line without a session id belongs to the current session.
    fn general(&mut self, line: Line) -> Vec<Placed> {
        match self.current.clone() {
            Some(session) => vec![(session, line)],
            None => {
                self.waiting_bytes += line.wire.bytes.len();
                self.waiting.push(line);
                Vec::new()
            }
        }
    }

    fn of<const N: usize>(&mut self, session: &str, lines: [Line; N]) -> Vec<Placed> {
        let mut placed = self.begin(session);
        placed.extend(lines.map(|line| (session.to_owned(), line)));
        placed
    }

    fn begin(&mut self, session: &str) -> Vec<Placed> {
        self.current = Some(session.to_owned());
        if !self.seen.insert(session.to_owned()) {
            return Vec::new();
        }
        self.waiting_bytes = 0;
        let lines = self.opening.iter().cloned().chain(self.waiting.drain(..));
        lines.map(|line| (session.to_owned(), line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::agent_name;
    use super::*;

    fn line(side: Side, text: &str) -> Line {
        let at = "2026-01-05T09:15:32Z".parse().unwrap();
        Line { at, wire: Wire { side, bytes: text.as_bytes().to_vec() } }
    }

    fn placed(router: &mut Router, side: Side, text: &str) -> Vec<(String, String)> {
        let text_of = |line: Line| String::from_utf8(line.wire.bytes).unwrap();
        let address = Address::of(text.as_bytes());
        let placed = router.place(address.as_ref(), line(side, text)).into_iter();
        placed.map(|(session, line)| (session, text_of(line))).collect()
    }

    #[test]
    fn each_session_has_all_of_its_lines() {
        let (mut router, client, agent) = (Router::default(), Side::Client, Side::Agent);
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
        assert_eq!(agent_name(ready.as_bytes()).as_deref(), Some("x"));
    }

    #[test]
    fn a_client_need_not_wait_for_the_connection_to_be_open() {
        let (mut router, client, agent) = (Router::default(), Side::Client, Side::Agent);
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
    fn what_has_no_session_is_not_lost() {
        let mut router = Router::default();
        let lines = [r#"{"id":1,"method":"session/new"}"#, "x", "[1]"];
        for text in lines {
            assert_eq!(placed(&mut router, Side::Client, text), []);
        }
        let rest = router.rest();
        assert_eq!(rest.len(), lines.len());
    }
}
