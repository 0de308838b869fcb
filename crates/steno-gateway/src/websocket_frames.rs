//! Parses the messages of one direction of a WebSocket connection (RFC 6455), and decompresses them if both sides
//! agreed on that (RFC 7692). It does not change the forwarded bytes.

use flate2::{Decompress, FlushDecompress, Status};

/// The longest recorded message. Of a longer one only the length is recorded.
pub(crate) const MAX_MESSAGE: usize = 32 << 20;

/// The last bytes of each compressed message, which senders leave out.
const DEFLATE_TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// A complete message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SocketMessage {
    Text(Vec<u8>),
    Binary(Vec<u8>),
    /// A message of more than [`MAX_MESSAGE`] bytes, with its length.
    TooLarge(u64),
    Close,
}

/// Bytes that cannot be parsed or decompressed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the connection uses an unknown extension")]
    Extension,
    #[error("a message could not be decompressed")]
    Compression,
    #[error("a frame is malformed")]
    Malformed,
}

/// How the messages of one direction are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageCompression {
    /// Whether each message is compressed on its own, without the context of earlier ones.
    pub(crate) is_reset: bool,
}

/// Parses the messages of one direction.
#[derive(Debug)]
pub(crate) struct MessageReader {
    header: Vec<u8>,
    frame: Option<OpenFrame>,
    message: OpenMessage,
    inflater: Option<MessageInflater>,
}

/// A frame of which the header was parsed.
#[derive(Debug)]
struct OpenFrame {
    opcode: u8,
    is_compressed: bool,
    is_final: bool,
    mask: Option<[u8; 4]>,
    /// Received bytes of the payload, and those still to come.
    received: u64,
    remaining: u64,
}

#[derive(Debug, Default)]
struct OpenMessage {
    is_text: bool,
    is_compressed: bool,
    bytes: Vec<u8>,
    /// The length of the message, including bytes beyond the buffer.
    length: u64,
}

#[derive(Debug)]
struct MessageInflater {
    inflate: Decompress,
    is_reset: bool,
}

impl MessageReader {
    pub(crate) fn new(compression: Option<MessageCompression>) -> Self {
        let inflater = compression.map(|compression| MessageInflater {
            inflate: Decompress::new(false),
            is_reset: compression.is_reset,
        });
        Self { header: Vec::new(), frame: None, message: OpenMessage::default(), inflater }
    }

    /// Parses bytes, and appends the messages that they complete.
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
                if let Some(frame) = parse_frame_header(&self.header)? {
                    self.header.clear();
                    self.begin_message(&frame)?;
                    self.frame = Some(frame);
                }
            }
            let Some(frame) = &mut self.frame else { continue };
            let count = usize::try_from(frame.remaining).unwrap_or(usize::MAX).min(bytes.len());
            let payload = unmask_payload(frame, &bytes[..count]);
            bytes = &bytes[count..];
            (frame.received, frame.remaining) =
                (frame.received + count as u64, frame.remaining - count as u64);
            let (opcode, is_final, is_done) = (frame.opcode, frame.is_final, frame.remaining == 0);
            if opcode < 8 {
                self.take_payload(&payload)?;
            }
            if !is_done {
                // The whole input belongs to this frame.
                return Ok(());
            }
            self.frame = None;
            match opcode {
                8 => messages.push(SocketMessage::Close),
                9.. => {}
                _ if is_final => messages.push(self.finish_message()?),
                _ => {}
            }
        }
    }

    fn begin_message(&mut self, frame: &OpenFrame) -> Result<(), FrameError> {
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

    fn take_payload(&mut self, payload: &[u8]) -> Result<(), FrameError> {
        match (&mut self.inflater, self.message.is_compressed) {
            (Some(inflater), true) => inflater.push(payload, &mut self.message),
            _ => {
                self.message.append_bytes(payload);
                Ok(())
            }
        }
    }

    fn finish_message(&mut self) -> Result<SocketMessage, FrameError> {
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
    fn append_bytes(&mut self, bytes: &[u8]) {
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
            message.append_bytes(&buffer[..count]);
            if status == Status::StreamEnd {
                // A sender may end the deflate stream with each message.
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

/// Parses a frame header; `None` while it is incomplete.
fn parse_frame_header(header: &[u8]) -> Result<Option<OpenFrame>, FrameError> {
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
    let long = rest[..length_bytes].iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
    let mask = rest[length_bytes..].first_chunk::<4>().filter(|_| mask_bytes > 0).copied();
    let (is_final, is_compressed, opcode) = (first & 0x80 != 0, first & 0x40 != 0, first & 0x0f);
    let remaining = if length_bytes == 0 { short } else { long };
    Ok(Some(OpenFrame { opcode, is_compressed, is_final, mask, received: 0, remaining }))
}

fn unmask_payload<'a>(frame: &OpenFrame, payload: &'a [u8]) -> std::borrow::Cow<'a, [u8]> {
    let Some(mask) = frame.mask else { return payload.into() };
    let start = (frame.received % 4) as usize;
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
    fn messages_are_parsed_from_chunks_of_any_size() {
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
            let messages = wire.chunks(size).flat_map(|bytes| read(&mut reader, bytes));
            assert_eq!(messages.collect::<Vec<_>>(), expected, "in pieces of {size}");
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
    fn compressed_messages_may_use_earlier_context() {
        let long = "herons and ospreys ".repeat(3000);
        for is_reset in [false, true] {
            let mut compress = Compress::new(Level::default(), false);
            let mut wire = Vec::new();
            for message in ["{\"a\":1}", "{\"a\":1}", &long] {
                let bytes = deflated(&mut compress, message);
                let (start, end) = bytes.split_at(bytes.len() / 2);
                wire.extend([frame(0x41, Some([1, 2, 3, 4]), start), frame(0x80, None, end)]);
                if is_reset {
                    compress.reset();
                }
            }
            wire.push(frame(0x81, None, b"plain"));
            let wire = wire.concat();
            for size in [1, 5, wire.len()] {
                let mut reader = MessageReader::new(Some(MessageCompression { is_reset }));
                let messages = wire.chunks(size).flat_map(|bytes| read(&mut reader, bytes));
                let expected = ["{\"a\":1}", "{\"a\":1}", &long, "plain"].map(text);
                assert_eq!(messages.collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn a_message_over_the_limit_is_only_measured() {
        let mut compress = Compress::new(Level::best(), false);
        let bytes = deflated(&mut compress, &"z".repeat(MAX_MESSAGE + 10));
        let next = deflated(&mut compress, "next");
        let mut reader = MessageReader::new(Some(MessageCompression { is_reset: false }));
        let messages = read(&mut reader, &frame(0xc1, None, &bytes));
        assert_eq!(messages, [SocketMessage::TooLarge(MAX_MESSAGE as u64 + 10)]);
        assert_eq!(read(&mut reader, &frame(0xc1, None, &next)), [text("next")]);
    }

    #[test]
    fn invalid_frames_are_errors() {
        assert!(MessageReader::new(None).push(&frame(0xc1, None, b"x"), &mut Vec::new()).is_err());
        assert!(MessageReader::new(None).push(&frame(0xa1, None, b"x"), &mut Vec::new()).is_err());
        assert!(MessageReader::new(None).push(&frame(0x83, None, b"x"), &mut Vec::new()).is_err());
        let mut reader = MessageReader::new(Some(MessageCompression { is_reset: false }));
        assert!(reader.push(&frame(0xc1, None, &[0xff; 20]), &mut Vec::new()).is_err());
    }
}
