//! Parses server-sent events as the WHATWG standard defines them.
//!
//! Two rules differ, so that nothing of a recorded stream is lost: an event without its final blank line is returned
//! too, and invalid UTF-8 is left to the caller.

use memchr::memchr2;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerSentEvent {
    /// The `event` field; empty if missing.
    pub(super) name: Vec<u8>,
    /// The `data` fields, joined by line feeds.
    pub(super) data: Vec<u8>,
    /// Whether the final blank line was present.
    pub(super) is_complete: bool,
}

/// An iterator over the events of a stream.
pub(super) struct ServerSentEvents<'a> {
    rest: &'a [u8],
}

impl<'a> ServerSentEvents<'a> {
    pub(super) fn new(stream: &'a [u8]) -> Self {
        Self { rest: stream.strip_prefix(BYTE_ORDER_MARK).unwrap_or(stream) }
    }

    /// The next line. It ends with CR LF, LF, CR, or the end of the stream.
    fn next_line(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(end) = memchr2(b'\n', b'\r', self.rest) else {
            return Some(std::mem::take(&mut self.rest));
        };
        let line = &self.rest[..end];
        let ending = if self.rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
        self.rest = &self.rest[end + ending..];
        Some(line)
    }
}

impl Iterator for ServerSentEvents<'_> {
    type Item = ServerSentEvent;

    fn next(&mut self) -> Option<ServerSentEvent> {
        let mut event = ServerSentEvent::default();
        let mut has_data = false;
        while let Some(line) = self.next_line() {
            if line.is_empty() {
                if has_data {
                    return Some(ServerSentEvent { is_complete: true, ..event });
                }
                event = ServerSentEvent::default();
                continue;
            }
            match split_field(line) {
                (b"event", value) => event.name = value.to_vec(),
                (b"data", value) => {
                    if std::mem::replace(&mut has_data, true) {
                        event.data.push(b'\n');
                    }
                    event.data.extend_from_slice(value);
                }
                // `id`, `retry`, comments (which have no name), and unknown fields.
                _ => {}
            }
        }
        has_data.then_some(event)
    }
}

/// Splits a line at the first colon, and drops one space after it.
fn split_field(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(colon) = memchr::memchr(b':', line) else { return (line, b"") };
    let value = &line[colon + 1..];
    (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
}

/// Whether bytes start like an event stream. JSON does not.
pub(super) fn is_event_stream(body: &[u8]) -> bool {
    let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body).trim_ascii_start();
    let line = body.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    let (name, _) = split_field(line);
    let is_field = [&b"data"[..], b"event", b"id", b"retry"].contains(&name);
    is_field || line.starts_with(b":")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(stream: &[u8]) -> Vec<(String, String)> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        ServerSentEvents::new(stream).map(|event| (text(event.name), text(event.data))).collect()
    }

    fn data(stream: &str) -> Vec<String> {
        events(stream.as_bytes()).into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn the_examples_of_the_standard() {
        assert_eq!(data("data: YHOO\ndata: +2\ndata: 10\n\n"), ["YHOO\n+2\n10"]);
        let stream = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
        assert_eq!(data(stream), ["first event", "second event", " third event"]);
        // The standard drops the last event, which has no blank line.
        assert_eq!(data("data\n\ndata\ndata\n\ndata:"), ["", "\n", ""]);
        assert_eq!(data("data:test\n\ndata: test\n\n"), ["test", "test"]);
        let named = events(b"event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n");
        assert_eq!(named[1], ("remove".to_owned(), "2153".to_owned()));
    }

    #[test]
    fn an_event_without_data_is_none_and_its_name_is_forgotten() {
        assert_eq!(events(b"event: ping\n\ndata: x\n\n"), [(String::new(), "x".to_owned())]);
    }

    #[test]
    fn every_line_ending_and_a_mark_give_the_same_events() {
        let stream = "event: a\ndata: one\ndata: more\n\n: note\ndata:two\n\n";
        let expected = events(stream.as_bytes());
        for ending in ["\r\n", "\r", "\n"] {
            let other = stream.replace('\n', ending);
            assert_eq!(events(other.as_bytes()), expected, "{ending:?}");
            assert_eq!(events(&[BYTE_ORDER_MARK, other.as_bytes()].concat()), expected);
        }
        // Mixed: CR LF is one line end, LF CR is two.
        assert_eq!(data("data: a\r\ndata: b\n\rdata: c\r\rdata: d\n\r\n"), ["a\nb", "c", "d"]);
    }

    #[test]
    fn recognises_a_stream_by_its_beginning() {
        for stream in ["data: x", "\u{feff}data: x", "\r\n\r\nevent:x", ":", "data\n\n", "id: 1\r"]
        {
            assert!(is_event_stream(stream.as_bytes()), "{stream:?}");
        }
        for other in ["{\"data\": 1}", "", "database: x", "[1]", "date: x"] {
            assert!(!is_event_stream(other.as_bytes()), "{other:?}");
        }
    }

    #[test]
    fn only_the_last_event_may_lack_its_end() {
        let complete: Vec<_> =
            ServerSentEvents::new(b"data: a\n\ndata: b\n").map(|event| event.is_complete).collect();
        assert_eq!(complete, [true, false]);
    }

    proptest! {
        #[test]
        fn no_byte_of_data_is_lost(lines in proptest::collection::vec("[^\r\n]{0,12}", 1..8), end in 0..3_usize) {
            let end = ["\n", "\r\n", "\r"][end];
            let stream: String = lines.iter().map(|line| format!("data: {line}{end}")).collect();
            prop_assert_eq!(data(&stream), [lines.join("\n")]);
        }
    }
}
