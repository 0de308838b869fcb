//! Finds the quotes and escapes of a JSON text, 64 bytes at a time.

use std::cell::Cell;

use wide::u8x16;

/// Bytes per block.
const BLOCK_SIZE: usize = 64;

/// Maximum blocks cached for the next line: those of 16 MiB.
const MAX_SPARE_BLOCKS: usize = 256 << 10;

thread_local! {
    static SPARE_BLOCKS: Cell<Vec<MarkBlock>> = const { Cell::new(Vec::new()) };
}

/// One bit per byte; the lowest bit is the first byte.
#[derive(Clone, Copy, Debug)]
struct MarkBlock {
    /// Quotes without an escape before them.
    quotes: u64,
    /// Backslashes that start an escape.
    escapes: u64,
}

/// The quotes and escapes of a text.
#[derive(Debug)]
pub(super) struct StringMarks(Vec<MarkBlock>);

impl StringMarks {
    /// Scans `text`; `None` if it contains control characters or invalid escapes.
    pub(super) fn scan_text(text: &[u8]) -> Option<Self> {
        let mut blocks = SPARE_BLOCKS.take();
        blocks.clear();
        let (whole, rest) = text.as_chunks::<BLOCK_SIZE>();
        let mut last = [b' '; BLOCK_SIZE];
        last[..rest.len()].copy_from_slice(rest);
        blocks.reserve(whole.len() + 1);
        // Whether the first byte of the next block is escaped, as a bit.
        let mut carried = 0;
        for (number, bytes) in whole.iter().chain([&last]).enumerate() {
            let found = BlockScan::scan_block(bytes)?;
            let (escaped, next) = find_escaped(found.backslashes, carried);
            let unusual = escaped & !(found.quotes | found.backslashes | found.letters_n);
            if unusual != 0 && !are_valid_escapes(unusual, &text[number * BLOCK_SIZE..]) {
                return None;
            }
            let escapes = escaped >> 1 | next << (BLOCK_SIZE - 1);
            blocks.push(MarkBlock { quotes: found.quotes & !escaped, escapes });
            carried = next;
        }
        (carried == 0).then_some(Self(blocks))
    }

    /// The first unescaped quote at or after `from`.
    pub(super) fn next_quote(&self, from: usize) -> Option<usize> {
        first_mark(&self.0, from, |block| block.quotes)
    }

    /// The first escape at or after `from` and before `end`.
    pub(super) fn next_escape(&self, from: usize, end: usize) -> Option<usize> {
        let blocks = self.0.get(..=end / BLOCK_SIZE).unwrap_or(&self.0);
        first_mark(blocks, from, |block| block.escapes).filter(|at| *at < end)
    }
}

/// The first set bit at or after `from`.
fn first_mark(
    blocks: &[MarkBlock],
    from: usize,
    marks: impl Fn(&MarkBlock) -> u64,
) -> Option<usize> {
    let number = from / BLOCK_SIZE;
    let (begun, later) = blocks.get(number..)?.split_first()?;
    let begun = marks(begun) >> (from % BLOCK_SIZE);
    if begun != 0 {
        return Some(from + begun.trailing_zeros() as usize);
    }
    let found = later.iter().map(marks).zip(number + 1..).find(|(marks, _)| *marks != 0);
    found.map(|(marks, number)| number * BLOCK_SIZE + marks.trailing_zeros() as usize)
}

impl Drop for StringMarks {
    fn drop(&mut self) {
        if self.0.capacity() <= MAX_SPARE_BLOCKS {
            SPARE_BLOCKS.set(std::mem::take(&mut self.0));
        }
    }
}

/// Byte classes of a block, one bit per byte.
struct BlockScan {
    quotes: u64,
    backslashes: u64,
    letters_n: u64,
}

impl BlockScan {
    /// Returns `None` if the block contains a control character.
    fn scan_block(bytes: &[u8; BLOCK_SIZE]) -> Option<Self> {
        let mut found = Self { quotes: 0, backslashes: 0, letters_n: 0 };
        let mut least = u8x16::splat(u8::MAX);
        for (part, bytes) in bytes.as_chunks::<16>().0.iter().enumerate() {
            let bytes = u8x16::new(*bytes);
            let is =
                |byte| u64::from(bytes.simd_eq(u8x16::splat(byte)).to_bitmask()) << (16 * part);
            found.quotes |= is(b'"');
            found.backslashes |= is(b'\\');
            found.letters_n |= is(b'n');
            least = least.min(bytes);
        }
        let space = u8x16::splat(b' ');
        least.min(space).simd_eq(space).all().then_some(found)
    }
}

/// Which bytes are escaped, and whether the byte after the block is: every second byte of each run of backslashes.
///
/// The addition carries a bit through each run that starts at an odd offset, and leaves it after the run. The start
/// offset and the carried bit together show whether a run has odd or even length.
fn find_escaped(backslashes: u64, carried: u64) -> (u64, u64) {
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let backslashes = backslashes & !carried;
    let after = backslashes << 1 | carried;
    let odd_starts = backslashes & ODD & !after;
    let (sum, overflow) = odd_starts.overflowing_add(backslashes);
    ((!ODD ^ (sum << 1)) & after, u64::from(overflow))
}

/// Whether these bytes may follow a backslash. Bits count from the start of `text`.
fn are_valid_escapes(mut escaped: u64, text: &[u8]) -> bool {
    while escaped != 0 {
        let (at, digits) = (escaped.trailing_zeros() as usize, 1..5);
        let is_known = match text.get(at) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
            Some(b'u') => {
                text[at..].get(digits).is_some_and(|unit| unit.iter().all(u8::is_ascii_hexdigit))
            }
            _ => false,
        };
        if !is_known {
            return false;
        }
        escaped &= escaped - 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_quotes_end_nothing_wherever_blocks_meet() {
        for before in 0..130 {
            for backslashes in 0..6 {
                let text = format!("{}{}\"b\"", "a".repeat(before), "\\".repeat(backslashes));
                let marks = StringMarks::scan_text(text.as_bytes()).unwrap();
                let quote = before + backslashes;
                let expected = if backslashes % 2 == 0 { quote } else { quote + 2 };
                assert_eq!(marks.next_quote(0), Some(expected), "{text}");
                let escape = (backslashes > 0).then_some(before);
                assert_eq!(marks.next_escape(0, text.len()), escape, "{text}");
                assert_eq!(marks.next_escape(0, before), None, "{text}");
            }
        }
    }

    #[test]
    fn escaped_strings_have_no_marks() {
        for odd in ["\u{1f}", "\n", "\\x", "\\", "\\u12", "\\u12g4", "\\\\\\x"] {
            for before in [0, 1, 62, 63, 64, 127] {
                let text = format!("{}{odd}", "é".repeat(before));
                assert!(StringMarks::scan_text(text.as_bytes()).is_none(), "{text:?}");
            }
        }
        for plain in ["", "\u{7f}", "\\\\x", "\\u12aF", "é", "\\n"] {
            assert!(StringMarks::scan_text(plain.as_bytes()).is_some(), "{plain:?}");
        }
    }
}
