//! Bodies of every kind through `steno gateway`: forwarded unchanged, recorded without secrets, and replayed.

use serde_json::{Value, json};

use crate::gateway::{Server, ask, gateway, is_kept, said};
use crate::harness::Home;
use crate::model::{Model, body, post, send};

const KEY: &str = "q7Rz0vXw93LkTn5Yb2Hd8Fg1";

/// Posts a body with a content type. Returns the response.
fn post_body(server: &Server, path: &str, content_type: &str, body: &[u8]) -> String {
    let host = server.url.strip_prefix("http://").unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    send(host, [head.as_bytes(), body].concat()).whole()
}

/// A multipart form: a key, and a binary file.
fn parts(boundary: &str, file: &[u8]) -> Vec<u8> {
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    );
    let tail = format!(
        "\r\n--{boundary}\r\nContent-Disposition: form-data; name=\"api_key\"\r\n\r\n{KEY}\r\n--{boundary}--\r\n"
    );
    [head.as_bytes(), file, tail.as_bytes()].concat()
}

fn multipart(boundary: &str) -> String {
    format!("multipart/form-data; boundary={boundary}")
}

/// A gateway with a small body limit.
fn frugal_gateway(home: &Home, model: &Model, limit: &str) -> Server {
    let upstream = format!("openai={}", model.url());
    let args = ["gateway", "--listen", "127.0.0.1:0", "--session", "s", "--upstream", &upstream];
    Server::start(home.command(&[&args[..], &["--body-limit", limit]].concat()))
}

