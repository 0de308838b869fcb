//! Truncated streams, errors, and other content encodings.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use proptest::prelude::*;

use super::*;

/// The same response, compressed by another program.
const BROTLI: &str = "i0cAAICqqqrq/3Sns7qD+1UOJz/cHRwM1NXE3cTBVMXARA4OYGCwATc4hoFiiHMAnAl9YDNCo+Dvn7aMPS81r837\
    tmqaDwrdZ10R+uVOoS1uTQN5HtiY9Y/cCl0j6leRg91XRagRFllHUmg+UkciPIyz8LFhsUy71vCBEOkb5+sc";

const CHAT: &str = "/v1/chat/completions";

fn hello() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}]})
}

fn chunk(text: &str) -> String {
    let chunk = json!({"id": "c1", "object": "chat.completion.chunk", "model": "m-1",
        "choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {chunk}\n\n")
}

#[test]
fn a_cut_stream_keeps_its_text_and_error() {
    let response = json!({"id": "r", "object": "response", "model": "m-1", "output": []});
    let item = json!({"type": "message", "role": "assistant", "content": []});
    let start =
        json!({"id": "m", "type": "message", "role": "assistant", "model": "m-1", "content": []});
    let events = [
        (
            "/v1/responses",
            json!({"model": "m", "input": "Hello"}),
            sse(&[
                json!({"type": "response.created", "response": response}),
                json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
                json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hel"}),
                json!({"type": "response.output_text.delta", "output_index": 0, "delta": "lo y"}),
            ]),
        ),
        (
            "/v1/messages",
            hello(),
            sse(&[
                json!({"type": "message_start", "message": start}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello y"}}),
            ]),
        ),
        (CHAT, hello(), chunk("Hello") + &chunk(" y") + "data: {\"id\":\"c1\",\"ob"),
        (
            "/v1beta/models/m:streamGenerateContent",
            json!({"contents": "Hello"}),
            sse(&[
                json!({"candidates": [{"content": {"parts": [{"text": "Hello y"}]}}], "modelVersion": "m-1"}),
            ]),
        ),
    ];
    for (path, request, body) in events {
        for (error, reason) in [
            (Some("connection reset"), "connection reset"),
            (None, "the stream ended before its last event"),
        ] {
            let mut tape = Tape::default();
            let exchange = tape.ask(path, &request);
            tape.say(&exchange, 200, &[&body]);
            tape.end(&exchange, error);
            let expected =
                ["user text: Hello", "assistant text: Hello y", &format!("system error: {reason}")];
            assert_eq!(tape.lines(), expected, "{path}");
            assert_eq!(tape.entries[1].model.as_deref(), Some("m-1"), "{path}");
        }
    }
}

#[test]
fn emits_an_unended_exchange_at_the_end_of_the_recording() {
    let mut tape = Tape::default();
    let exchange = tape.ask(CHAT, &hello());
    tape.say(&exchange, 200, &[&chunk("Hel"), &chunk("lo")]);
    assert_eq!(tape.lines(), ["user text: Hello"]);
    let rest = tape.decoder.finish();
    let rest: Vec<_> = rest.iter().map(line).collect();
    let cut = "primary system error: the recording ended in the middle of it";
    assert_eq!(rest, ["primary assistant text: Hello", cut]);
    assert!(tape.decoder.finish().is_empty());
}

#[test]
fn emits_errors_of_all_vendors_and_a_retry_stays_in_the_conversation() {
    let gemini =
        json!({"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}});
    for (path, error) in [
        (CHAT, json!({"error": {"message": "slow down", "type": "requests"}})),
        (
            "/v1/messages",
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "slow down"}}),
        ),
        ("/v1/responses", json!({"error": {"message": "slow down"}})),
        ("/v1beta/models/m:generateContent", gemini.clone()),
        ("/v1beta/models/m:streamGenerateContent", json!([gemini])),
    ] {
        let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}],
            "input": "Hello", "contents": [{"role": "user", "parts": [{"text": "Hello"}]}]});
        let mut tape = Tape::default();
        for _ in 0..2 {
            let exchange = tape.ask(path, &request);
            tape.say(&exchange, 429, &[&error.to_string()]);
            tape.end(&exchange, None);
        }
        let refused = "system error: HTTP 429: slow down";
        assert_eq!(tape.lines(), ["user text: Hello", refused, refused], "{path}");
        assert_eq!(about(&tape.entries[1], "status"), json!(429));
    }
}

