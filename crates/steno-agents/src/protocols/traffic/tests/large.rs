//! Bodies over the decoding limit.

use std::io::{Read, Write};

use super::*;
use crate::protocols::traffic::decoded_body::{MAX_REQUEST_BYTES, MAX_RESPONSE_BYTES};

const CHAT: &str = "/v1/chat/completions";

const TOO_LARGE: &str = "MiB; it is recorded, but the rest is not decoded";

fn gzip(mut body: impl Read) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::copy(&mut body, &mut gzip).unwrap();
    gzip.finish().unwrap()
}

/// Some text, padded with spaces over the limit.
fn padded(text: &str) -> impl Read {
    text.as_bytes().chain(std::io::repeat(b' ').take(MAX_REQUEST_BYTES as u64))
}

/// A whole exchange with these response bytes.
fn answered(coding: Option<&str>, chunks: &[&[u8]]) -> Tape {
    let mut tape = Tape::default();
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}]});
    let exchange = tape.ask(CHAT, &request);
    let mut head = TrafficPiece::new(TrafficPieceKind::Response, exchange.as_str());
    head.status = Some(200);
    head.headers.extend(coding.map(|coding| ("content-encoding".to_owned(), coding.to_owned())));
    tape.take(&head);
    for chunk in chunks {
        tape.take(&TrafficPiece::new_chunk(&exchange, 1, chunk));
    }
    tape.end(&exchange, None);
    tape
}

#[test]
fn of_a_compressed_answer_only_so_much_is_unpacked() {
    let error = format!("system error: the response is larger than 16 {TOO_LARGE}");
    let tape = answered(Some("gzip"), &[&gzip(padded("{\"choices\":[]"))]);
    assert_eq!(tape.lines(), ["user text: Hello", &error]);
    let zstd = zstd::encode_all(padded("{\"choices\":[]"), 1).unwrap();
    assert_eq!(answered(Some("zstd"), &[&zstd]).lines(), ["user text: Hello", &error]);
    // The events of a stream before the limit are decoded.
    let event = json!({"id": "c1", "object": "chat.completion.chunk", "model": "m-1",
        "choices": [{"index": 0, "delta": {"content": "Hi"}}]});
    let tape = answered(Some("gzip"), &[&gzip(padded(&format!("data: {event}\n\n:")))]);
    assert_eq!(tape.lines(), ["user text: Hello", "assistant text: Hi", &error]);
}

#[test]
fn a_window_that_http_does_not_allow_is_not_made() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(b"{\"choices\":[]}").unwrap();
    // A frame without a content size has a window size.
    let tape = answered(Some("zstd"), &[&encoder.finish().unwrap()]);
    assert_eq!(tape.lines(), ["user text: Hello", "assistant text: "]);
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
            tape.take(&TrafficPiece::new_chunk(exchange, 1, &block));
        }
        assert!(tape.decoder.held_bytes() <= 2 * MAX_RESPONSE_BYTES + 2);
    }
    exchanges.iter().for_each(|exchange| tape.end(exchange, None));
    assert_eq!(tape.decoder.held_bytes(), 0);
    let errors = tape.lines().iter().filter(|line| line.ends_with(TOO_LARGE)).count();
    assert_eq!(errors, 4);
}

#[test]
fn reports_a_request_that_is_too_large() {
    let mut tape = Tape::default();
    let mut piece = TrafficPiece::new(TrafficPieceKind::Request, "x");
    piece.path = Some(CHAT.into());
    piece.headers = vec![("Content-Encoding".to_owned(), "gzip".to_owned())];
    let body = gzip(padded("{\"model\":\"m\",\"messages\":[]"));
    tape.take(&piece.with_bytes(&body));
    assert_eq!(
        tape.lines_with_source(),
        [format!("primary system error: the request is larger than 32 {TOO_LARGE}")]
    );
}

/// A request with its body in several pieces.
fn uploaded(tape: &mut Tape, path: &str, content_type: &str, parts: &[&[u8]]) {
    let mut piece = TrafficPiece::new(TrafficPieceKind::Request, "x");
    (piece.path, piece.is_uploaded) = (Some(path.to_owned().into()), true);
    piece.headers = vec![("content-type".to_owned(), content_type.to_owned())];
    tape.take(&piece);
    parts.iter().for_each(|part| tape.take(&TrafficPiece::new_upload("x", 1, part)));
}

#[test]
fn decodes_a_request_in_pieces_when_complete() {
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}]});
    let request = request.to_string();
    for cut in 0..=request.len() {
        let (first, second) = request.as_bytes().split_at(cut);
        let mut tape = Tape::default();
        uploaded(&mut tape, CHAT, "application/json", &[first, second]);
        assert!(tape.entries.is_empty());
        tape.take(&TrafficPiece::new(TrafficPieceKind::UploadEnd, "x"));
        assert_eq!(tape.lines(), ["user text: Hello"], "{cut}");
    }
    // An upload error becomes an entry.
    let mut tape = Tape::default();
    uploaded(&mut tape, CHAT, "application/json", &[request.as_bytes()]);
    let mut end = TrafficPiece::new(TrafficPieceKind::UploadEnd, "x");
    end.error = Some("recording paused".into());
    tape.take(&end);
    assert_eq!(tape.lines(), ["user text: Hello", "system error: recording paused"]);
    // A request body without an end is decoded at the end of the exchange.
    let mut tape = Tape::default();
    uploaded(&mut tape, CHAT, "application/json", &[request.as_bytes()]);
    tape.end("x", Some("cut"));
    assert_eq!(tape.lines(), ["user text: Hello", "system error: cut"]);
}

#[test]
fn a_transcription_names_its_file() {
    let body = b"--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n--b\r\n\
        Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n\xff\x00\r\n--b--\r\n";
    let mut tape = Tape::default();
    let kind = "multipart/form-data; boundary=b";
    uploaded(&mut tape, "/v1/audio/transcriptions", kind, &[body]);
    tape.take(&TrafficPiece::new(TrafficPieceKind::UploadEnd, "x"));
    let answer = json!({"text": "Hello", "usage": {"type": "tokens", "input_tokens": 7, "output_tokens": 2}});
    tape.say("x", 200, &[&answer.to_string()]);
    tape.end("x", None);
    let file = format!("user text: [a.wav, data, 2 bytes, blake3 {}]", blake3::hash(b"\xff\x00"));
    assert_eq!(tape.lines(), [file.as_str(), "assistant text: Hello"]);
    assert_eq!(tape.entries[1].model.as_deref(), Some("whisper-1"));
    assert_eq!((tape.usage().input, tape.usage().output), (7, 2));
}
