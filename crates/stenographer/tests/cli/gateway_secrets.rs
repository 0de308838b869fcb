//! Which values the gateway removes from the recording, and that it keeps everything else.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::gateway::{Server, gateway, is_kept, said};
use crate::harness::Home;
use crate::model::{Model, ModelRequest, Reply, post, post_bytes};

/// Where a request contains a value.
const PLACES: [&str; 14] = [
    "authorization",
    "proxy-authorization",
    "basic",
    "x-api-key",
    "x-bearer",
    "x-api",
    "x-pass",
    "cf-access-client-id",
    "x-amz-security-token",
    "cookie",
    "query",
    "body",
    "escaped body",
    "compressed body",
];

/// How the server echoes it.
const ECHOES: [&str; 10] = [
    "plain",
    "split",
    "escaped",
    "gzip",
    "zstd",
    "deflate",
    "br",
    "split gzip",
    "split zstd",
    "split br",
];

/// Sends a request with the value at a place, and a header that selects the echo.
fn request(gateway: &Server, place: &str, echo: &str, value: &str) {
    let mut headers = vec![
        ("x-echo-form".to_owned(), echo.to_owned()),
        ("x-echo".to_owned(), BASE64.encode(value.chars().rev().collect::<String>())),
        ("Connection".to_owned(), "close".to_owned()),
    ];
    let mut header = |name: &str, value: String| headers.push((name.to_owned(), value));
    let mut url = format!("{}/v1/chat/completions", gateway.url);
    let mut body =
        json!({"model": "m", "messages": [{"role": "user", "content": format!("via {place}")}]});
    match place {
        "authorization" | "proxy-authorization" => header(place, format!("Bearer {value}")),
        "basic" => {
            header("authorization", format!("Basic {}", BASE64.encode(format!("me:{value}"))))
        }
        "cookie" => header(place, format!("theme=dark; sid={value}")),
        "query" => {
            url += &format!("?key={}&alt=json", value.replace('+', "%2B").replace('/', "%2F"))
        }
        "body" | "compressed body" => body["api_key"] = value.into(),
        "escaped body" => {
            let inner = json!({"api_key": value}).to_string();
            body["messages"][0]["content"] = format!("via {place}: {inner}").into();
        }
        name => header(name, value.to_owned()),
    }
    let headers: Vec<_> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let answer = if place == "compressed body" {
        let body = zstd::bulk::compress(body.to_string().as_bytes(), 1).unwrap();
        let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        post_bytes(host, path, &[&headers[..], &[("Content-Encoding", "zstd")]].concat(), &body)
    } else {
        post(&url, &headers, &body)
    };
    let answer = answer.whole();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Echoes the value in the requested form.
fn repeat(asked: &ModelRequest, reply: &mut Reply<'_>) {
    let reversed = BASE64.decode(asked.header("x-echo").unwrap()).unwrap();
    let value: String = String::from_utf8(reversed).unwrap().chars().rev().collect();
    let form = asked.header("x-echo-form").unwrap();
    let said = match form {
        "escaped" => value.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect(),
        _ => value.clone(),
    };
    let body = format!(
        r#"{{"id":"c1","object":"chat.completion","model":"m-1","choices":[{{"index":0,"finish_reason":"stop","message":{{"role":"assistant","content":"You sent {said} to me."}}}}]}}"#
    );
    let (coding, bytes) = match form {
        "gzip" | "split gzip" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
            encoder.write_all(body.as_bytes()).unwrap();
            ("Content-Encoding: gzip\r\n", encoder.finish().unwrap())
        }
        "deflate" => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
            encoder.write_all(body.as_bytes()).unwrap();
            ("Content-Encoding: deflate\r\n", encoder.finish().unwrap())
        }
        "br" | "split br" => ("Content-Encoding: br\r\n", wrap_in_brotli(body.as_bytes())),
        "zstd" | "split zstd" => {
            ("Content-Encoding: zstd\r\n", zstd::bulk::compress(body.as_bytes(), 1).unwrap())
        }
        _ => ("", body.into_bytes()),
    };
    let step = if form.starts_with("split") { 3 } else { bytes.len() };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{coding}Transfer-Encoding: chunked\r\n\r\n"
    );
    reply.raw(head.as_bytes());
    for part in bytes.chunks(step) {
        reply.raw(format!("{:X}\r\n", part.len()).as_bytes());
        reply.raw(part);
        reply.raw(b"\r\n");
    }
    reply.end();
}

