//! Resolves escapes, so that a search finds `\u0073`, `\/`, `\"` and `%73` as the characters they encode.

/// Unescaped bytes and their offsets in the original.
pub(super) struct UnescapedBytes {
    pub(super) bytes: Vec<u8>,
    /// The offset of each byte in the original, then the end offset of the last one. An incomplete escape may follow.
    offsets: Vec<u32>,
}

impl UnescapedBytes {
    /// Resolves the escapes in `raw`, which must be shorter than 4 GiB.
    pub(super) fn new(raw: &[u8]) -> Self {
        let (mut bytes, mut offsets) = (Vec::with_capacity(raw.len()), Vec::new());
        offsets.reserve(raw.len() + 1);
        let mut at = 0;
        while at < raw.len() {
            let (value, length) = match read_escape(&raw[at..]) {
                EscapeSequence::None => (raw[at], 1),
                EscapeSequence::Byte { value, length } => (value, length),
                EscapeSequence::Incomplete => break,
            };
            bytes.push(value);
            offsets.push(at as u32);
            at += length;
        }
        offsets.push(at as u32);
        Self { bytes, offsets }
    }

    /// The offset in the original of the byte at `at`.
    pub(super) fn original_offset(&self, at: usize) -> usize {
        self.offsets[at] as usize
    }
}

enum EscapeSequence {
    None,
    Byte {
        value: u8,
        length: usize,
    },
    /// Needs more input.
    Incomplete,
}

fn read_escape(raw: &[u8]) -> EscapeSequence {
    match raw {
        [b'\\', b'u', digits @ ..] => {
            // Only ASCII is resolved. Secrets have no other characters.
            let Some(digits) = digits.get(..4) else { return EscapeSequence::Incomplete };
            match parse_hex_digits(digits) {
                Some(value) if value < 0x80 => {
                    EscapeSequence::Byte { value: value as u8, length: 6 }
                }
                _ => EscapeSequence::None,
            }
        }
        [b'\\', escaped @ (b'/' | b'"' | b'\\'), ..] => {
            EscapeSequence::Byte { value: *escaped, length: 2 }
        }
        [b'\\'] => EscapeSequence::Incomplete,
        [b'%', digits @ ..] => match (digits.get(..2), digits) {
            (Some(digits), _) => match parse_hex_digits(digits) {
                Some(value) if value < 0x80 => {
                    EscapeSequence::Byte { value: value as u8, length: 3 }
                }
                _ => EscapeSequence::None,
            },
            (None, [] | [b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F']) => EscapeSequence::Incomplete,
            (None, _) => EscapeSequence::None,
        },
        _ => EscapeSequence::None,
    }
}

fn parse_hex_digits(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_resolved_and_mapped_back() {
        let raw = br#"a\u0073k\/%2B\"\n%zz"#;
        let unescaped = UnescapedBytes::new(raw);
        assert_eq!(unescaped.bytes, br#"ask/+"\n%zz"#);
        assert_eq!(unescaped.original_offset(1), 1);
        assert_eq!(unescaped.original_offset(2), 7);
        assert_eq!(unescaped.original_offset(unescaped.bytes.len()), raw.len());
        for cut in [&br"x\u00"[..], b"x\\", b"x%4", b"x%"] {
            let unescaped = UnescapedBytes::new(cut);
            assert_eq!((unescaped.bytes.as_slice(), unescaped.original_offset(1)), (&b"x"[..], 1));
        }
    }
}