#[test]
fn emits_a_mid_stream_error_after_the_text() {
    let mut tape = Tape::default();
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let start =
        json!({"id": "m", "type": "message", "role": "assistant", "model": "m-1", "content": []});
    tape.stream("/v1/messages", &hello(), &[
        json!({"type": "message_start", "message": start}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hm"}}),
        overloaded,
    ]);
    assert_eq!(
        tape.lines(),
        ["user text: Hello", "assistant text: Hm", "system error: Overloaded"]
    );
}

#[test]
fn a_retry_is_marked_and_repeats_no_prompt() {
    let mut tape = Tape::default();
    let first = tape.ask(CHAT, &hello());
    tape.say(&first, 529, &["{\"error\": \"overloaded\"}"]);
    tape.end(&first, None);
    // Part of the response arrives, then the connection breaks.
    let second = tape.ask(CHAT, &hello());
    tape.say(&second, 200, &[&chunk("Hel")]);
    tape.end(&second, Some("connection reset"));
    tape.stream(
        CHAT,
        &hello(),
        &[json!({"id": "c3", "object": "chat.completion.chunk", "model": "m-1",
        "choices": [{"index": 0, "delta": {"content": "Hello you"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2}})],
    );
    assert_eq!(
        tape.lines_with_source(),
        [
            "primary user text: Hello",
            "primary system error: HTTP 529: overloaded",
            "primary assistant text: Hel",
            "primary system error: connection reset",
            "primary assistant text: Hello you",
        ]
    );
    let attempts: Vec<_> = tape
        .entries
        .iter()
        .map(|entry| (about(entry, "attempt"), about(entry, "retry_of")))
        .collect();
    let none = (json!(null), json!(null));
    let (again, last) = ((json!(2), json!("x1")), (json!(3), json!("x2")));
    assert_eq!(attempts, [none.clone(), none, again.clone(), again, last]);
    assert_eq!((tape.usage().input, tape.usage().output), (3, 2));
    // The next request continues the conversation.
    let more = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello you"}, {"role": "user", "content": "And?"}]});
    tape.ask(CHAT, &more);
    assert_eq!(tape.lines_with_source().last().unwrap(), "primary user text: And?");
}

#[test]
fn an_answer_that_a_provider_gives_again_for_the_same_key_counts_once() {
    let embedding = json!({"object": "list", "model": "m-1",
        "usage": {"prompt_tokens": 8, "total_tokens": 8}, "choices": []});
    let mut tape = Tape::default();
    for exchange in ["a", "b"] {
        let mut piece = TrafficPiece::new(TrafficPieceKind::Request, exchange);
        piece.path = Some(CHAT.into());
        piece.headers = vec![("Idempotency-Key".to_owned(), "k1".to_owned())];
        tape.take(&piece.with_bytes(hello().to_string().as_bytes()));
        tape.say(exchange, 200, &[&embedding.to_string()]);
        tape.end(exchange, None);
    }
    assert_eq!(tape.usage().input, 8);
    assert_eq!(about(tape.entries.last().unwrap(), "attempt"), json!(2));
}

#[test]
fn an_attempt_that_the_provider_broke_off_costs_nothing() {
    let start = json!({"id": "m", "type": "message", "role": "assistant", "model": "m-1", "content": [],
        "usage": {"input_tokens": 100, "output_tokens": 1}});
    let mut tape = Tape::default();
    tape.stream("/v1/messages", &hello(), &[
        json!({"type": "message_start", "message": start}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hm"}}),
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ]);
    assert!(tape.usage().is_empty());
    assert_eq!(about(&tape.entries[1], "usage")["input_tokens"], json!(100), "it stays readable");
}

#[test]
fn an_upstream_that_never_answered_is_an_error() {
    let mut tape = Tape::default();
    let exchange = tape.ask(CHAT, &hello());
    tape.end(&exchange, Some("connection refused"));
    assert_eq!(tape.lines(), ["user text: Hello", "system error: connection refused"]);
}

#[test]
fn compressed_answers_are_read_even_when_cut() {
    let body = json!({"id": "c", "object": "chat.completion", "model": "m-1", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]});
    let body = body.to_string();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(body.as_bytes()).unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(body.as_bytes()).unwrap();
    let zstd = zstd::encode_all(body.as_bytes(), 1).unwrap();
    let brotli = BASE64.decode(BROTLI).unwrap();
    for (coding, bytes) in [
        ("gzip", gzip.finish().unwrap()),
        ("deflate", zlib.finish().unwrap()),
        ("zstd", zstd),
        ("br", brotli),
    ] {
        let mut tape = Tape::default();
        let exchange = tape.ask(CHAT, &hello());
        let mut head = TrafficPiece::new(TrafficPieceKind::Response, exchange.as_str());
        head.status = Some(200);
        head.headers = vec![("Content-Encoding".to_owned(), coding.to_owned())];
        tape.take(&head);
        for part in bytes.chunks(7) {
            tape.take(&TrafficPiece::new_chunk(&exchange, 1, part));
        }
        tape.end(&exchange, None);
        assert_eq!(tape.lines(), ["user text: Hello", "assistant text: Hi"], "{coding}");
    }
}

/// A chat completions stream with multi-byte characters, an event of several lines, and comments.
fn odd_stream(end: &str) -> String {
    let first = json!({"id": "c1", "model": "m-1", "choices": [{"index": 0, "delta": {"content": "Gr\u{fc}\u{df}e "}}]});
    let first = serde_json::to_string_pretty(&first).unwrap();
    let lines: String = first.lines().map(|line| format!("data: {line}\n")).collect();
    let second = json!({"id": "c1", "choices": [{"index": 0, "delta": {"content": "\u{1f980}"}, "finish_reason": "stop"}]});
    let stream =
        format!("\u{feff}: hello\n\nid: 7\n{lines}\nretry: 5\ndata:{second}\n\ndata: [DONE]\n\n");
    stream.replace('\n', end)
}

#[test]
fn parses_event_streams_by_the_standard_whatever_their_chunks() {
    for end in ["\n", "\r\n", "\r"] {
        let stream = odd_stream(end).into_bytes();
        for cut in 0..=stream.len() {
            let mut tape = Tape::default();
            let exchange = tape.ask(CHAT, &hello());
            tape.say(&exchange, 200, &[]);
            for part in [&stream[..cut], &stream[cut..]] {
                tape.take(&TrafficPiece::new_chunk(&exchange, 1, part));
            }
            tape.end(&exchange, None);
            assert_eq!(
                tape.lines(),
                ["user text: Hello", "assistant text: Gr\u{fc}\u{df}e \u{1f980}"],
                "{end:?} cut at {cut}"
            );
        }
    }
}

#[test]
fn nothing_of_a_stream_is_lost_that_lacks_blank_lines_or_its_last_line() {
    let chunks = [chunk("Hel"), chunk("lo")].concat();
    let unended = chunk(" you").trim_end().to_owned();
    let joined = chunks.replace("\n\n", "\n");
    for stream in [format!("{chunks}{unended}"), format!("{joined}{unended}")] {
        let mut tape = Tape::default();
        let exchange = tape.ask(CHAT, &hello());
        tape.say(&exchange, 200, &[&stream]);
        tape.end(&exchange, None);
        assert_eq!(tape.lines()[1], "assistant text: Hello you", "{stream}");
    }
    let mut tape = Tape::default();
    let exchange = tape.ask(CHAT, &hello());
    tape.say(&exchange, 200, &[&chunk("Hi"), "data: still here\n\n", "data: [DONE]\n\n"]);
    tape.end(&exchange, None);
    assert_eq!(tape.lines(), ["user text: Hello", "assistant text: Hi"]);
    assert_eq!(about(&tape.entries[1], "unread_events"), json!(1));
}

#[test]
fn a_list_that_was_cut_keeps_its_whole_items() {
    let piece = |text: &str| json!({"candidates": [{"content": {"parts": [{"text": text}]}}]});
    let list = json!([piece("Hel"), piece("lo"), piece("lost")]).to_string();
    let mut tape = Tape::default();
    let exchange =
        tape.ask("/v1beta/models/m:streamGenerateContent", &json!({"contents": "Hello"}));
    tape.say(&exchange, 200, &[&list[..list.len() - 10]]);
    tape.end(&exchange, Some("connection reset"));
    assert_eq!(
        tape.lines(),
        ["user text: Hello", "assistant text: Hello", "system error: connection reset"]
    );
}

#[test]
fn a_client_that_closes_after_the_last_event_has_got_all() {
    let start =
        json!({"id": "m", "type": "message", "role": "assistant", "model": "m-1", "content": []});
    let whole = json!({"id": "r", "object": "response", "status": "completed", "model": "m-1", "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}]});
    let candidate = json!({"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"});
    let streams = [
        (CHAT, chunk("Hi") + "data: [DONE]\n\n"),
        (
            "/v1/messages",
            sse(&[
                json!({"type": "message_start", "message": start}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}}),
                json!({"type": "message_stop"}),
            ]),
        ),
        ("/v1/responses", sse(&[json!({"type": "response.completed", "response": whole})])),
        ("/v1beta/models/m:streamGenerateContent", sse(&[json!({"candidates": [candidate]})])),
    ];
    for (path, stream) in streams {
        let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}],
            "input": "Hello", "contents": "Hello"});
        let closed = "the client closed the connection";
        let mut tape = Tape::default();
        let exchange = tape.ask(path, &request);
        tape.say(&exchange, 200, &[&stream]);
        tape.end(&exchange, Some(closed));
        assert_eq!(tape.lines(), ["user text: Hello", "assistant text: Hi"], "{path}");
        assert_eq!(about(&tape.entries[1], "connection_error"), json!(closed));
    }
    // One of two choices has not ended.
    let choice = |index: u64, reason: Value| {
        json!({"id": "c", "object": "chat.completion.chunk", "choices":
            [{"index": index, "delta": {"content": "Hi"}, "finish_reason": reason}]})
    };
    let mut tape = Tape::default();
    let exchange = tape.ask(CHAT, &hello());
    tape.say(&exchange, 200, &[&sse(&[choice(0, json!("stop")), choice(1, json!(null))])]);
    tape.end(&exchange, Some("cut"));
    assert_eq!(tape.lines().last().unwrap(), "system error: cut");
}

