//! Joins the pieces of a text that a server streamed: lines of JSON that differ only in one string.
//!
//! A key that is divided between two such lines is in neither of them.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;

/// A longer string is not a piece of a stream.
const MAX_PIECE_BYTES: usize = 1000;

static OBJECT_END: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new(b"\"}"));

/// Strings of successive lines, joined.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamedText {
    pub(crate) joined: Vec<u8>,
    /// For each piece, where it starts in the joined text and in the original.
    pieces: Vec<(usize, usize)>,
}

impl StreamedText {
    fn push_piece(&mut self, text: &[u8], piece: Range<usize>) {
        self.pieces.push((self.joined.len(), piece.start));
        self.joined.extend_from_slice(&text[piece]);
    }

    /// The ranges of the original text that a range of the joined one comes from, in order: one for each piece.
    pub(crate) fn original_ranges(&self, joined: &Range<usize>) -> Vec<Range<usize>> {
        let ends = self.pieces.iter().skip(1).map(|piece| piece.0).chain([self.joined.len()]);
        let pieces = self.pieces.iter().zip(ends);
        let overlaps = pieces.filter_map(|((start, original), end)| {
            let (first, last) = (joined.start.max(*start), joined.end.min(end));
            (first < last).then(|| original + first - start..original + last - start)
        });
        overlaps.collect()
    }
}

/// The streams in a text.
pub(crate) fn find_streams(text: &[u8]) -> Vec<StreamedText> {
    let mut streams = Vec::new();
    if memchr::memchr(b'\n', text).is_none() || OBJECT_END.find(text).is_none() {
        return streams;
    }
    let mut stream = StreamedText::default();
    let mut prefix: &[u8] = b"";
    let mut last = 0..0;
    for line in json_lines(text) {
        if prefix.is_empty() || !text[line.clone()].starts_with(prefix) {
            close_stream(&mut stream, &mut streams);
            prefix = shared_prefix(&text[last.clone()], &text[line.clone()]);
            if !prefix.is_empty()
                && let Some(piece) = piece_range(text, &last, prefix.len())
            {
                stream.push_piece(text, piece);
            }
        }
        match piece_range(text, &line, prefix.len()).filter(|_| !prefix.is_empty()) {
            Some(piece) => stream.push_piece(text, piece),
            None => prefix = b"",
        }
        last = line;
    }
    close_stream(&mut stream, &mut streams);
    streams
}

fn close_stream(stream: &mut StreamedText, streams: &mut Vec<StreamedText>) {
    let closed = std::mem::take(stream);
    if closed.pieces.len() > 1 {
        streams.push(closed);
    }
}

/// The lines with an object of JSON, without those that name events.
fn json_lines(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', text).chain([text.len()]);
    let lines = ends.map(move |end| {
        let range = start..end;
        start = end + 1;
        range
    });
    lines.filter(|line| {
        let line = text[line.clone()].trim_ascii_start();
        line.starts_with(b"{") || line.starts_with(b"data:")
    })
}

/// What two lines share, up to the start of the string in which they differ. Empty if there is none.
fn shared_prefix<'t>(first: &'t [u8], second: &[u8]) -> &'t [u8] {
    let shared = first.iter().zip(second).take_while(|(a, b)| a == b).count();
    let shared = &first[..shared];
    let end = memmem::rfind(shared, b":\"").map(|at| at + 2);
    let spaced = memmem::rfind(shared, b": \"").map(|at| at + 3);
    &shared[..end.max(spaced).unwrap_or(0)]
}

/// The string that starts at an offset of a line.
fn piece_range(text: &[u8], line: &Range<usize>, offset: usize) -> Option<Range<usize>> {
    let start = line.start + offset;
    let rest = text.get(start..line.end)?;
    let length = rest.iter().take(MAX_PIECE_BYTES).position(|byte| *byte == b'"')?;
    Some(start..start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_stream_are_joined_and_mapped_back() {
        let text = "x\ndata: {\"i\":0,\"text\":\"ab\"}\n\ndata: {\"i\":0,\"text\":\"cd\"}\n\ndata: {\"i\":0,\"text\":\"ef\"}\n";
        let streams = find_streams(text.as_bytes());
        assert_eq!(streams.len(), 1);
        assert_eq!(streams[0].joined, b"abcdef");
        let ranges = streams[0].original_ranges(&(1..5));
        let parts: Vec<_> = ranges.into_iter().map(|range| &text[range]).collect();
        assert_eq!(parts, ["b", "cd", "e"]);
    }

    #[test]
    fn other_lines_are_no_stream() {
        assert!(find_streams(b"{\"a\":1}\n{\"a\":2}\n").is_empty());
        assert!(find_streams(b"{\"a\":\"x\"}\nplain\n").is_empty());
        assert!(find_streams(b"").is_empty());
    }
}
