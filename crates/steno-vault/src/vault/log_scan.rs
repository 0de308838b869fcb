//! Scans the lines of a live log, and finds the end of its intact part after a crash.
//!
//! A log is append-only, and complete up to its last sync. An interrupted write shows as a last line without a
//! newline, or as unwritten pages, which read as zeros. Neither contains an acknowledged record. Any other line that
//! breaks the hash chain was changed: it is damage and stays in the file.

use std::io::{self, BufRead};

use super::log_head::LogHead;
use crate::line_hash::LineHash;

/// A complete line of a log, without its newline.
pub(crate) struct LogLine<'a> {
    /// Offset in the log.
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
    /// Whether its hash follows the previous line.
    pub(crate) is_chained: bool,
}

/// The result of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogScan {
    /// End and hash of the last complete line.
    pub(crate) end: LogHead,
    /// Bytes after the end, from an interrupted write.
    pub(crate) interrupted: u64,
    /// Whether the last line was known to be on disk and has lost its newline.
    pub(crate) lacks_newline: bool,
}

/// Reads `log` from `start`, and calls `take` with each complete line.
///
/// Up to offset `durable`, the log was known to be on disk; anything incomplete before it is damage, not an
/// interrupted write.
pub(crate) fn scan_log(
    log: &mut dyn BufRead,
    start: LogHead,
    durable: u64,
    take: &mut dyn FnMut(LogLine<'_>),
) -> io::Result<LogScan> {
    let (mut end, mut line) = (start, Vec::new());
    // The hash that the previous line should state. If only its hash was changed, this line is still intact.
    let mut computed = start.line_hash;
    loop {
        line.clear();
        let size = log.read_until(b'\n', &mut line)? as u64;
        let is_whole = line.pop_if(|last| *last == b'\n').is_some();
        let scan = LogScan { end, interrupted: 0, lacks_newline: false };
        if size == 0 {
            return Ok(scan);
        }
        let is_acknowledged = end.length < durable;
        let lacks_newline = !is_whole && is_acknowledged && durable <= end.length + size;
        let is_torn = !is_whole && !lacks_newline;
        if is_torn || (!is_acknowledged && has_zero_bytes(&line)) {
            let rest = io::copy(log, &mut io::sink())?;
            return Ok(LogScan { interrupted: size + rest, ..scan });
        }
        let split = LineHash::split_line(&line);
        // The body's offset is fixed, so a line without a valid hash does not cost the next one.
        let rest = line.get(LineHash::BODY_OFFSET..).unwrap_or_default();
        let body = split.map_or(rest, |(_, body)| body);
        let next = end.line_hash.next_hash(body);
        let is_chained =
            split.is_some_and(|(hash, _)| hash == next || hash == computed.next_hash(body));
        computed = next;
        take(LogLine { offset: end.length, bytes: &line, is_chained });
        end.length += size;
        end.line_hash = split.map_or(end.line_hash, |(hash, _)| hash);
        if lacks_newline {
            return Ok(LogScan { end, interrupted: 0, lacks_newline });
        }
    }
}

/// Whether part of a line was never written. Lines contain no zero bytes; a single one may be a flipped bit.
pub(super) fn has_zero_bytes(line: &[u8]) -> bool {
    memchr::memmem::find(line, &[0, 0]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line_hash::FIRST_LINE_HASH;

    fn log_of(count: usize) -> Vec<u8> {
        let (mut log, mut hash) = (Vec::new(), FIRST_LINE_HASH);
        for number in 0..count {
            let body = format!("\"n\":{number},\"text\":\"{}\"}}", "x".repeat(300));
            hash = hash.next_hash(body.as_bytes());
            log.extend_from_slice(LineHash::LINE_PREFIX);
            log.extend_from_slice(hash.as_str().as_bytes());
            log.extend_from_slice(format!("\",{body}\n").as_bytes());
        }
        log
    }

    fn scan(log: &[u8], durable: usize) -> (Vec<bool>, LogScan) {
        let start = LogHead { length: 0, line_hash: FIRST_LINE_HASH };
        let mut chained = Vec::new();
        let mut input = log;
        let scan = scan_log(&mut input, start, durable as u64, &mut |line| {
            chained.push(line.is_chained);
        });
        (chained, scan.unwrap())
    }

    #[test]
    fn zeros_and_half_lines_after_the_durable_end_are_interrupted_writes() {
        let log = log_of(8);
        let line = log.len() / 8;
        for (begin, end) in
            [(line * 3 + 7, line * 5), (line * 3, log.len()), (line * 7 + 1, log.len())]
        {
            let mut holed = log.clone();
            holed[begin..end].fill(0);
            let whole = begin / line;
            let (chained, scan) = scan(&holed, line * 3);
            assert_eq!(chained, vec![true; whole]);
            assert_eq!(scan.end.length as usize, whole * line);
            assert_eq!(scan.interrupted as usize, log.len() - whole * line);
        }
        let (chained, cut) = scan(&log[..log.len() - 1], 0);
        assert_eq!((chained.len(), cut.interrupted as usize), (7, line - 1));
        let (_, cut) = scan(&log[..log.len() - 1], log.len() - 1);
        assert!(cut.lacks_newline && cut.interrupted == 0);
    }

    #[test]
    fn a_flipped_bit_costs_only_its_line_and_cuts_nothing() {
        let log = log_of(3);
        for bit in 0..log.len() * 8 {
            let mut flipped = log.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (chained, scan) = scan(&flipped, log.len());
            assert!(chained.contains(&false), "bit {bit}");
            assert_eq!(scan.interrupted, 0, "bit {bit}");
            // A newline that comes or goes changes the lines themselves.
            if log[bit / 8] != b'\n' && flipped[bit / 8] != b'\n' {
                let damaged = chained.iter().filter(|is_chained| !**is_chained).count();
                assert_eq!((chained.len(), damaged), (3, 1), "bit {bit}");
            }
        }
    }
}