/// A brotli stream with one stored block.
fn wrap_in_brotli(bytes: &[u8]) -> Vec<u8> {
    let header = ((bytes.len() as u32 - 1) << 4) | 1 << 20;
    [&header.to_le_bytes()[..3], bytes, &[3]].concat()
}

/// Returns a random-looking value for each number.
fn key(number: usize) -> String {
    let hash = blake3::hash(&number.to_le_bytes());
    let text = BASE64.encode(hash.as_bytes());
    match number % 4 {
        0 => format!("sk-ant-api03-{}", text.trim_end_matches('=').replace(['+', '/'], "-")),
        1 => text,
        2 => hash.to_hex()[..20].to_owned(),
        _ => text.replace(['+', '/', '='], "x")[..12].to_owned() + "9",
    }
}

#[test]
fn no_key_gets_in_by_any_place_or_in_any_form() {
    let model = Model::start(repeat);
    let home = Home::new();
    let gateway = gateway(&home, &model);
    let cases: Vec<_> =
        PLACES.iter().flat_map(|place| ECHOES.iter().map(move |echo| (*place, *echo))).collect();
    assert!(cases.len() >= 60);
    for (number, (place, echo)) in cases.iter().enumerate() {
        request(&gateway, place, echo, &key(number));
    }
    gateway.stop();
    let found: Vec<_> = (0..cases.len())
        .filter(|number| is_kept(&home, &key(*number)))
        .map(|at| cases[at])
        .collect();
    assert_eq!(found, []);
    let said = said(&home, "s");
    let answers = said.iter().filter(|entry| entry.contains("You sent [redacted: ")).count();
    assert_eq!(answers, cases.len(), "{said:#?}");
}

#[test]
fn placeholders_and_ordinary_words_stay_in_every_place() {
    let words = [
        "anything",
        "assistant",
        "dummy",
        "test",
        "none",
        "placeholder",
        "example",
        "password",
        "secret",
        "string",
    ];
    let model = Model::start(repeat);
    let home = Home::new();
    let gateway = gateway(&home, &model);
    let mut sent = Vec::new();
    for (number, place) in PLACES.iter().cycle().take(70).enumerate() {
        // The value of basic authentication is never a single word.
        if *place != "basic" {
            let (echo, word) = (ECHOES[number % ECHOES.len()], words[number % words.len()]);
            request(&gateway, place, echo, word);
            sent.push(word);
        }
    }
    assert!(sent.len() >= 60);
    gateway.stop();
    assert!(!is_kept(&home, "[redacted"));
    let said = said(&home, "s");
    for word in words {
        let answer = format!("primary assistant: You sent {word} to me.");
        let expected = sent.iter().filter(|known| **known == word).count();
        assert_eq!(
            said.iter().filter(|entry| **entry == answer).count(),
            expected,
            "{word}: {said:#?}"
        );
    }
}

#[test]
fn names_of_headers_do_not_change_the_messages() {
    let model = Model::start(|_, reply| {
        let choice = json!({"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Is there anything else?"}});
        reply.json("200 OK", &json!({"id": "c1", "model": "m-1", "choices": [choice]}));
    });
    let home = Home::new();
    let gateway = gateway(&home, &model);
    let headers = [
        ("Authorization", "Bearer anything"),
        ("X-Session-Mode", "assistant"),
        ("X-Claude-Code-Session-Id", "0b9f5c2e-5f0f-4f57-9d55-6f0f1c2d3e4f"),
        ("Connection", "close"),
    ];
    let url = format!("{}/v1/chat/completions", gateway.url);
    let question: Value = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    post(&url, &headers, &question).whole();
    gateway.stop();
    assert_eq!(
        said(&home, "s"),
        ["primary user: hi", "primary assistant: Is there anything else?"]
    );
    assert!(is_kept(&home, "0b9f5c2e-5f0f-4f57-9d55-6f0f1c2d3e4f"), "no secret");
}
