//! Parses Amazon's binary event streams (`application/vnd.amazon.eventstream`), which Bedrock sends.
//!
//! A message has a total length, a header length and a checksum of both, then headers, payload, and a checksum of
//! everything before it. An incomplete message, or one with a wrong checksum, ends the stream.

use flate2::Crc;

/// Both lengths and their checksum.
const PRELUDE_BYTES: usize = 12;

/// The checksum after the payload.
const TRAILER_BYTES: usize = 4;

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AwsEvent<'a> {
    /// `:event-type` or `:exception-type`.
    pub(super) name: String,
    /// Whether the message is an error or exception.
    pub(super) is_error: bool,
    pub(super) payload: &'a [u8],
}

/// The complete messages of a stream, and whether nothing follows them.
pub(super) fn read_events(mut stream: &[u8]) -> (Vec<AwsEvent<'_>>, bool) {
    let mut events = Vec::new();
    while let Some((event, rest)) = read_event(stream) {
        events.push(event);
        stream = rest;
    }
    (events, stream.is_empty())
}

/// Whether bytes start with the prelude of a message.
pub(super) fn is_aws_event_stream(body: &[u8]) -> bool {
    read_prelude(body).is_some()
}

/// The total length and the header length, if their checksum is correct.
fn read_prelude(bytes: &[u8]) -> Option<(usize, usize)> {
    let (total, headers) = (read_u32(bytes, 0)?, read_u32(bytes, 4)?);
    let fits = headers.checked_add(PRELUDE_BYTES as u32 + TRAILER_BYTES as u32)? <= total;
    (fits && crc32_checksum(&bytes[..8]) == read_u32(bytes, 8)?)
        .then_some((total as usize, headers as usize))
}

fn read_event(stream: &[u8]) -> Option<(AwsEvent<'_>, &[u8])> {
    let (total, headers) = read_prelude(stream)?;
    let message = stream.get(..total)?;
    let body = &message[..total - TRAILER_BYTES];
    if crc32_checksum(body) != read_u32(message, total - TRAILER_BYTES)? {
        return None;
    }
    let mut event = AwsEvent { payload: &body[PRELUDE_BYTES + headers..], ..AwsEvent::default() };
    let mut rest = &body[PRELUDE_BYTES..PRELUDE_BYTES + headers];
    while !rest.is_empty() {
        let (name, value, after) = read_header(rest)?;
        match name {
            b":event-type" | b":exception-type" | b":error-code" => {
                event.name = String::from_utf8_lossy(value).into_owned();
            }
            b":message-type" => event.is_error = value != b"event",
            _ => {}
        }
        rest = after;
    }
    Some((event, &stream[total..]))
}

/// Parses a header: name, value and the remaining bytes.
fn read_header(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(*length))?;
    let (kind, rest) = rest.split_first()?;
    let (value_length, rest) = match kind {
        0 | 1 => (0, rest),
        2 => (1, rest),
        3 => (2, rest),
        4 => (4, rest),
        5 | 8 => (8, rest),
        9 => (16, rest),
        // Byte arrays and strings have a length prefix.
        6 | 7 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(value_length)?;
    Some((name, value, rest))
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let number = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(number.try_into().ok()?))
}

fn crc32_checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Encodes a message, for tests.
#[cfg(test)]
pub(super) fn encode_event(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    for (name, value) in headers {
        encoded.push(name.len() as u8);
        encoded.extend_from_slice(name.as_bytes());
        encoded.push(7);
        encoded.extend_from_slice(&(value.len() as u16).to_be_bytes());
        encoded.extend_from_slice(value.as_bytes());
    }
    let total = (PRELUDE_BYTES + encoded.len() + payload.len() + TRAILER_BYTES) as u32;
    let mut message = [total.to_be_bytes(), (encoded.len() as u32).to_be_bytes()].concat();
    message.extend_from_slice(&crc32_checksum(&message).to_be_bytes());
    message.extend_from_slice(&encoded);
    message.extend_from_slice(payload);
    let sum = crc32_checksum(&message);
    message.extend_from_slice(&sum.to_be_bytes());
    message
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(name: &str, payload: &[u8]) -> Vec<u8> {
        encode_event(&[(":event-type", name), (":message-type", "event")], payload)
    }

    #[test]
    fn an_empty_message_of_the_specification_is_read() {
        let bytes = [0, 0, 0, 0x10, 0, 0, 0, 0, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff];
        assert_eq!(read_events(&bytes), (vec![AwsEvent::default()], true));
    }

    #[test]
    fn whole_messages_come_out_of_every_cut() {
        let (first, second) = (message("a", b"{\"x\":1}"), message("b", b"two"));
        let stream = [first.clone(), second].concat();
        for cut in 0..=stream.len() {
            let (events, is_whole) = read_events(&stream[..cut]);
            let expected = usize::from(cut >= first.len()) + usize::from(cut == stream.len());
            assert_eq!(events.len(), expected, "{cut}");
            assert_eq!(is_whole, cut == 0 || cut == first.len() || cut == stream.len());
        }
        assert_eq!(read_events(&stream).0[1].payload, b"two");
    }

    #[test]
    fn an_exception_is_an_error_and_damage_ends_the_stream() {
        let headers = [(":exception-type", "throttlingException"), (":message-type", "exception")];
        let stream = encode_event(&headers, b"{\"message\":\"slow\"}");
        let (events, _) = read_events(&stream);
        assert_eq!((events[0].name.as_str(), events[0].is_error), ("throttlingException", true));
        for at in 0..stream.len() {
            let mut damaged = stream.clone();
            damaged[at] ^= 0x40;
            assert_eq!(read_events(&damaged), (Vec::new(), false), "{at}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let (_, is_whole) = read_events(&bytes);
            prop_assert!(!is_whole || bytes.is_empty() || is_aws_event_stream(&bytes));
        }
    }
}
