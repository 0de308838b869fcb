//! WebSockets through the gateway: frames pass unchanged, and messages are recorded.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};

use flate2::{Compress, Compression, FlushCompress};
use serde_json::{Value, json};

use crate::gateway::{Server, is_kept, said};
use crate::harness::Home;

const KEY: &str = "sk-test-0123456789abcdef";

/// Encodes a text frame; client frames are masked.
pub(crate) fn frame(first: u8, is_masked: bool, payload: &[u8]) -> Vec<u8> {
    let mask = if is_masked { [7, 11, 13, 17] } else { [0; 4] };
    let bit = if is_masked { 0x80 } else { 0 };
    let mut frame = vec![first];
    match payload.len() {
        length @ 0..=125 => frame.push(bit | length as u8),
        length @ 126..=0xffff => {
            frame.push(bit | 126);
            frame.extend((length as u16).to_be_bytes());
        }
        length => {
            frame.push(bit | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    if is_masked {
        frame.extend(mask);
    }
    frame.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
    frame
}

pub(crate) fn sent(event: &Value) -> Vec<u8> {
    frame(0x81, true, event.to_string().as_bytes())
}

pub(crate) fn answered(event: &Value) -> Vec<u8> {
    frame(0x81, false, event.to_string().as_bytes())
}

/// Reads the head of a request or a response.
pub(crate) fn read_head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// One step of a conversation on a connection.
pub(crate) enum Step {
    Client(Vec<u8>),
    Upstream(Vec<u8>),
}

/// An upstream that accepts one connection and plays its side. Returns the request's header and all received bytes.
fn upstream(extensions: &'static str, steps: Vec<Step>) -> (u16, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let head = read_head(&mut stream);
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n{extensions}X-Odd-CASE: yes\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).unwrap();
        let mut came = Vec::new();
        for step in steps {
            match step {
                Step::Upstream(bytes) => stream.write_all(&bytes).unwrap(),
                Step::Client(bytes) => {
                    let mut read = vec![0; bytes.len()];
                    stream.read_exact(&mut read).unwrap();
                    came.extend(read);
                }
            }
        }
        sender.send((head, came)).unwrap();
    });
    (port, receiver)
}

fn gateway(home: &Home, port: u16) -> Server {
    let upstream = format!("openai=http://127.0.0.1:{port}");
    let args =
        ["gateway", "--listen", "127.0.0.1:0", "--session", "s", "--upstream", upstream.as_str()];
    Server::start(home.command(&args))
}

/// Opens a connection at a path of the gateway. Returns the response's header.
pub(crate) fn open(stream: &mut (impl Read + Write), host: &str, path: &str) -> String {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\nAuthorization: Bearer {KEY}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    read_head(stream)
}

/// Plays the client's side; each byte of the upstream must arrive unchanged.
pub(crate) fn play(stream: &mut (impl Read + Write), steps: &[Step]) {
    for step in steps {
        match step {
            Step::Client(bytes) => stream.write_all(bytes).unwrap(),
            Step::Upstream(bytes) => {
                let mut read = vec![0; bytes.len()];
                stream.read_exact(&mut read).unwrap();
                assert_eq!(read, *bytes);
            }
        }
    }
}

fn copied(steps: &[Step]) -> Vec<Step> {
    let copy = |step: &Step| match step {
        Step::Client(bytes) => Step::Client(bytes.clone()),
        Step::Upstream(bytes) => Step::Upstream(bytes.clone()),
    };
    steps.iter().map(copy).collect()
}

fn client_bytes(steps: &[Step]) -> Vec<u8> {
    let bytes = steps.iter().filter_map(|step| match step {
        Step::Client(bytes) => Some(bytes.clone()),
        Step::Upstream(_) => None,
    });
    bytes.flatten().collect()
}

/// Plays a conversation through the gateway. Returns the header that the upstream received.
fn converse(home: &Home, path: &str, extensions: &'static str, steps: &[Step]) -> String {
    let (port, came) = upstream(extensions, copied(steps));
    let gateway = gateway(home, port);
    let host = gateway.url.strip_prefix("http://").unwrap().to_owned();
    let mut stream = TcpStream::connect(&host).unwrap();
    let head = open(&mut stream, &host, path);
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.contains("X-Odd-CASE: yes"), "{head}");
    play(&mut stream, steps);
    let (head, bytes) = came.recv().unwrap();
    assert_eq!(bytes, client_bytes(steps));
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty(), "{rest:?}");
    gateway.stop();
    head
}

/// Returns the events of a response with one text.
pub(crate) fn response(id: &str, text: &str) -> Vec<Value> {
    let item = json!({"type": "message", "id": format!("msg_{id}"), "role": "assistant",
        "status": "completed", "content": [{"type": "output_text", "text": text}]});
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "total_tokens": 15});
    let begun = json!({"id": id, "object": "response", "model": "m-1", "output": []});
    vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.output_item.added", "output_index": 0,
            "item": {"type": "message", "id": format!("msg_{id}"), "role": "assistant", "content": []}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": text}),
        json!({"type": "response.completed", "response": {"id": id, "object": "response", "status": "completed",
            "model": "m-1", "output": [item], "usage": usage}}),
    ]
}

