//! Bodies that are larger than what is read of one.

use std::io::{Read, Write};

use super::*;
use crate::traffic::body::{ANSWER_LIMIT, REQUEST_LIMIT};

const CHAT: &str = "/v1/chat/completions";

const TOO_LARGE: &str = "MiB; it is recorded, but the rest is not read";

fn gzip(mut body: impl Read) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::copy(&mut body, &mut gzip).unwrap();
    gzip.finish().unwrap()
}

/// Some text, then as many blanks as make it larger than the limit.
fn padded(text: &str) -> impl Read {
    text.as_bytes().chain(std::io::repeat(b' ').take(REQUEST_LIMIT as u64))
}

/// A whole exchange with these bytes as its answer.
fn answered(coding: Option<&str>, chunks: &[&[u8]]) -> Tape {
    let mut tape = Tape::default();
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}]});
    let exchange = tape.ask(CHAT, &request);
    let mut head = Piece::new(PieceKind::Response, exchange.as_str());
    head.status = Some(200);
    head.headers.extend(coding.map(|coding| ("content-encoding".to_owned(), coding.to_owned())));
    tape.take(&head);
    for chunk in chunks {
        tape.take(&Piece::chunk(&exchange, 1, chunk));
    }
    tape.end(&exchange, None);
    tape
}

#[test]
fn of_a_compressed_answer_only_so_much_is_unpacked() {
    let error = format!("system error: the answer is larger than 16 {TOO_LARGE}");
    let tape = answered(Some("gzip"), &[&gzip(padded("{\"choices\":[]"))]);
    assert_eq!(tape.said(), ["user text: Hello", &error]);
    let zstd = zstd::encode_all(padded("{\"choices\":[]"), 1).unwrap();
    assert_eq!(answered(Some("zstd"), &[&zstd]).said(), ["user text: Hello", &error]);
    // Of a stream, what had come until then is told.
    let event = json!({"id": "c1", "object": "chat.completion.chunk", "model": "m-1",
        "choices": [{"index": 0, "delta": {"content": "Hi"}}]});
    let tape = answered(Some("gzip"), &[&gzip(padded(&format!("data: {event}\n\n:")))]);
    assert_eq!(tape.said(), ["user text: Hello", "assistant text: Hi", &error]);
}

#[test]
fn a_window_that_http_does_not_allow_is_not_made() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(b"{\"choices\":[]}").unwrap();
    // Without a size of its content, the frame states the window.
    let tape = answered(Some("zstd"), &[&encoder.finish().unwrap()]);
    assert_eq!(tape.said(), ["user text: Hello", "assistant text: "]);
}

#[test]
fn of_all_answers_that_have_not_ended_only_so_much_is_held() {
    let mut tape = Tape::default();
    let block = vec![b' '; 1 << 20];
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}]});
    let exchanges: Vec<_> = (0..4).map(|_| tape.ask(CHAT, &request)).collect();
    for exchange in &exchanges {
        tape.say(exchange, 200, &[]);
        for _ in 0..40 {
            tape.take(&Piece::chunk(exchange, 1, &block));
        }
        assert!(tape.telling.held_bytes() <= 2 * ANSWER_LIMIT + 2);
    }
    exchanges.iter().for_each(|exchange| tape.end(exchange, None));
    assert_eq!(tape.telling.held_bytes(), 0);
    let errors = tape.said().iter().filter(|line| line.ends_with(TOO_LARGE)).count();
    assert_eq!(errors, 4);
}

#[test]
fn a_request_that_is_too_large_is_told_of() {
    let mut tape = Tape::default();
    let mut piece = Piece::new(PieceKind::Request, "x");
    piece.path = Some(CHAT.into());
    piece.headers = vec![("Content-Encoding".to_owned(), "gzip".to_owned())];
    let body = gzip(padded("{\"model\":\"m\",\"messages\":[]"));
    tape.take(&piece.with_bytes(&body));
    assert_eq!(
        tape.told(),
        [format!("primary system error: the request is larger than 32 {TOO_LARGE}")]
    );
}
