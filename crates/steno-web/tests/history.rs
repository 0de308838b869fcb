//! Agents ask over HTTP: only with the token, from this machine's names, and not from pages of others.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use jiff::tz::TimeZone;
use steno_mcp::{HistoryOptions, HistoryScope};
use steno_model::Clock;
use steno_store::StoreLocation;
use steno_store::cost::PriceTable;
use steno_store::sync::SessionSyncer;
use steno_web::{ConnectionLimits, ServerOptions, WebServer};
use tempfile::TempDir;

/// A server with a session of the project `/p` and one of `/q`.
struct HistoryWebServer {
    address: SocketAddr,
    token: String,
    _folder: TempDir,
}

impl HistoryWebServer {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = StoreLocation::new(folder.path().join("store"), Clock::system());
        for (id, project) in [("s1", "/p"), ("s2", "/q")] {
            let line = format!(
                r#"{{"type":"user","sessionId":"{id}","uuid":"{id}","cwd":"{project}","message":{{"role":"user","content":"heron {id}"}}}}"#
            );
            fs::write(folder.path().join(format!("{id}.jsonl")), format!("{line}\n")).unwrap();
        }
        SessionSyncer::new(store.clone()).unwrap().sync_folder(folder.path()).unwrap();
        let server = WebServer::bind(ServerOptions {
            store: store.folder.clone(),
            zone: TimeZone::UTC,
            clock: Clock::system(),
            prices: PriceTable::default(),
            budgets: Default::default(),
            boot: None,
            address: "127.0.0.1:0".parse().unwrap(),
            history: Some(HistoryOptions {
                store,
                scope: HistoryScope::Project(PathBuf::from("/p")),
                privacy: Default::default(),
                prices: PriceTable::default(),
                zone: TimeZone::UTC,
                before_call: Arc::new(|| ()),
                team: None,
            }),
            resume: None,
            team: None,
            limits: ConnectionLimits::default(),
        })
        .unwrap();
        let url = server.url();
        let (address, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        let (address, token) = (address.parse().unwrap(), token.to_owned());
        thread::spawn(move || server.run());
        Self { address, token, _folder: folder }
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    /// Sends a search with these headers; returns the whole response.
    fn search(&self, path: &str, headers: &str) -> String {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_agent_history","arguments":{"query":"heron"}}}"#;
        self.post(path, headers, body)
    }

    fn post(&self, path: &str, headers: &str, body: &str) -> String {
        let host = if headers.contains("Host:") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.address)
        };
        let accept =
            "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n";
        let head = format!(
            "POST {path} HTTP/1.1\r\n{host}{headers}{accept}Connection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }
}

#[track_caller]
fn assert_status(response: &str, status: &str) {
    assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{response}");
}

#[test]
fn an_agent_with_the_token_gets_its_project_or_all() {
    let server = HistoryWebServer::start();
    let response = server.search("/mcp", &server.bearer());
    assert_status(&response, "200");
    assert!(response.contains("1 hit of /p:") && response.contains("heron s1"), "{response}");
    let response = server.search("/mcp/all", &server.bearer());
    assert!(response.contains("2 hits of all projects:"), "{response}");
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let response = server.post("/mcp", &server.bearer(), initialize);
    assert!(response.contains(r#""protocolVersion":"2025-06-18""#), "{response}");
}

#[test]
fn requests_without_the_token_or_from_other_pages_are_refused() {
    let server = HistoryWebServer::start();
    let bearer = server.bearer();
    assert_status(&server.search("/mcp", ""), "403");
    assert_status(&server.search("/mcp", "Authorization: Bearer wrong\r\n"), "403");
    let own = format!("Origin: http://{}\r\n", server.address);
    assert_status(&server.search("/mcp", &own), "401");
    let foreign = format!("{bearer}Origin: http://evil.example\r\n");
    assert_status(&server.search("/mcp", &foreign), "403");
    let rebound = format!("{bearer}Host: evil.example\r\n");
    assert_status(&server.search("/mcp", &rebound), "421");
    // The header changes nothing.
    assert_status(&server.search("/api/sessions/claude-code/s1/notes", &bearer), "403");
}
