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
                Escape::None => (raw[at], 1),
                Escape::Byte { value, length } => (value, length),
                Escape::Cut => break,
            };
            bytes.push(value);
            offsets.push(at as u32);
            at += length;
        }
        offsets.push(at as u32);
        Self { bytes, offsets }
    }

    /// The offset in the original of the byte at `at`.
    pub(super) fn original(&self, at: usize) -> usize {
        self.offsets[at] as usize
    }
}

enum Escape {
    None,
    Byte {
        value: u8,
        length: usize,
    },
    /// Needs more input.
    Cut,
}

fn read_escape(raw: &[u8]) -> Escape {
    match raw {
        [b'\\', b'u', digits @ ..] => {
            // Only ASCII is resolved. Secrets have no other characters.
            let Some(digits) = digits.get(..4) else { return Escape::Cut };
            match hexadecimal(digits) {
                Some(value) if value < 0x80 => Escape::Byte { value: value as u8, length: 6 },
                _ => Escape::None,
            }
        }
        [b'\\', escaped @ (b'/' | b'"' | b'\\'), ..] => Escape::Byte { value: *escaped, length: 2 },
        [b'\\'] => Escape::Cut,
        [b'%', digits @ ..] => match (digits.get(..2), digits) {
            (Some(digits), _) => match hexadecimal(digits) {
                Some(value) if value < 0x80 => Escape::Byte { value: value as u8, length: 3 },
                _ => Escape::None,
            },
            (None, [] | [b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F']) => Escape::Cut,
            (None, _) => Escape::None,
        },
        _ => Escape::None,
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
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
        assert_eq!(unescaped.original(1), 1);
        assert_eq!(unescaped.original(2), 7);
        assert_eq!(unescaped.original(unescaped.bytes.len()), raw.len());
        for cut in [&br"x\u00"[..], b"x\\", b"x%4", b"x%"] {
            let unescaped = UnescapedBytes::new(cut);
            assert_eq!((unescaped.bytes.as_slice(), unescaped.original(1)), (&b"x"[..], 1));
        }
    }
}
