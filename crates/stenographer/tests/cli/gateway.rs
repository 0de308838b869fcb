//! Tests of `steno gateway`: traffic passes unchanged, and is recorded.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, mpsc};

use serde_json::{Value, json};

use crate::harness::Home;
use crate::model::{Model, body, post, send};

const KEY: &str = "sk-test-0123456789abcdef";

/// A listening `steno`; it is killed when the test ends.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://"), "{url:?}");
        Self { child, url: url.trim_end().to_owned() }
    }

    fn host(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Stops it like Ctrl-C.
    #[cfg(unix)]
    pub(crate) fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn gateway(home: &Home, model: &Model) -> Server {
    let upstream = format!("openai={}", model.url());
    let other = format!("anthropic={}", model.url());
    let args = [
        "gateway",
        "--listen",
        "127.0.0.1:0",
        "--session",
        "s",
        "--upstream",
        &upstream,
        "--upstream",
        &other,
    ];
    Server::start(home.command(&args))
}

pub(crate) fn ask(text: &str) -> Value {
    json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": text}]})
}

fn chunk(text: &str) -> String {
    let chunk = json!({"id": "c1", "object": "chat.completion.chunk", "model": "m-1",
        "choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {chunk}\n\n")
}

/// Returns the entries of a session, one per line.
pub(crate) fn said(home: &Home, id: &str) -> Vec<String> {
    let shown = home.steno(&["show", id, "--json"]).ok();
    let entries = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    entries
        .map(|entry| {
            format!(
                "{} {}: {}",
                text(&entry["source"]),
                text(&entry["role"]),
                text(&entry["content"])
            )
        })
        .collect()
}

/// Returns whether a file in the store contains some bytes.
pub(crate) fn is_kept(home: &Home, text: &str) -> bool {
    // Content of a file that was just replaced is in another one: read all again.
    std::iter::repeat_with(|| is_in_files(home, text)).find_map(Result::ok).unwrap()
}

/// Returns an error if a file disappears before it is opened.
fn is_in_files(home: &Home, text: &str) -> std::io::Result<bool> {
    let holds = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    for file in steno_store::format::list_file_paths(&home.path().join("store")).unwrap() {
        let bytes = match std::fs::read(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(error),
            read => read.unwrap(),
        };
        let plain = zstd::stream::decode_all(bytes.as_slice()).unwrap_or_default();
        if holds(&bytes) || holds(&plain) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[test]
fn every_byte_is_forwarded_unchanged_and_at_once() {
    // The model continues only after the client has the previous chunk, so any buffering would block forever.
    let (got, goes_on) = mpsc::channel();
    let goes_on = Mutex::new(goes_on);
    let model = Model::start(move |_, reply| {
        reply.begin();
        for text in ["Hé", "l", "lo"] {
            reply.chunk(&chunk(text));
            goes_on.lock().unwrap().recv().unwrap();
        }
        reply.chunk("data: [DONE]\n\n");
        reply.end();
    });
    let home = Home::new();
    let gateway = gateway(&home, &model);
    let answers =
        [format!("{}/v1", model.url()), format!("{}/openai/v1", gateway.url)].map(|base| {
            let headers =
                [("Authorization", KEY), ("X-Other-Case", "kept"), ("Connection", "close")];
            let mut answer = post(&format!("{base}/chat/completions?x=1"), &headers, &ask("Hi"));
            for text in ["Hé", "l", "lo"] {
                answer.until(&chunk(text));
                got.send(()).unwrap();
            }
            answer.until("0\r\n\r\n");
            answer.raw
        });
    let [direct, passed] = answers.map(|raw| String::from_utf8(raw).unwrap());
    let lines = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        // The connection header is per hop.
        lines.retain(|line| line != "connection: close" && line != "Connection: close");
        let end = lines.iter().position(String::is_empty).unwrap();
        lines[1..end].sort();
        lines
    };
    assert_eq!(lines(&passed), lines(&direct));
    let asked = model.asked.lock().unwrap();
    assert_eq!((&asked[0].line, &asked[0].body), (&asked[1].line, &asked[1].body));
    assert_eq!(asked[1].header("authorization"), Some(KEY));
    assert!(asked[1].headers.iter().any(|(name, _)| name == "X-Other-Case"));
    assert_eq!(asked[1].header("host"), Some(model.address.to_string().as_str()));
    assert_eq!(said(&home, "s"), ["primary user: Hi", "primary assistant: Héllo"]);
}

#[test]
fn errors_are_forwarded_unchanged_and_recorded() {
    let refused = json!({"error": {"message": "slow down", "type": "requests", "code": null}});
    let model = Model::start(move |_, reply| reply.json("429 Too Many Requests", &refused));
    let home = Home::new();
    let gateway = gateway(&home, &model);
    let answer = post(
        &format!("{}/openai/v1/chat/completions", gateway.url),
        &[("Connection", "close")],
        &ask("Hi"),
    );
    let answer = answer.whole();
    assert!(answer.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{answer}");
    assert_eq!(body(&answer)["error"]["message"], "slow down");
    assert_eq!(said(&home, "s"), ["primary user: Hi", "primary system: HTTP 429: slow down"]);
}

#[test]
fn a_missing_upstream_is_reported_in_the_vendors_format() {
    let model = Model::start(|_, _| {});
    let home = Home::new();
    let nobody = "nobody=http://127.0.0.1:1";
    let args = ["gateway", "--listen", "127.0.0.1:0", "--session", "s", "--upstream", nobody];
    let gateway = Server::start(home.command(&args));
    drop(model);
    let ask_for = |path: &str, request: &Value| {
        let answer =
            post(&format!("{}{path}", gateway.url), &[("Connection", "close")], request).whole();
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        body(&answer)
    };
    let openai = ask_for("/nobody/v1/chat/completions", &ask("Hi"));
    assert_eq!(openai["error"]["type"], "server_error");
    let anthropic = ask_for("/nobody/v1/messages", &ask("Hi"));
    assert_eq!(
        (&anthropic["type"], &anthropic["error"]["type"]),
        (&json!("error"), &json!("api_error"))
    );
    let contents = json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]});
    let gemini = ask_for("/nobody/v1beta/models/m:generateContent", &contents);
    assert_eq!(gemini["error"]["status"], "UNAVAILABLE");
    let printed = said(&home, "s");
    assert!(printed[1].contains("Connection refused"), "{printed:?}");
}

#[test]
fn a_stream_cut_by_the_upstream_is_cut_for_the_client_and_recorded_with_its_error() {
    let model = Model::start(|_, reply| {
        reply.begin();
        reply.chunk(&chunk("Half"));
    });
    let home = Home::new();
    let gateway = gateway(&home, &model);
    let headers = [("X-Cut", "yes"), ("Connection", "close")];
    let answer =
        post(&format!("{}/v1/chat/completions", gateway.url), &headers, &ask("Hi")).whole();
    assert!(answer.contains("Half") && !answer.contains("0\r\n\r\n"), "{answer}");
    let printed = said(&home, "s");
    assert_eq!(printed[..2], ["primary user: Hi", "primary assistant: Half"]);
    assert!(
        printed[2].starts_with("primary system: ") && printed[2].contains("EOF"),
        "{printed:?}"
    );
}

#[test]
fn a_client_that_disconnects_is_recorded() {
    let (gone, left) = mpsc::channel::<()>();
    let left = Mutex::new(left);
    let model = Model::start(move |_, reply| {
        reply.begin();
        reply.chunk(&chunk("Half"));
        let _ = left.lock().unwrap().recv();
        for _ in 0..100 {
            reply.chunk(&chunk(" more"));
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    });
    let home = Home::new();
    let gateway = gateway(&home, &model);
    let mut answer = post(&format!("{}/v1/chat/completions", gateway.url), &[], &ask("Hi"));
    answer.until("Half");
    drop(answer);
    gone.send(()).unwrap();
    for _ in 0..200 {
        if said(&home, "s").len() == 3 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let printed = said(&home, "s");
    assert_eq!(printed[2], "primary system: the client closed the connection");
}

#[test]
fn killed_in_mid_stream_keeps_all_that_was_passed_on() {
    const CHUNKS: usize = 300;
    let model = Model::start(|_, reply| {
        reply.begin();
        for n in 0..CHUNKS {
            reply.chunk(&chunk(&format!("<{n}>")));
        }
        std::thread::sleep(std::time::Duration::from_secs(60));
    });
    let home = Home::new();
    let mut gateway = gateway(&home, &model);
    let mut answer = post(&format!("{}/v1/chat/completions", gateway.url), &[], &ask("Hi"));
    answer.until(&format!("<{}>", CHUNKS - 1));
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
    let whole: String = (0..CHUNKS).map(|n| format!("<{n}>")).collect();
    let printed = said(&home, "s");
    assert_eq!(printed[1], format!("primary assistant: {whole}"));
    assert_eq!(printed[2], "primary system: the recording ended in the middle of it");
    home.steno(&["verify"]).ok();
}

#[test]
fn neither_pages_of_other_hosts_nor_other_names_get_in() {
    let model = Model::start(|_, reply| reply.json("200 OK", &json!({})));
    let home = Home::new();
    let gateway = gateway(&home, &model);
    let url = format!("{}/v1/chat/completions", gateway.url);
    for header in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Host", "evil.example"),
        ("Host", "127.0.0.1.evil.example"),
        ("Sec-Fetch-Site", "cross-site"),
    ] {
        let answer = post(&url, &[header, ("Connection", "close")], &ask("Hi")).whole();
        assert!(answer.starts_with("HTTP/1.1 403 "), "{header:?}: {answer}");
        assert!(!answer.to_lowercase().contains("access-control-allow"), "{answer}");
    }
    assert!(model.asked.lock().unwrap().is_empty());
    let local =
        post(&url, &[("Origin", "http://localhost:3000"), ("Connection", "close")], &ask("Hi"))
            .whole();
    assert!(local.starts_with("HTTP/1.1 200 "), "{local}");
}

#[test]
fn a_request_cannot_choose_its_upstream_nor_a_place_on_disk() {
    let other = Model::start(|_, reply| reply.json("200 OK", &json!({"evil": true})));
    let model = Model::start(|_, reply| reply.json("200 OK", &json!({"good": true})));
    let home = Home::new();
    let gateway = gateway(&home, &model);
    let evil = other.address.to_string();
    let request =
        json!({"model": "m", "messages": [], "base_url": other.url(), "session": "../../x"});
    let headers = [
        ("X-Forwarded-Host", evil.as_str()),
        ("X-Upstream", &evil),
        ("Forwarded", &evil),
        ("X-Session-Id", "../../x"),
        ("Connection", "close"),
    ];
    let answer = post(&format!("{}/v1/chat/completions", gateway.url), &headers, &request).whole();
    assert_eq!(body(&answer), json!({"good": true}));
    let host = gateway.host();
    for target in [
        format!("{}/v1/chat/completions", other.url()),
        format!("//{evil}/v1/chat/completions"),
        format!("/@{evil}/v1/chat/completions"),
        format!("/openai@{evil}/v1/chat/completions"),
        "/openai/../../../etc/passwd".to_owned(),
        "/%2e%2e/%2e%2e/x".to_owned(),
    ] {
        send(host, format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
            .whole();
    }
    let connect =
        send(host, format!("CONNECT {evil} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
            .whole();
    assert!(!connect.starts_with("HTTP/1.1 200"), "{connect}");
    assert!(other.asked.lock().unwrap().is_empty());
    let vault = home.path().join("store/vault/gateway");
    let kept: Vec<_> =
        std::fs::read_dir(vault).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(kept, ["s"]);
    assert!(!home.path().join("x").exists());
}

#[test]
fn keys_and_cookies_are_forwarded_and_never_stored() {
    let model = Model::start(|_, reply| {
        reply.begin();
        // A server that echoes the key must not bring it into the recording.
        reply.chunk(&chunk(&format!("your key is {KEY}")));
        reply.chunk("data: [DONE]\n\n");
        reply.end();
    });
    let home = Home::new();
    let gateway = gateway(&home, &model);
    let bearer = format!("Bearer {KEY}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("x-api-key", "anthropic-secret-1"),
        ("api-key", "azure-secret-1"),
        ("x-goog-api-key", "google-secret-1"),
        ("Cookie", "a=cookie-secret-2"),
        ("Connection", "close"),
    ];
    let url = format!("{}/v1/chat/completions?key=query-secret-1&alt=sse", gateway.url);
    let answer = post(&url, &headers, &ask("Here is query-secret-1")).whole();
    assert!(answer.contains(KEY) && answer.contains("cookie-secret-1"), "{answer}");
    for (name, value) in &headers[..5] {
        assert_eq!(model.asked.lock().unwrap()[0].header(name), Some(*value));
    }
    assert!(model.asked.lock().unwrap()[0].line.contains("key=query-secret-1"));
    for live in [true, false] {
        for secret in [
            KEY,
            "anthropic-secret-1",
            "azure-secret-1",
            "google-secret-1",
            "cookie-secret-1",
            "cookie-secret-2",
            "query-secret-1",
        ] {
            assert!(!is_kept(&home, secret), "{secret}, live {live}");
        }
        assert!(
            is_kept(&home, "your key is [redacted: authorization, 24 bytes]")
                && is_kept(&home, "alt=sse")
        );
        if live {
            let pid = rustix::process::Pid::from_child(&gateway.child);
            rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
            while said_status(&home) == "running" {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    }
}

fn said_status(home: &Home) -> String {
    let listed = home.steno(&["list", "--json"]).ok();
    let row: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    row["status"].as_str().unwrap().to_owned()
}

#[test]
fn the_configuration_adds_upstreams_and_a_path_without_one_is_an_error() {
    let model =
        Model::start(|_, reply| reply.json("200 OK", &json!({"object": "list", "data": []})));
    let home = Home::new();
    home.file("store/config.toml", format!("[upstreams]\nlocal = \"{}/llm\"\n", model.url()));
    let gateway =
        Server::start(home.command(&["gateway", "--listen", "127.0.0.1:0", "--session", "s"]));
    let get = |path: &str| {
        let host = gateway.host();
        send(host, format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
            .whole()
    };
    assert_eq!(body(&get("/local/v1/models"))["object"], "list");
    assert!(model.asked.lock().unwrap()[0].line.starts_with("GET /llm/v1/models "));
    let lost = get("/nowhere");
    assert!(lost.starts_with("HTTP/1.1 404 "), "{lost}");
    assert!(
        body(&lost)["error"]["message"]
            .as_str()
            .unwrap()
            .contains("openai, anthropic, gemini, code-assist, local")
    );
    assert_eq!(said(&home, "s"), [""; 0]);
    gateway.stop();
    home.file("store/config.toml", "[upstreams]\nlocal = 5\n");
    let wrong = home.steno(&["gateway", "--listen", "127.0.0.1:0"]);
    insta::assert_snapshot!(wrong, @r"
    --- stderr
    error: $HOME/store/config.toml:2: an upstream is not a URL
    --- exit 1
    ");
}

#[test]
fn a_gateway_cannot_be_its_own_upstream() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = home.steno(&["gateway", "--listen", &address]);
    assert!(output.code == 1 && output.stderr.contains("could not listen on"), "{output}");
    drop(taken);
    let upstream = format!("me=http://{address}");
    let output = home.steno(&["gateway", "--listen", &address, "--upstream", &upstream]);
    assert!(output.code == 1 && output.stderr.contains("is the gateway itself"), "{output}");
    assert!(home.vault().list_sessions().unwrap().is_empty(), "a session was begun");
}
