//! The messages of one direction of a WebSocket connection, read from the bytes that pass (RFC 6455), decompressed where
//! both sides agreed on that (RFC 7692). The bytes themselves are not changed.

use flate2::{Decompress, FlushDecompress, Status};

/// Of a longer message only the length is known.
pub(crate) const MAX_MESSAGE: usize = 32 << 20;

/// What ends each compressed message, and is left out on the wire.
const DEFLATE_TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// A whole message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SocketMessage {
    Text(Vec<u8>),
    Binary(Vec<u8>),
    /// One of more than [`MAX_MESSAGE`] bytes, of which this many passed.
    TooLarge(u64),
    Close,
}

/// Bytes that are no frames, or a compression that cannot be undone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the connection uses an extension that is not known")]
    Extension,
    #[error("a message could not be decompressed")]
    Compression,
    #[error("a frame is not as the protocol wants it")]
    Malformed,
}

/// How messages of one direction are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compression {
    /// Whether each message is compressed without those before it.
    pub(crate) is_reset: bool,
}

/// Reads the messages of one direction.
#[derive(Debug)]
pub(crate) struct MessageReader {
    header: Vec<u8>,
    frame: Option<OpenFrame>,
    message: OpenMessage,
    inflater: Option<MessageInflater>,
}

/// A frame whose header has come.
#[derive(Debug)]
struct OpenFrame {
    opcode: u8,
    is_compressed: bool,
    is_final: bool,
    mask: Option<[u8; 4]>,
    /// Bytes of its payload that came, and those that are to come.
    done: u64,
    left: u64,
}

#[derive(Debug, Default)]
struct OpenMessage {
    is_text: bool,
    is_compressed: bool,
    bytes: Vec<u8>,
    /// All bytes, those that are not held as well.
    length: u64,
}

#[derive(Debug)]
struct MessageInflater {
    inflate: Decompress,
    is_reset: bool,
}

impl MessageReader {
    pub(crate) fn new(compression: Option<Compression>) -> Self {
        let inflater = compression.map(|compression| MessageInflater {
            inflate: Decompress::new(false),
            is_reset: compression.is_reset,
        });
        Self { header: Vec::new(), frame: None, message: OpenMessage::default(), inflater }
    }

