//! Upstreams with TLS.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use crate::gateway::{Server, said};
use crate::harness::Home;
use crate::model::{body, post};

/// A model with an unknown certificate. Returns its port and certificate.
fn model() -> (u16, String) {
    model_with(CertificateParams::new(["localhost".to_owned()]).unwrap())
}

/// A model with a self-signed certificate.
fn model_with(params: CertificateParams) -> (u16, String) {
    let pair = KeyPair::generate().unwrap();
    let cert = params.self_signed(&pair).unwrap();
    let key = PrivateKeyDer::try_from(pair.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![cert.der().clone()], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(connection, stream));
            let _ = answer(&mut stream);
        }
    });
    (port, cert.pem())
}

fn answer(stream: &mut BufReader<impl Read + Write>) -> std::io::Result<()> {
    let (mut length, mut path) = (0, String::new());
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if path.is_empty() {
            path.clone_from(&line);
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    stream.read_exact(&mut vec![0; length])?;
    let body = json!({"id": "c", "object": "chat.completion", "model": "m-1", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Safe."}, "finish_reason": "stop"}]});
    let body = body.to_string();
    // The connection is then closed without a TLS close message.
    let length = match path {
        path if path.contains("/unstated/") => "Connection: close".to_owned(),
        path if path.contains("/short/") => format!("Content-Length: {}", body.len() + 1),
        _ => format!("Content-Length: {}", body.len()),
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{length}\r\n\r\n");
    stream.get_mut().write_all((head + &body).as_bytes())?;
    stream.get_mut().flush()
}

/// A gateway to the model at a port.
fn gateway(home: &Home, port: u16) -> Command {
    let upstream = format!("openai=https://localhost:{port}");
    home.command(&["gateway", "--listen", "127.0.0.1:0", "--session", "s", "--upstream", &upstream])
}

#[test]
fn a_certificate_is_checked() {
    let (port, certificate) = model();
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    for (trusted, status) in [(true, "HTTP/1.1 200 "), (false, "HTTP/1.1 502 ")] {
        let home = Home::new();
        let mut command = gateway(&home, port);
        if trusted {
            command.env("SSL_CERT_FILE", home.file("own.pem", &certificate));
        }
        let gateway = Server::start(command);
        let url = format!("{}/v1/chat/completions", gateway.url);
        let answer = post(&url, &[("Connection", "close")], &request).whole();
        assert!(answer.starts_with(status), "{answer}");
        if trusted {
            assert_eq!(said(&home, "s"), ["primary user: Hi", "primary assistant: Safe."]);
        } else {
            let reason = body(&answer)["error"]["message"].to_string();
            assert!(reason.contains("certificate"), "{reason}");
        }
    }
}

/// Returns the response of a gateway that trusts the certificate `trusted`, for the model at a port.
fn asked(port: u16, trusted: &str) -> String {
    asked_at(port, trusted, "/v1/chat/completions")
}

fn asked_at(port: u16, trusted: &str, path: &str) -> String {
    let home = Home::new();
    let mut command = gateway(&home, port);
    command.env("SSL_CERT_FILE", home.file("own.pem", trusted));
    let gateway = Server::start(command);
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let url = format!("{}{path}", gateway.url);
    post(&url, &[("Connection", "close")], &request).whole()
}

#[test]
fn an_answer_may_end_without_a_goodbye_unless_some_of_it_is_missing() {
    let (port, certificate) = model();
    let answer = asked_at(port, &certificate, "/unstated/v1/chat/completions");
    assert!(answer.contains("Safe."), "{answer}");
    // Its last chunk has arrived.
    assert!(answer.ends_with("\r\n0\r\n\r\n") || answer.ends_with('}'), "{answer}");
    let home = Home::new();
    let mut command = gateway(&home, port);
    command.env("SSL_CERT_FILE", home.file("own.pem", &certificate));
    let server = Server::start(command);
    for path in ["/unstated/v1/chat/completions", "/short/v1/chat/completions"] {
        let request = json!({"model": "m", "messages": [{"role": "user", "content": path}]});
        post(&format!("{}{path}", server.url), &[("Connection", "close")], &request).whole();
    }
    server.stop();
    let shown = home.steno(&["show", "latest", "--json"]).ok();
    assert_eq!(shown.matches("connection_error").count(), 1, "{shown}");
}

#[test]
fn a_trusted_certificate_may_call_itself_a_ca() {
    let params = |name: &str| {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let (port, certificate) = model_with(params("localhost"));
    let answer = asked(port, &certificate);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // A certificate with the same names is not trusted, even if it claims the same CA.
    let (_, other) = model_with(params("localhost"));
    let answer = asked(port, &other);
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    // Names and dates are checked.
    let (port, certificate) = model_with(params("elsewhere.example"));
    let answer = asked(port, &certificate);
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    let mut expired = params("localhost");
    (expired.not_before, expired.not_after) =
        (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let (port, certificate) = model_with(expired);
    let answer = asked(port, &certificate);
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}

/// A proxy that opens tunnels and records their targets.
fn tunnels() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, asked) =
        (format!("http://{}", listener.local_addr().unwrap()), Arc::<Mutex<Vec<_>>>::default());
    let noted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            let target = head.split(' ').nth(1).unwrap().to_owned();
            let mut server = TcpStream::connect(&target).unwrap();
            noted.lock().unwrap().push(target);
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            std::thread::spawn(move || std::io::copy(&mut server, &mut client));
        }
    });
    (url, asked)
}

#[test]
fn the_machines_proxy_is_used_for_tls() {
    let (port, certificate) = model();
    let (proxy, asked) = tunnels();
    let home = Home::new();
    let mut command = gateway(&home, port);
    command.env("SSL_CERT_FILE", home.file("own.pem", &certificate)).env("HTTPS_PROXY", proxy);
    let gateway = Server::start(command);
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    let url = format!("{}/v1/chat/completions", gateway.url);
    let answer = post(&url, &[("Connection", "close")], &request).whole();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(*asked.lock().unwrap(), [format!("localhost:{port}")]);
}