#[test]
fn emits_thoughts_but_does_not_compare_them() {
    let think = json!({"type": "thinking", "thinking": "Hm", "signature": "s"});
    let text = json!({"type": "text", "text": "Hi"});
    let mut tape = Tape::default();
    tape.exchange("/v1/messages", &hello(), &json!({"id": "m1", "type": "message", "role": "assistant",
        "model": "m-1", "content": [think, text], "usage": {"input_tokens": 1, "output_tokens": 2}}));
    for content in [json!([think, text]), json!([text]), json!("Hi")] {
        let mut again = tape.decoder.clone();
        let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"},
            {"role": "assistant", "content": content}, {"role": "user", "content": "And?"}]});
        let bytes = request.to_string().into_bytes();
        let mut piece = TrafficPiece::new(TrafficPieceKind::Request, "again");
        piece.path = Some("/v1/messages".into());
        let actual: Vec<_> =
            again.decode_piece(piece.with_bytes(&bytes)).iter().map(line).collect();
        assert_eq!(actual, ["primary user text: And?"]);
    }
    assert_eq!(tape.lines(), ["user text: Hello", "assistant thinking: Hm", "assistant text: Hi"]);
}

#[test]
fn a_request_that_is_no_json_has_an_answer_all_the_same() {
    let mut tape = Tape::default();
    let mut piece = TrafficPiece::new(TrafficPieceKind::Request, "x");
    piece.path = Some(CHAT.into());
    tape.take(&piece.with_bytes(b"\xff no json"));
    tape.say("x", 400, &["what?"]);
    tape.end("x", None);
    assert_eq!(tape.lines_with_source(), ["primary system error: HTTP 400: what?"]);
}