    /// Takes bytes as they pass, and adds the messages that are whole now.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
        messages: &mut Vec<SocketMessage>,
    ) -> Result<(), FrameError> {
        loop {
            if self.frame.is_none() {
                let Some((first, rest)) = bytes.split_first() else { return Ok(()) };
                self.header.push(*first);
                bytes = rest;
                if let Some(frame) = parse_header(&self.header)? {
                    self.header.clear();
                    self.begin(&frame)?;
                    self.frame = Some(frame);
                }
            }
            let Some(frame) = &mut self.frame else { continue };
            let count = usize::try_from(frame.left).unwrap_or(usize::MAX).min(bytes.len());
            let payload = unmask(frame, &bytes[..count]);
            bytes = &bytes[count..];
            (frame.done, frame.left) = (frame.done + count as u64, frame.left - count as u64);
            let (opcode, is_final, is_done) = (frame.opcode, frame.is_final, frame.left == 0);
            if opcode < 8 {
                self.take(&payload)?;
            }
            if !is_done {
                // All that was given belongs to this frame.
                return Ok(());
            }
            self.frame = None;
            match opcode {
                8 => messages.push(SocketMessage::Close),
                9.. => {}
                _ if is_final => messages.push(self.finish()?),
                _ => {}
            }
        }
    }

    fn begin(&mut self, frame: &OpenFrame) -> Result<(), FrameError> {
        match frame.opcode {
            1 | 2 => {
                let (is_text, is_compressed) = (frame.opcode == 1, frame.is_compressed);
                self.message = OpenMessage { is_text, is_compressed, ..OpenMessage::default() };
                let is_known = !is_compressed || self.inflater.is_some();
                is_known.then_some(()).ok_or(FrameError::Extension)
            }
            0 | 8..=10 => Ok(()),
            _ => Err(FrameError::Malformed),
        }
    }

    fn take(&mut self, payload: &[u8]) -> Result<(), FrameError> {
        match (&mut self.inflater, self.message.is_compressed) {
            (Some(inflater), true) => inflater.push(payload, &mut self.message),
            _ => {
                self.message.add(payload);
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> Result<SocketMessage, FrameError> {
        if let (Some(inflater), true) = (&mut self.inflater, self.message.is_compressed) {
            inflater.push(&DEFLATE_TAIL, &mut self.message)?;
            if inflater.is_reset {
                inflater.inflate.reset(false);
            }
        }
        let message = std::mem::take(&mut self.message);
        Ok(if message.length > message.bytes.len() as u64 {
            SocketMessage::TooLarge(message.length)
        } else if message.is_text {
            SocketMessage::Text(message.bytes)
        } else {
            SocketMessage::Binary(message.bytes)
        })
    }
}

impl OpenMessage {
    fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        let room = MAX_MESSAGE - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl MessageInflater {
    fn push(&mut self, mut input: &[u8], message: &mut OpenMessage) -> Result<(), FrameError> {
        let mut buffer = [0; 8192];
        loop {
            let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
            let flush = FlushDecompress::Sync;
            let status = self.inflate.decompress(input, &mut buffer, flush);
            let status = status.map_err(|_| FrameError::Compression)?;
            let read = usize::try_from(self.inflate.total_in() - read).unwrap_or_default();
            let count = usize::try_from(self.inflate.total_out() - written).unwrap_or_default();
            input = &input[read..];
            message.add(&buffer[..count]);
            if status == Status::StreamEnd {
                // A sender may end each message's stream.
                self.inflate.reset(false);
                if input.is_empty() || input == DEFLATE_TAIL {
                    return Ok(());
                }
            } else if read == 0 && count == 0 || input.is_empty() && count < buffer.len() {
                return Ok(());
            }
        }
    }
}

/// The frame that a header begins; none while some of it is missing.
fn parse_header(header: &[u8]) -> Result<Option<OpenFrame>, FrameError> {
    let [first, second, rest @ ..] = header else { return Ok(None) };
    if first & 0x30 != 0 {
        return Err(FrameError::Extension);
    }
    let (length_bytes, short) = match second & 0x7f {
        126 => (2, 0),
        127 => (8, 0),
        short => (0, u64::from(short)),
    };
    let mask_bytes = if second & 0x80 != 0 { 4 } else { 0 };
    if rest.len() < length_bytes + mask_bytes {
        return Ok(None);
    }
    let stated = rest[..length_bytes].iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
    let mask = rest[length_bytes..].first_chunk::<4>().filter(|_| mask_bytes > 0).copied();
    let (is_final, is_compressed, opcode) = (first & 0x80 != 0, first & 0x40 != 0, first & 0x0f);
    let left = if length_bytes == 0 { short } else { stated };
    Ok(Some(OpenFrame { opcode, is_compressed, is_final, mask, done: 0, left }))
}

fn unmask<'a>(frame: &OpenFrame, payload: &'a [u8]) -> std::borrow::Cow<'a, [u8]> {
    let Some(mask) = frame.mask else { return payload.into() };
    let start = (frame.done % 4) as usize;
    let plain = payload.iter().enumerate().map(|(at, byte)| byte ^ mask[(start + at) % 4]);
    plain.collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use flate2::{Compress, Compression as Level, FlushCompress};

    use super::*;

    fn frame(first: u8, mask: Option<[u8; 4]>, payload: &[u8]) -> Vec<u8> {
        let masked = if mask.is_some() { 0x80 } else { 0 };
        let mut frame = vec![first];
        match payload.len() {
            length @ 0..=125 => frame.push(masked | length as u8),
            length @ 126..=0xffff => {
                frame.push(masked | 126);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(masked | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(mask.iter().flatten());
        let mask = mask.unwrap_or_default();
        frame.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
        frame
    }

    fn read(reader: &mut MessageReader, bytes: &[u8]) -> Vec<SocketMessage> {
        let mut messages = Vec::new();
        reader.push(bytes, &mut messages).unwrap();
        messages
    }

    fn text(text: &str) -> SocketMessage {
        SocketMessage::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn messages_are_read_however_their_bytes_come() {
        let long = "x".repeat(70_000);
        let middle = "y".repeat(300);
        let wire = [
            frame(0x81, Some([1, 2, 3, 4]), b"Hi"),
            frame(0x01, None, b"one, "),
            frame(0x89, None, b"ping between"),
            frame(0x00, Some([9, 8, 7, 6]), b"two, "),
            frame(0x80, None, b"three"),
            frame(0x82, None, &[0, 255]),
            frame(0x81, None, b""),
            frame(0x81, Some([5, 5, 5, 5]), long.as_bytes()),
            frame(0x81, None, middle.as_bytes()),
            frame(0x88, None, &[3, 232]),
        ]
        .concat();
        let expected = [
            text("Hi"),
            text("one, two, three"),
            SocketMessage::Binary(vec![0, 255]),
            text(""),
            text(&long),
            text(&middle),
            SocketMessage::Close,
        ];
        for size in [1, 2, 3, 7, 4096, wire.len()] {
            let mut reader = MessageReader::new(None);
            let found = wire.chunks(size).flat_map(|bytes| read(&mut reader, bytes));
            assert_eq!(found.collect::<Vec<_>>(), expected, "in pieces of {size}");
        }
    }

    fn deflated(compress: &mut Compress, text: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len() + 1000);
        compress.compress_vec(text.as_bytes(), &mut out, FlushCompress::Sync).unwrap();
        assert!(out.ends_with(&DEFLATE_TAIL));
        out.truncate(out.len() - 4);
        out
    }

    #[test]
    fn compressed_messages_may_refer_to_those_before() {
        let long = "herons and ospreys ".repeat(3000);
        for is_reset in [false, true] {
            let mut compress = Compress::new(Level::default(), false);
            let mut wire = Vec::new();
            for said in ["{\"a\":1}", "{\"a\":1}", &long] {
                let bytes = deflated(&mut compress, said);
                let (start, end) = bytes.split_at(bytes.len() / 2);
                wire.extend([frame(0x41, Some([1, 2, 3, 4]), start), frame(0x80, None, end)]);
                if is_reset {
                    compress.reset();
                }
            }
            wire.push(frame(0x81, None, b"plain"));
            let wire = wire.concat();
            for size in [1, 5, wire.len()] {
                let mut reader = MessageReader::new(Some(Compression { is_reset }));
                let found = wire.chunks(size).flat_map(|bytes| read(&mut reader, bytes));
                let expected = ["{\"a\":1}", "{\"a\":1}", &long, "plain"].map(text);
                assert_eq!(found.collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn a_message_without_bounds_is_only_measured() {
        let mut compress = Compress::new(Level::best(), false);
        let bytes = deflated(&mut compress, &"z".repeat(MAX_MESSAGE + 10));
        let next = deflated(&mut compress, "next");
        let mut reader = MessageReader::new(Some(Compression { is_reset: false }));
        let found = read(&mut reader, &frame(0xc1, None, &bytes));
        assert_eq!(found, [SocketMessage::TooLarge(MAX_MESSAGE as u64 + 10)]);
        assert_eq!(read(&mut reader, &frame(0xc1, None, &next)), [text("next")]);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        assert!(MessageReader::new(None).push(&frame(0xc1, None, b"x"), &mut Vec::new()).is_err());
        assert!(MessageReader::new(None).push(&frame(0xa1, None, b"x"), &mut Vec::new()).is_err());
        assert!(MessageReader::new(None).push(&frame(0x83, None, b"x"), &mut Vec::new()).is_err());
        let mut reader = MessageReader::new(Some(Compression { is_reset: false }));
        assert!(reader.push(&frame(0xc1, None, &[0xff; 20]), &mut Vec::new()).is_err());
    }
}
