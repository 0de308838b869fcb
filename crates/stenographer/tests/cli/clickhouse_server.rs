//! A stand-in for a ClickHouse server (`scripts/clickhouse_server.py`), which needs a Python with chdb-core.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::python_tools::python_with;

/// A running server with an empty database `steno`.
pub(crate) struct ClickHouseServer {
    _folder: TempDir,
    child: Child,
    port: u16,
}

impl ClickHouseServer {
    /// Starts a server; `None` without chdb-core.
    pub(crate) fn start(password: Option<&str>) -> Option<Self> {
        let python = python_with("chdb")?;
        let folder = tempfile::tempdir().unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/clickhouse_server.py");
        let mut command = Command::new(python);
        command.arg(script).arg(folder.path().join("data"));
        command.args(password.map(|password| format!("--password={password}")));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().expect("the server prints its port");
        Some(Self { _folder: folder, child, port })
    }

    /// The URL of the database for an organisation.
    pub(crate) fn url(&self, org: &str) -> String {
        format!("clickhouse+http://loader@127.0.0.1:{}/steno?org={org}", self.port)
    }

    /// The answer to a query, as text with tabs.
    pub(crate) fn sql(&self, query: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let length = query.len();
        write!(
            stream,
            "POST /?database=steno HTTP/1.1\r\nHost: db\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{query}"
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{query}: {body}");
        body.to_owned()
    }
}

impl Drop for ClickHouseServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
