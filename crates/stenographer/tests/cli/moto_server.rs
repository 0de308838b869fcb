//! A server that speaks the protocol of S3 for a test: moto, from PyPI, on a free port and with one bucket.
//!
//! `STENO_MOTO` is the path of `moto_server`, or `required` for the one on `PATH`. Without the variable, tests that need
//! the server print a notice and pass.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running server. It checks no credentials.
pub(crate) struct MotoServer {
    child: Child,
    port: u16,
}

impl MotoServer {
    /// Starts a server with an empty bucket `team`; `None` without the program.
    pub(crate) fn start() -> Option<Self> {
        let named = std::env::var("STENO_MOTO").unwrap_or_default();
        let program = match named.as_str() {
            "" => {
                eprintln!("left out: STENO_MOTO names no moto_server");
                return None;
            }
            "required" => "moto_server",
            path => path,
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("STENO_MOTO names a moto_server that can be started");
        let mut server = Self { child, port };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert_eq!(server.child.try_wait().unwrap(), None, "moto_server has ended");
            std::thread::sleep(Duration::from_millis(50));
        }
        server.request("PUT", "/team", b"");
        Some(server)
    }

    /// The variables with which Steno finds the server.
    pub(crate) fn client_variables(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_ACCESS_KEY_ID", "team-id"),
            ("AWS_SECRET_ACCESS_KEY", "team-password"),
            ("AWS_REGION", "us-east-1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    /// Sends a request. Returns the body of the answer.
    pub(crate) fn request(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: AWS team-id:none\r\n\
             Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let status = String::from_utf8_lossy(&answer[..answer.len().min(15)]).into_owned();
        assert!(status.contains(" 20"), "{method} {path}: {status}");
        let end = memchr::memmem::find(&answer, b"\r\n\r\n").unwrap();
        answer.split_off(end + 4)
    }

    /// The names of all objects.
    pub(crate) fn object_names(&self) -> Vec<String> {
        let listed = self.request("GET", "/team?list-type=2&max-keys=10000", b"");
        let listed = String::from_utf8(listed).unwrap();
        assert!(listed.contains("<IsTruncated>false"), "{listed}");
        let names = listed.split("<Key>").skip(1);
        names.map(|rest| rest.split("</Key>").next().unwrap().to_owned()).collect()
    }

    /// All objects with their names.
    pub(crate) fn objects(&self) -> Vec<(String, Vec<u8>)> {
        let names = self.object_names().into_iter();
        names
            .map(|name| {
                let bytes = self.request("GET", &format!("/team/{name}"), b"");
                (name, bytes)
            })
            .collect()
    }
}

impl Drop for MotoServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