pub(crate) fn create(text: &str, previous: Option<&str>) -> Value {
    let input = json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]);
    let mut event = json!({"type": "response.create", "model": "m", "instructions": "Be brief", "input": input});
    if let Some(previous) = previous {
        event["previous_response_id"] = json!(previous);
    }
    event
}

fn from_upstream(events: &[Value]) -> impl Iterator<Item = Step> {
    events.iter().map(|event| Step::Upstream(answered(event))).collect::<Vec<_>>().into_iter()
}

fn tokens(home: &Home) -> (Value, Value) {
    let row: Value = serde_json::from_str(home.steno(&["list", "--json"]).ok().trim()).unwrap();
    (row["tokens"]["input"].clone(), row["tokens"]["output"].clone())
}

#[test]
fn responses_pass_unchanged_and_become_entries() {
    let home = Home::new();
    let mut steps = vec![
        Step::Client(sent(&create("Count herons", None))),
        Step::Upstream(frame(0x89, false, b"still there?")),
        Step::Client(frame(0x8a, true, b"still there?")),
    ];
    steps.extend(from_upstream(&response("resp_1", "Three.")));
    steps.push(Step::Client(sent(&create("And ospreys?", Some("resp_1")))));
    steps.extend(from_upstream(&response("resp_2", "None.")));
    steps.push(Step::Client(frame(0x88, true, &1000u16.to_be_bytes())));
    steps.push(Step::Upstream(frame(0x88, false, &1000u16.to_be_bytes())));
    let head = converse(&home, "/openai/v1/responses", "", &steps);
    assert!(head.starts_with("GET /v1/responses HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("Bearer {KEY}")), "{head}");
    assert!(head.contains("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="), "{head}");
    assert_eq!(
        said(&home, "s"),
        [
            "primary system: Be brief",
            "primary user: Count herons",
            "primary assistant: Three.",
            "primary user: And ospreys?",
            "primary assistant: None.",
        ]
    );
    assert_eq!(tokens(&home), (json!(20), json!(10)));
    assert!(!is_kept(&home, KEY));
}

#[test]
fn compressed_messages_are_read_and_pass_compressed() {
    let home = Home::new();
    let deflater = || Compress::new(Compression::default(), false);
    let deflated = |deflater: &mut Compress, event: &Value| {
        let mut out = Vec::with_capacity(4096);
        let text = event.to_string();
        deflater.compress_vec(text.as_bytes(), &mut out, FlushCompress::Sync).unwrap();
        out.truncate(out.len() - 4);
        out
    };
    let (mut up, mut down) = (deflater(), deflater());
    let asked = deflated(&mut up, &create("Count herons", None));
    let mut steps = vec![Step::Client(frame(0xc1, true, &asked))];
    for event in response("resp_1", "Three.") {
        steps.push(Step::Upstream(frame(0xc1, false, &deflated(&mut down, &event))));
    }
    let agreed = "Sec-WebSocket-Extensions: permessage-deflate\r\n";
    converse(&home, "/v1/responses", agreed, &steps);
    let printed = said(&home, "s");
    assert_eq!(printed[1..3], ["primary user: Count herons", "primary assistant: Three."]);
}

#[test]
fn a_message_is_recorded_before_it_is_forwarded() {
    let home = Home::new();
    let events = response("resp_1", "Seven bitterns, precisely.");
    let steps = vec![
        Step::Client(sent(&create("Count bitterns", None))),
        Step::Upstream(answered(&events[0])),
        Step::Upstream(answered(&events[1])),
        Step::Upstream(answered(&events[2])),
    ];
    // The upstream waits for more, so the connection stays open during the checks.
    let waiting = [copied(&steps), vec![Step::Client(vec![0])]].concat_steps();
    let (port, _came) = upstream("", waiting);
    let gateway = gateway(&home, port);
    let host = gateway.url.strip_prefix("http://").unwrap().to_owned();
    let mut stream = TcpStream::connect(&host).unwrap();
    open(&mut stream, &host, "/v1/responses");
    play(&mut stream, &steps);
    assert!(is_kept(&home, "Count bitterns"));
    assert!(is_kept(&home, "Seven bitterns, precisely."));
    drop(gateway);
    // After the kill, the received part of the response is shown with its error.
    let printed = said(&home, "s");
    assert_eq!(printed[2], "primary assistant: Seven bitterns, precisely.", "{printed:?}");
    assert!(printed[3].starts_with("primary system: "), "{printed:?}");
}

trait ConcatSteps {
    fn concat_steps(self) -> Vec<Step>;
}

impl ConcatSteps for [Vec<Step>; 2] {
    fn concat_steps(self) -> Vec<Step> {
        self.into_iter().flatten().collect()
    }
}

#[test]
fn a_response_cut_by_the_upstream_is_shown_with_its_error() {
    let home = Home::new();
    let events = response("resp_1", "Three, I th");
    let mut steps = vec![Step::Client(sent(&create("Count herons", None)))];
    steps.extend(from_upstream(&events[..3]));
    converse(&home, "/v1/responses", "", &steps);
    let printed = said(&home, "s");
    assert_eq!(printed[2], "primary assistant: Three, I th");
    assert_eq!(printed[3], "primary system: upstream closed the connection");
    assert_eq!(printed.len(), 4);
}

#[test]
fn errors_of_the_server_are_recorded() {
    let home = Home::new();
    let error = json!({"type": "error", "status": 400,
        "error": {"type": "invalid_request_error", "message": "No such model"}});
    let steps =
        [Step::Client(sent(&create("Count herons", None))), Step::Upstream(answered(&error))];
    converse(&home, "/v1/responses", "", &steps);
    assert_eq!(
        said(&home, "s")[1..],
        ["primary user: Count herons", "primary system: No such model"]
    );
}

#[test]
fn realtime_events_become_entries_without_their_sound() {
    let home = Home::new();
    let sound = "UklGRiQ1".repeat(100);
    let events = [
        (
            true,
            json!({"type": "session.update", "session": {"instructions": "Speak slowly",
            "audio": {"input": {"transcription": {"model": "whisper-1"}}}}}),
        ),
        (
            false,
            json!({"type": "session.updated", "session": {"model": "gpt-realtime", "instructions": "Speak slowly"}}),
        ),
        (true, json!({"type": "input_audio_buffer.append", "audio": sound})),
        (false, json!({"type": "input_audio_buffer.committed", "item_id": "item_1"})),
        (
            false,
            json!({"type": "response.created", "response": {"id": "resp_1", "object": "realtime.response", "output": []}}),
        ),
        (
            false,
            json!({"type": "response.output_item.added", "output_index": 0,
            "item": {"id": "item_2", "type": "function_call", "name": "count", "call_id": "call_1", "arguments": ""}}),
        ),
        // Transcripts arrive in any order.
        (
            false,
            json!({"type": "conversation.item.input_audio_transcription.completed", "item_id": "item_1",
            "transcript": "Count the herons.\n"}),
        ),
        (
            false,
            json!({"type": "response.done", "response": {"id": "resp_1", "object": "realtime.response",
            "status": "completed", "output": [{"id": "item_2", "type": "function_call", "name": "count",
                "call_id": "call_1", "arguments": "{\"what\":\"herons\"}"}],
            "usage": {"total_tokens": 30, "input_tokens": 20, "output_tokens": 10,
                "input_token_details": {"cached_tokens": 4}}}}),
        ),
        (
            true,
            json!({"type": "conversation.item.create",
            "item": {"type": "function_call_output", "call_id": "call_1", "output": "3"}}),
        ),
        (true, json!({"type": "response.create"})),
        (
            false,
            json!({"type": "response.created", "response": {"id": "resp_2", "object": "realtime.response", "output": []}}),
        ),
        (false, json!({"type": "response.output_audio.delta", "output_index": 0, "delta": sound})),
        (
            false,
            json!({"type": "response.done", "response": {"id": "resp_2", "object": "realtime.response",
            "status": "completed", "output": [{"id": "item_4", "type": "message", "role": "assistant",
                "content": [{"type": "output_audio", "transcript": "There are three."}]}],
            "usage": {"total_tokens": 9, "input_tokens": 8, "output_tokens": 1}}}),
        ),
        (
            true,
            json!({"type": "conversation.item.create", "item": {"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "Thanks."}]}}),
        ),
    ];
    let steps: Vec<_> = events
        .iter()
        .map(|(is_client, event)| match is_client {
            true => Step::Client(sent(event)),
            false => Step::Upstream(answered(event)),
        })
        .collect();
    converse(&home, "/v1/realtime?model=gpt-realtime", "", &steps);
    assert_eq!(
        said(&home, "s"),
        [
            "primary system: Speak slowly",
            "primary user: Count the herons.",
            "primary assistant: {\n  \"what\": \"herons\"\n}",
            "primary tool: 3",
            "primary assistant: There are three.",
            "primary user: Thanks.",
        ]
    );
    assert_eq!(tokens(&home).1, json!(11));
    assert!(!is_kept(&home, &sound));
    assert!(is_kept(&home, "[600 bytes of audio, not recorded]"));
    let shown = home.steno(&["show", "s", "--json"]).ok();
    let answer: Value = serde_json::from_str(shown.lines().nth(4).unwrap()).unwrap();
    assert_eq!(answer["metadata"]["api"], "realtime");
    assert_eq!(answer["model"], "gpt-realtime");
}

#[test]
fn a_server_without_websockets_is_answered_for_as_it_answers() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_head(&mut stream);
        let answer = "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 6\r\n\r\nby SSE";
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let gateway = gateway(&home, port);
    let host = gateway.url.strip_prefix("http://").unwrap().to_owned();
    let mut stream = TcpStream::connect(&host).unwrap();
    let head = open(&mut stream, &host, "/v1/responses");
    assert!(head.starts_with("HTTP/1.1 426 "), "{head}");
    let mut body = [0; 6];
    stream.read_exact(&mut body).unwrap();
    assert_eq!(&body, b"by SSE");
    drop(stream);
    gateway.stop();
    assert!(said(&home, "s").is_empty());
}
