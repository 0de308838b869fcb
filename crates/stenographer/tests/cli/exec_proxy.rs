//! Tests of `steno exec --proxy`, which records programs without changing their API address.

use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};
use serde_json::{Value, json};
use tokio_rustls::TlsConnector;

use crate::gateway::{is_kept, said};
use crate::gateway_http2::{ask_http2, question, runtime};
use crate::gateway_websocket::{Step, answered, create, open, play, read_head, response, sent};
use crate::harness::{Home, Output};
use crate::model::Model;

fn completion(text: &str) -> Value {
    json!({"id": "c", "object": "chat.completion", "model": "m-1", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
}

/// Starts a TLS server with its own certificate. Returns its port and certificate.
fn tls_server(
    serve: impl Fn(&mut StreamOwned<ServerConnection, TcpStream>) + Send + 'static,
) -> (u16, String) {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![own.cert.der().clone()], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            serve(&mut StreamOwned::new(connection, stream));
        }
    });
    (port, own.cert.pem())
}

/// Answers one request with "Three.".
fn model(stream: &mut StreamOwned<ServerConnection, TcpStream>) {
    let head = read_head(stream);
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    let length = length.map_or(0, |length| length.parse().unwrap());
    stream.read_exact(&mut vec![0; length]).unwrap();
    let body = completion("Three.").to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: req_1\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    stream.conn.send_close_notify();
    stream.flush().unwrap();
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// Opens a tunnel through the proxy in the environment.
fn tunnel(target: &str) -> TcpStream {
    let proxy = variable("HTTPS_PROXY");
    let mut stream = TcpStream::connect(proxy.strip_prefix("http://").unwrap()).unwrap();
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let head = read_head(&mut stream);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    stream
}

/// Returns the trust settings of a program that reads the environment.
fn client_config() -> ClientConfig {
    let mut trusted = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(variable("SSL_CERT_FILE")).unwrap() {
        trusted.add(certificate.unwrap()).unwrap();
    }
    ClientConfig::builder().with_root_certificates(trusted).with_no_client_auth()
}

fn tls(target: &str) -> StreamOwned<ClientConnection, TcpStream> {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(client_config()), name).unwrap();
    StreamOwned::new(connection, tunnel(target))
}