fn entries(home: &Home) -> Vec<Value> {
    let shown = home.steno(&["show", "s", "--json"]).ok();
    shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn uploads_and_forms_are_recorded_without_their_secrets_and_replayed() {
    let model = Model::start(|asked, reply| {
        reply.json("200 OK", &json!({"id": format!("file-{}", asked.body.len())}));
    });
    let home = Home::new();
    let gateway = gateway(&home, &model);
    let file: Vec<u8> = (0..=255).collect();
    let upload = parts("first", &file);
    let form = format!("grant_type=x&client_secret={KEY}");
    let urlencoded = "application/x-www-form-urlencoded";
    let sent = [
        ("/openai/v1/files", multipart("first"), upload.clone()),
        ("/openai/v1/token", urlencoded.to_owned(), form.clone().into_bytes()),
        ("/openai/v1/blob", "application/octet-stream".to_owned(), file.clone()),
    ];
    let answers =
        sent.clone().map(|(path, kind, bytes)| body(&post_body(&gateway, path, &kind, &bytes)));
    let asked: Vec<_> =
        model.asked.lock().unwrap().iter().map(|asked| asked.body.clone()).collect();
    assert_eq!(asked, [upload.as_slice(), form.as_bytes(), &file]);
    gateway.stop();
    assert!(!is_kept(&home, KEY));
    assert!(is_kept(&home, "client_secret=[redacted: client_secret, 24 bytes]"));
    let hash = blake3::hash(&file);
    let described =
        format!("primary user: [a.bin, application/octet-stream, 256 bytes, blake3 {hash}]\nbatch");
    assert_eq!(
        said(&home, "s"),
        [described, format!("primary assistant: [file file-{}]", upload.len())]
    );
    // A client makes up a new boundary each time; the request is still the same.
    let replay = Server::start(home.command(&["replay", "s", "--as-api", "--strict"]));
    let again = [
        ("/v1/files", multipart("another-boundary"), parts("another-boundary", &file)),
        sent[1].clone(),
        sent[2].clone(),
    ];
    let replayed = again.map(|(path, kind, bytes)| body(&post_body(&replay, path, &kind, &bytes)));
    assert_eq!(replayed, answers);
    let other = post_body(&replay, "/v1/blob", "application/octet-stream", b"else");
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
}

#[test]
fn the_part_beyond_the_limit_is_recorded_as_length_and_hash() {
    let model = Model::start(|_, reply| {
        let large = "x".repeat(3000);
        reply.raw(format!("HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n{large}").as_bytes());
    });
    let home = Home::new();
    let gateway = frugal_gateway(&home, &model, "1 KB");
    let upload = parts("first", &vec![7; 5000]);
    let answer = post_body(&gateway, "//openai/v1/blob", &multipart("first"), &upload);
    assert!(answer.ends_with(&"x".repeat(3000)), "the client gets all");
    let asked = model.asked.lock().unwrap()[0].clone();
    assert!(asked.line.starts_with("POST /v1/blob "), "{}", asked.line);
    assert_eq!(asked.body, upload, "so does the model");
    gateway.stop();
    let printed = |what: &str, length: usize, hash: blake3::Hash| {
        format!(
            "primary system: {} of the {length} bytes of the {what} were not kept; all of them have the BLAKE3 hash {hash}",
            length - 1000
        )
    };
    let answer = "x".repeat(3000);
    assert_eq!(
        said(&home, "s"),
        [
            printed("request", upload.len(), blake3::hash(&upload)),
            printed("answer", 3000, blake3::hash(answer.as_bytes()))
        ]
    );
    let replay = Server::start(home.command(&["replay", "s", "--as-api", "--strict"]));
    let again = parts("second", &vec![7; 5000]);
    let found = post_body(&replay, "/v1/blob", &multipart("second"), &again);
    assert!(found.starts_with("HTTP/1.1 200 "), "{found}");
    let other =
        post_body(&replay, "/v1/blob", &multipart("second"), &parts("second", &vec![8; 5000]));
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
}

#[test]
fn bodies_of_chunks_are_recorded_while_they_pass() {
    let model = Model::start(|_, reply| reply.json("200 OK", &json!({"ok": true})));
    let home = Home::new();
    let gateway = frugal_gateway(&home, &model, "20");
    let host = gateway.url.strip_prefix("http://").unwrap();
    let request = format!(
        "POST /openai/v1/blob HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/octet-stream\r\n\
         Transfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n8\r\nghijklmn\r\n0\r\n\r\n"
    );
    let answer = send(host, request).whole();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let whole = b"0123456789abcdefghijklmn";
    assert_eq!(model.asked.lock().unwrap()[0].body, whole);
    gateway.stop();
    assert!(
        is_kept(&home, "0123456789abcdef") && is_kept(&home, "ghij") && !is_kept(&home, "ghijk")
    );
    let hash = blake3::hash(whole);
    let notice = format!(
        "primary system: 4 of the 24 bytes of the request were not kept; all of them have the BLAKE3 hash {hash}"
    );
    assert_eq!(said(&home, "s"), [notice]);
}

#[test]
fn early_hints_and_trailers_are_recorded_and_trailers_passed_on() {
    let model = Model::start(|_, reply| {
        reply.raw(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n");
        reply.raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTrailer: x-checksum\r\nTransfer-Encoding: chunked\r\n\r\n");
        reply.chunk("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n");
        reply.raw(b"0\r\nx-checksum: abc\r\n\r\n");
    });
    let home = Home::new();
    let gateway = gateway(&home, &model);
    let headers = [("TE", "trailers"), ("Connection", "close")];
    let answer =
        post(&format!("{}/v1/chat/completions", gateway.url), &headers, &ask("Hi")).whole();
    assert!(answer.ends_with("0\r\nx-checksum: abc\r\n\r\n"), "{answer}");
    gateway.stop();
    assert!(is_kept(&home, "</style.css>"));
    let entries = entries(&home);
    assert_eq!(entries[1]["content"], "Hi");
    assert_eq!(entries[1]["metadata"]["trailers"], json!({"x-checksum": "abc"}));
    assert_eq!(entries[1]["metadata"]["informational"], json!([103]));
}

#[test]
fn a_client_that_closes_after_the_last_event_has_a_whole_answer() {
    let model = Model::start(|_, reply| {
        reply.begin();
        reply.chunk("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n");
        reply.chunk("data: [DONE]\n\n");
        // Nothing ends the body while the client is connected.
        std::thread::sleep(std::time::Duration::from_secs(60));
    });
    let home = Home::new();
    let gateway = gateway(&home, &model);
    let mut answer = post(&format!("{}/v1/chat/completions", gateway.url), &[], &ask("Hi"));
    answer.until("[DONE]");
    drop(answer);
    while !is_kept(&home, "the client closed the connection") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(said(&home, "s"), ["primary user: Hi", "primary assistant: Hi"]);
    gateway.stop();
    let replay = Server::start(home.command(&["replay", "s", "--as-api", "--strict"]));
    let url = format!("{}/v1/chat/completions", replay.url);
    let again = post(&url, &[("Connection", "close")], &ask("Hi")).whole();
    assert!(again.ends_with("0\r\n\r\n"), "the replay ends as a whole answer does: {again}");
}

#[test]
fn a_client_that_tries_again_is_recorded_once_with_its_attempts() {
    let attempts = std::sync::atomic::AtomicUsize::new(0);
    let model = Model::start(move |_, reply| {
        let refused = json!({"error": {"message": "Overloaded"}});
        match attempts.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => reply.json("529 Overloaded", &refused),
            _ => reply.json(
                "200 OK",
                &json!({"id": "chatcmpl-0123456789", "model": "m-1", "choices": [{"index": 0,
                    "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 4, "completion_tokens": 2}}),
            ),
        }
    });
    let home = Home::new();
    let gateway = gateway(&home, &model);
    let url = format!("{}/v1/chat/completions", gateway.url);
    for attempt in ["0", "1"] {
        let headers = [("X-Stainless-Retry-Count", attempt), ("Connection", "close")];
        post(&url, &headers, &ask("Hi")).whole();
    }
    gateway.stop();
    assert_eq!(
        said(&home, "s"),
        ["primary user: Hi", "primary system: HTTP 529: Overloaded", "primary assistant: Hello"]
    );
    let entries = entries(&home);
    assert_eq!(entries[2]["metadata"]["attempt"], 2);
    assert_eq!(entries[2]["metadata"]["retry_of"], entries[1]["metadata"]["exchange"]);
    let listed: Value = serde_json::from_str(&home.steno(&["list", "--json"]).ok()).unwrap();
    assert_eq!((&listed["tokens"]["input"], &listed["tokens"]["output"]), (&json!(4), &json!(2)));
}

#[test]
fn an_invalid_limit_is_reported() {
    let home = Home::new();
    home.file("store/config.toml", "[gateway]\nbody_limit = \"much\"\n");
    insta::assert_snapshot!(home.steno(&["gateway", "--listen", "127.0.0.1:0"]), @r"
    --- stderr
    error: $HOME/store/config.toml:2: not a size in bytes, such as 64 MiB or 500000
    --- exit 1
    ");
    home.file("store/config.toml", "[gateway]\nlimit = 5\n");
    let wrong = home.steno(&["gateway", "--listen", "127.0.0.1:0"]);
    assert!(wrong.stderr.contains("config.toml:2: unknown setting limit"), "{wrong}");
}