/// One path of each API.
const PATHS: [&str; 14] = [
    "/v1/chat/completions",
    "/v1/messages",
    "/v1/responses",
    "/v1/m:streamGenerateContent",
    "/v1/completions",
    "/api/chat",
    "/api/generate",
    "/model/m/converse-stream",
    "/model/m/invoke",
    "/v2/chat",
    "/v1/embeddings",
    "/v1/images/generations",
    "/v1/audio/transcriptions",
    "/v1/messages/batches/b/results",
];

/// Fragments of requests and responses, combined in any order.
const WORDS: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "null",
    "1",
    "\"x\"",
    "\"messages\"",
    "\"role\"",
    "\"assistant\"",
    "\"content\"",
    "\"choices\"",
    "\"delta\"",
    "\"index\"",
    "\"contents\"",
    "\"parts\"",
    "\"candidates\"",
    "\"input\"",
    "\"output\"",
    "\"type\"",
    "data: ",
    "\n\n",
];

proptest! {
    #[test]
    fn no_traffic_panics(
        words in proptest::collection::vec(0..WORDS.len(), 0..60),
        answer in proptest::collection::vec(0..WORDS.len(), 0..60),
        path in 0..PATHS.len(),
        status in 0..1000_u16,
        bytes in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let text = |words: &[usize]| words.iter().map(|word| WORDS[*word]).collect::<String>();
        let path = PATHS[path];
        let mut tape = Tape::default();
        for exchange in ["a", "b"] {
            let request = format!("{{\"messages\":[{}]}}", text(&words));
            let body = if exchange == "a" { text(&words) } else { request };
            let mut piece = TrafficPiece::new(TrafficPieceKind::Request, exchange);
            piece.path = Some(path.into());
            tape.take(&piece.with_bytes(body.as_bytes()));
        }
        tape.say("a", status, &[&text(&answer)]);
        tape.take(&TrafficPiece::new_chunk("b", u64::MAX, &bytes));
        tape.end("a", None);
        tape.decoder.finish();
    }
}
