//! A scripted model on loopback, and a client that records every byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct ModelRequest {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl ModelRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// The connection for a response.
pub(crate) struct Reply<'a> {
    stream: &'a mut TcpStream,
}

impl Reply<'_> {
    /// Sends a whole response.
    pub(crate) fn json(&mut self, status: &str, body: &serde_json::Value) {
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nX-Request-Id: req_1\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.raw((head + &body).as_bytes());
    }

    /// Sends the header of a stream.
    pub(crate) fn begin(&mut self) {
        self.raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Odd-CASE: yes\r\nSet-Cookie: id=cookie-secret-1\r\nTransfer-Encoding: chunked\r\n\r\n");
    }

    /// Sends one chunk.
    pub(crate) fn chunk(&mut self, data: &str) {
        self.raw(format!("{:X}\r\n{data}\r\n", data.len()).as_bytes());
    }

    /// Sends the last chunk.
    pub(crate) fn end(&mut self) {
        self.raw(b"0\r\n\r\n");
    }

    /// Sends raw bytes.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        // The client may have closed the connection.
        let _ = self.stream.write_all(bytes);
        let _ = self.stream.flush();
    }
}

/// Script of a model's responses.
type Script = dyn Fn(&ModelRequest, &mut Reply<'_>) + Send + Sync;

/// A scripted server; it ends with the test process.
pub(crate) struct Model {
    pub(crate) address: SocketAddr,
    pub(crate) asked: Arc<Mutex<Vec<ModelRequest>>>,
}

impl Model {
    pub(crate) fn start(
        script: impl Fn(&ModelRequest, &mut Reply<'_>) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (script, asked): (Arc<Script>, _) = (Arc::new(script), Arc::default());
        let model = Self { address, asked: Arc::clone(&asked) };
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (script, asked) = (Arc::clone(&script), Arc::clone(&asked));
                thread::spawn(move || serve(stream, &script, &asked));
            }
        });
        model
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Answers one request and closes the connection.
fn serve(mut stream: TcpStream, script: &Arc<Script>, asked: &Mutex<Vec<ModelRequest>>) {
    stream.set_nodelay(true).unwrap();
    let mut input = BufReader::new(stream.try_clone().unwrap());
    while let Some(request) = read_request(&mut input) {
        asked.lock().unwrap().push(request.clone());
        script(&request, &mut Reply { stream: &mut stream });
        if request.header("x-cut").is_some() {
            return;
        }
    }
}

fn read_request(input: &mut impl BufRead) -> Option<ModelRequest> {
    let mut line = String::new();
    input.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        input.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let mut asked = ModelRequest { line: line.trim_end().to_owned(), headers, body: Vec::new() };
    if asked.header("transfer-encoding").is_some() {
        asked.body = read_chunks(input)?;
        return Some(asked);
    }
    let length = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
    asked.body = vec![0; length];
    input.read_exact(&mut asked.body).ok()?;
    Some(asked)
}

/// Reads a chunked body and its trailer.
fn read_chunks(input: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let length = usize::from_str_radix(line.trim(), 16).ok()?;
        if length == 0 {
            break;
        }
        let start = body.len();
        body.resize(start + length + 2, 0);
        input.read_exact(&mut body[start..]).ok()?;
        body.truncate(start + length);
    }
    let mut line = String::new();
    while input.read_line(&mut line).ok()? > 2 {
        line.clear();
    }
    Some(body)
}

/// A response that is being read.
pub(crate) struct Answer {
    stream: TcpStream,
    /// All bytes received so far.
    pub(crate) raw: Vec<u8>,
}

impl Answer {
    /// Reads until a text has arrived.
    pub(crate) fn until(&mut self, text: &str) {
        let mut buffer = [0; 4096];
        while !self.text().contains(text) {
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "no more than: {}", self.text());
            self.raw.extend_from_slice(&buffer[..count]);
        }
    }

    /// Reads to the end.
    pub(crate) fn whole(mut self) -> String {
        let _ = self.stream.read_to_end(&mut self.raw);
        self.text()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }
}

/// Posts JSON to a URL, with further headers.
pub(crate) fn post(url: &str, headers: &[(&str, &str)], body: &serde_json::Value) -> Answer {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    post_bytes(host, path, headers, body.to_string().as_bytes())
}

/// Posts bytes, compressed or not.
pub(crate) fn post_bytes(host: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let named = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let mut head = format!("POST /{path} HTTP/1.1\r\n");
    if !named("host") {
        head += &format!("Host: {host}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    send(host, [head.as_bytes(), body].concat())
}

/// Sends raw bytes.
pub(crate) fn send(host: &str, bytes: impl AsRef<[u8]>) -> Answer {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(bytes.as_ref()).unwrap();
    Answer { stream, raw: Vec::new() }
}

/// Parses the JSON body of a response.
pub(crate) fn body(answer: &str) -> serde_json::Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}