/// A program like curl: it takes proxies and certificates from its environment, and knows no gateway. Other tests run
/// it.
#[test]
#[ignore = "is run by other tests, as a program"]
fn program() {
    let target = variable("TARGET");
    match variable("WAY").as_str() {
        "tls" => {
            let mut stream = tls(&target);
            let body = question("Count").to_string();
            let request = format!(
                "POST /v1/chat/completions HTTP/1.1\r\nHost: {target}\r\nAuthorization: Bearer sk-test-0123456789abcdef\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            let issuer = stream.conn.peer_certificates().unwrap().len();
            println!("certificates {issuer}");
            println!("{answer}");
        }
        "http2" => {
            let (status, header, body) = runtime().block_on(async {
                let stream = tunnel(&target);
                stream.set_nonblocking(true).unwrap();
                let stream = tokio::net::TcpStream::from_std(stream).unwrap();
                let mut config = client_config();
                config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
                let name = ServerName::try_from("localhost").unwrap();
                let stream =
                    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
                assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
                let uri = format!("https://{target}/v1/chat/completions");
                ask_http2(stream, &uri, &question("Count")).await
            });
            println!("{status} {header:?} {body}");
        }
        "websocket" => {
            let mut stream = tls(&target);
            let head = open(&mut stream, &target, "/v1/responses");
            assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
            play(&mut stream, &conversation());
        }
        "plain" => {
            let proxy = variable("HTTP_PROXY");
            let mut stream = TcpStream::connect(proxy.strip_prefix("http://").unwrap()).unwrap();
            let body = question("Count").to_string();
            let request = format!(
                "POST http://{target}/v1/chat/completions HTTP/1.1\r\nHost: {target}\r\nProxy-Connection: close\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            BufReader::new(stream).read_to_string(&mut answer).unwrap();
            println!("{answer}");
        }
        other => panic!("no such way: {other}"),
    }
}

fn conversation() -> Vec<Step> {
    let mut steps = vec![Step::Client(sent(&create("Count", None)))];
    steps.extend(response("resp_1", "Three.").iter().map(|event| Step::Upstream(answered(event))));
    steps
}

/// Runs the program under `steno exec --proxy`.
fn exec(home: &Home, flags: &[&str], variables: &[(&str, &str)]) -> Output {
    let program = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let mut args = vec!["exec", "--proxy", "--session", "s", "--name", "program"];
    args.extend(flags);
    args.extend(["--", &program, "--exact", "exec_proxy::program", "--ignored", "--nocapture"]);
    std::fs::create_dir_all(home.path().join("store")).unwrap();
    let mut command = home.command(&args);
    command.envs(variables.iter().copied());
    home.finish(command, b"")
}

const SAID: [&str; 2] = ["primary user: Count", "primary assistant: Three."];

#[test]
fn requests_over_tls_to_a_recorded_host_are_recorded() {
    for way in ["tls", "http2"] {
        let home = Home::new();
        let (port, certificate) = tls_server(model);
        let target = format!("localhost:{port}");
        let trusted = home.file("own.pem", &certificate);
        let variables = [
            ("TARGET", target.as_str()),
            ("WAY", way),
            ("SSL_CERT_FILE", trusted.to_str().unwrap()),
        ];
        let output = exec(&home, &["--proxy-host", "localhost"], &variables);
        assert_eq!(output.code, 0, "{output}");
        assert!(output.stdout.contains(&completion("Three.").to_string()), "{output}");
        assert!(output.stdout.contains("req_1"), "{output}");
        assert_eq!(said(&home, "s"), SAID, "{way}");
        assert!(!is_kept(&home, "sk-test-0123456789abcdef"));
    }
}

#[test]
fn other_hosts_are_passed_on_unread() {
    let home = Home::new();
    let (port, certificate) = tls_server(model);
    let target = format!("localhost:{port}");
    // The program trusts the server's own certificate, which the bundle contains too.
    let trusted = home.file("own.pem", &certificate);
    let variables = [
        ("TARGET", target.as_str()),
        ("WAY", "tls"),
        ("NODE_EXTRA_CA_CERTS", trusted.to_str().unwrap()),
    ];
    let output = exec(&home, &[], &variables);
    assert_eq!(output.code, 0, "{output}");
    assert!(output.stdout.contains("certificates 1\n"), "{output}");
    assert!(output.stdout.contains(&completion("Three.").to_string()), "{output}");
    assert!(!is_kept(&home, "Three."));
    let hint = format!("hint: not recorded: {target}; use --proxy-host HOST");
    assert!(output.stderr.contains(&hint), "{output}");
}

#[test]
fn websockets_in_a_tunnel_are_recorded() {
    let home = Home::new();
    let (port, certificate) = tls_server(|stream| {
        let head = read_head(stream);
        assert!(head.starts_with("GET /v1/responses "), "{head}");
        let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        stream.write_all(answer.as_bytes()).unwrap();
        for step in conversation() {
            match step {
                Step::Upstream(bytes) => stream.write_all(&bytes).unwrap(),
                Step::Client(bytes) => stream.read_exact(&mut vec![0; bytes.len()]).unwrap(),
            }
        }
        stream.flush().unwrap();
    });
    let (target, trusted) = (format!("localhost:{port}"), home.file("own.pem", &certificate));
    let variables = [
        ("TARGET", target.as_str()),
        ("WAY", "websocket"),
        ("SSL_CERT_FILE", trusted.to_str().unwrap()),
    ];
    let output = exec(&home, &["--proxy-host", "localhost"], &variables);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(said(&home, "s")[1..], SAID);
}

#[test]
fn plain_requests_to_an_upstream_are_recorded() {
    let model = Model::start(|_, reply| reply.json("200 OK", &completion("Three.")));
    let target = model.address.to_string();
    for is_configured in [true, false] {
        let home = Home::new();
        if is_configured {
            home.file(
                "store/config.toml",
                format!("[upstreams]\nlocal = \"{}/v1\"\n", model.url()),
            );
        }
        // An exception would bypass the proxy.
        let variables = [("TARGET", target.as_str()), ("WAY", "plain"), ("NO_PROXY", "127.0.0.1")];
        let output = exec(&home, &[], &variables);
        assert_eq!(output.code, 0, "{output}");
        assert!(output.stdout.contains(&completion("Three.").to_string()), "{output}");
        match is_configured {
            true => assert_eq!(said(&home, "s"), SAID),
            false => assert!(!is_kept(&home, "Three.")),
        }
    }
    let asked = model.asked.lock().unwrap();
    assert!(asked.iter().all(|asked| asked.line == "POST /v1/chat/completions HTTP/1.1"));
    assert!(asked.iter().all(|asked| asked.header("proxy-connection").is_none()));
}

#[test]
fn only_the_program_gets_the_proxy_settings() {
    let home = Home::new();
    home.file("store/config.toml", "[proxy]\nhosts = [\"llm.example\"]\n");
    let mut command = home.command(&["exec", "--proxy", "-q", "--", "env"]);
    command.env("NO_PROXY", "corp.example,.openai.com, llm.example");
    let output = home.finish(command, b"");
    let value = |name: &str| {
        let prefix = format!("{name}=");
        output
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix(&prefix))
            .unwrap_or_else(|| panic!("{name}"))
    };
    let proxy = value("HTTPS_PROXY");
    assert!(proxy.starts_with("http://127.0.0.1:"));
    for name in ["https_proxy", "HTTP_PROXY", "http_proxy"] {
        assert_eq!(value(name), proxy);
    }
    assert_eq!((value("NO_PROXY"), value("no_proxy")), ("corp.example", ""));
    assert_eq!(value("NODE_USE_ENV_PROXY"), "1");
    let file = value("SSL_CERT_FILE");
    for name in [
        "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "AWS_CA_BUNDLE",
        "DENO_CERT",
    ] {
        assert_eq!(value(name), file);
    }
    assert!(!output.stdout.contains("OPENAI_BASE_URL"), "{output}");
    // The files of the run are removed with it.
    assert!(!std::path::Path::new(file).exists());
}

#[test]
fn no_key_is_written_anywhere() {
    let home = Home::new();
    let script = "cat \"$SSL_CERT_FILE\"; ls -a \"$(dirname \"$SSL_CERT_FILE\")\"";
    let temp = home.path().join("temp");
    std::fs::create_dir(&temp).unwrap();
    std::fs::create_dir(home.path().join("store")).unwrap();
    let args = ["exec", "--proxy", "-q", "--session", "s", "--", "sh", "-c", script];
    let mut command = home.command(&args);
    command.env("TMPDIR", &temp);
    let output = home.finish(command, b"");
    assert!(output.stdout.contains("-----BEGIN CERTIFICATE-----"), "{output}");
    assert!(!output.stdout.contains("PRIVATE KEY"), "{output}");
    let files: Vec<_> = output.stdout.lines().filter(|line| line.starts_with("steno-")).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(!is_kept(&home, "PRIVATE KEY"));
}

#[test]
fn the_users_proxy_is_used_or_refused() {
    let home = Home::new();
    let (port, certificate) = tls_server(model);
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let noted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let target = read_head(&mut client).split(' ').nth(1).unwrap().to_owned();
            let mut server = TcpStream::connect(&target).unwrap();
            noted.lock().unwrap().push(target);
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            std::thread::spawn(move || std::io::copy(&mut server, &mut client));
        }
    });
    let (target, trusted) = (format!("localhost:{port}"), home.file("own.pem", &certificate));
    let mut variables = vec![
        ("TARGET", target.as_str()),
        ("WAY", "tls"),
        ("SSL_CERT_FILE", trusted.to_str().unwrap()),
        ("HTTPS_PROXY", proxy.as_str()),
    ];
    for flags in [&["--proxy-host", "localhost"][..], &[]] {
        let output = exec(&home, flags, &variables);
        assert_eq!(output.code, 0, "{output}");
    }
    assert_eq!(*asked.lock().unwrap(), [target.clone(), target.clone()]);
    variables[3].1 = "socks5://127.0.0.1:1";
    let refused = exec(&home, &[], &variables);
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.stderr.contains("unsupported proxy in HTTPS_PROXY"), "{refused}");
}

#[test]
fn a_gateway_is_no_proxy_for_others() {
    let home = Home::new();
    let model = Model::start(|_, reply| reply.json("200 OK", &completion("Three.")));
    let gateway = crate::gateway::gateway(&home, &model);
    let host = gateway.url.strip_prefix("http://").unwrap();
    let ask = |request: String| {
        let mut stream = TcpStream::connect(host).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        read_head(&mut stream)
    };
    let target = model.address;
    let head = ask(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"));
    assert!(head.starts_with("HTTP/1.1 405 "), "{head}");
    let head = ask(format!("GET http://{target}/v1/models HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
    assert!(model.asked.lock().unwrap().is_empty());
}
