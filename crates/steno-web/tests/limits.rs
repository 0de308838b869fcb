//! Tests the limits for clients, with values small enough to wait for.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use jiff::tz::TimeZone;
use steno_model::Clock;
use steno_store::cost::PriceTable;
use steno_web::{ConnectionLimits, ServerOptions, WebServer};
use tempfile::TempDir;

/// How long to wait for a response before a test fails.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// A server with an empty store, which runs until the test process ends.
struct RunningServer {
    address: SocketAddr,
    cookie: String,
    _store: TempDir,
}

impl RunningServer {
    fn start(limits: ConnectionLimits) -> Self {
        let store = tempfile::tempdir().unwrap();
        let server = WebServer::bind(ServerOptions {
            store: store.path().to_owned(),
            zone: TimeZone::UTC,
            clock: Clock::system(),
            prices: PriceTable::default(),
            budgets: Default::default(),
            boot: None,
            address: "127.0.0.1:0".parse().unwrap(),
            history: None,
            resume: Some(std::sync::Arc::new(|_, _| Err("not in this test".to_owned()))),
            team: None,
            limits,
        })
        .unwrap();
        let url = server.url();
        let (address, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        let address: SocketAddr = address.parse().unwrap();
        let cookie = format!("steno-{}={token}", address.port());
        thread::spawn(move || server.run());
        Self { address, cookie, _store: store }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT)).unwrap();
        stream
    }

    /// Sends a request with the token, and `body`.
    fn send(&self, request: &str, headers: &str, body: &str) -> TcpStream {
        let (address, cookie) = (self.address, &self.cookie);
        let mut stream = self.connect();
        let head = format!(
            "{request} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nCookie: {cookie}\r\n{headers}\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        stream
    }

    fn status(&self, request: &str) -> u16 {
        status(&mut self.send(request, "Connection: close\r\n", ""))
    }
}

/// The status of the response.
fn status(stream: &mut TcpStream) -> u16 {
    let mut line = [0; 12];
    stream.read_exact(&mut line).unwrap();
    std::str::from_utf8(&line[9..]).unwrap().parse().unwrap()
}

/// Waits until the server has closed the connection.
fn wait_for_close(stream: &mut TcpStream) {
    match stream.read_to_end(&mut Vec::new()) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        closed => drop(closed.unwrap()),
    }
}

fn fast() -> ConnectionLimits {
    let short = Duration::from_millis(200);
    ConnectionLimits { header_timeout: short, body_timeout: short, ..ConnectionLimits::default() }
}

#[test]
fn slow_headers_and_idle_connections_time_out() {
    let server = RunningServer::start(fast());
    wait_for_close(&mut server.connect());
    let mut half = server.connect();
    half.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").unwrap();
    wait_for_close(&mut half);
    let mut idle = server.send("GET /api/sessions", "", "");
    assert_eq!(status(&mut idle), 200);
    wait_for_close(&mut idle);
}

#[test]
fn slow_and_large_bodies_are_refused() {
    let server = RunningServer::start(fast());
    let post = "POST /api/sessions/mine/s/notes";
    let json = "Content-Type: application/json\r\n";
    let mut slow = server.send(post, &format!("{json}Content-Length: 100\r\n"), "{\"text\":");
    assert_eq!(status(&mut slow), 408);
    wait_for_close(&mut slow);
    let mut large = server.send(post, &format!("{json}Content-Length: 1048577\r\n"), "{");
    assert_eq!(status(&mut large), 413);
    let chunk = "x".repeat(1 << 20);
    let body = format!("100001\r\n{chunk}x\r\n0\r\n\r\n");
    let mut chunked = server.send(post, &format!("{json}Transfer-Encoding: chunked\r\n"), &body);
    assert_eq!(status(&mut chunked), 413);
}

#[test]
fn large_headers_are_refused() {
    let server = RunningServer::start(ConnectionLimits::default());
    let mut stream = server.connect();
    // The server may close before it has read everything.
    let _ = stream.write_all(format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(1 << 20)).as_bytes());
    assert_eq!(status(&mut stream), 431);
}

#[test]
fn clients_with_the_token_can_connect_while_others_hold_connections() {
    let limits = ConnectionLimits { unverified_connections: 4, ..ConnectionLimits::default() };
    let server = RunningServer::start(limits);
    let mut held = server.send("GET /api/sessions", "", "");
    assert_eq!(status(&mut held), 200);
    let mut others: Vec<_> = (0..40).map(|_| server.connect()).collect();
    assert_eq!(server.status("GET /api/sessions"), 200);
    // The oldest connection was evicted for a newer one; the one with the token was not.
    wait_for_close(&mut others[0]);
    write!(held, "GET /api/sessions HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut rest = String::new();
    held.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("HTTP/1.1 421"), "{rest}");
}

#[test]
fn a_client_that_reads_nothing_times_out() {
    let limits = ConnectionLimits {
        write_timeout: Duration::from_millis(200),
        ..ConnectionLimits::default()
    };
    let server = RunningServer::start(limits);
    let mut stream = server.send("GET /api/openapi.json", "", "");
    stream.set_write_timeout(Some(RESPONSE_TIMEOUT)).unwrap();
    let (address, cookie) = (server.address, &server.cookie);
    let again =
        format!("GET /api/openapi.json HTTP/1.1\r\nHost: {address}\r\nCookie: {cookie}\r\n\r\n");
    let error = loop {
        if let Err(error) = stream.write_all(again.repeat(1_000).as_bytes()) {
            break error;
        }
    };
    let cut = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(cut.contains(&error.kind()), "{error}");
}

#[test]
fn a_refused_client_is_disconnected() {
    let server = RunningServer::start(ConnectionLimits::default());
    let mut stream = server.connect();
    write!(stream, "GET / HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("HTTP/1.1 401") && answer.contains("connection: close"), "{answer}");
}

#[test]
fn connections_and_event_streams_are_limited() {
    let limits = ConnectionLimits {
        verified_connections: 3,
        event_streams: 2,
        ..ConnectionLimits::default()
    };
    let server = RunningServer::start(limits);
    let mut streams = [0, 1].map(|_| server.send("GET /events", "", ""));
    assert_eq!(streams.each_mut().map(status), [200, 200]);
    assert_eq!(server.status("GET /events"), 503);
    // The server may not have noticed yet that a connection was closed.
    let third = loop {
        let mut third = server.send("GET /api/sessions", "", "");
        if status(&mut third) == 200 {
            break third;
        }
    };
    assert_eq!(server.status("GET /api/sessions"), 503);
    drop((streams, third));
    while server.status("GET /events") == 503 {
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_new_event_stream_continues_with_missed_events() {
    let limits = ConnectionLimits { event_stream_lifetime: Duration::from_millis(600), ..fast() };
    let server = RunningServer::start(limits);
    let read = |headers: &str| {
        let mut stream = server.send("GET /events", &format!("{headers}Connection: close\r\n"), "");
        let mut events = String::new();
        stream.read_to_string(&mut events).unwrap();
        events
    };
    let first = read("");
    assert!(first.contains("id: ") && !first.contains("data: changed"), "{first}");
    // The stream ended properly; it was not cut.
    assert!(first.ends_with("\r\n0\r\n\r\n"), "{first}");
    assert!(read("Last-Event-ID: 1.1-1.1\r\n").contains("data: changed"));
}
