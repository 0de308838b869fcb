//! Masks lines of a recording. The hash of each line covers the lines before it, so all later hashes change too: an old
//! one would confirm a guess of the forgotten bytes.

use std::io::BufRead;

use super::super::sealed::{ByteEdit, SealedFile};
use super::mask_edit;
use crate::line_hash::{FIRST_LINE_HASH, LineHash};
use steno_model::durable::{FileError, OnPath};

/// The edits that mask `ranges` of a sealed recording. The ranges are sorted.
pub(super) fn edit_record(
    sealed: SealedFile,
    ranges: &[(u64, u64)],
    tombstone: &str,
) -> Result<Vec<ByteEdit>, FileError> {
    let path = sealed.path().to_owned();
    let mut input = sealed.reader_from(0);
    let (mut edits, mut line, mut offset) = (Vec::new(), Vec::new(), 0);
    let (mut hash, mut is_changed) = (FIRST_LINE_HASH, false);
    loop {
        line.clear();
        let length = input.read_until(b'\n', &mut line).on("read", &path)? as u64;
        if length == 0 {
            return Ok(edits);
        }
        let first = ranges.partition_point(|(begin, size)| begin + size <= offset);
        let own = ranges[first..].iter().take_while(|(begin, _)| *begin < offset + length);
        let masks: Vec<_> = own.map(|range| mask_edit(range.0, range.1, tombstone)).collect();
        for mask in &masks {
            let at = (mask.offset - offset) as usize;
            line[at..at + mask.bytes.len()].copy_from_slice(&mask.bytes);
        }
        is_changed |= !masks.is_empty();
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if let Some((stated, body)) = LineHash::split_line(text) {
            let next = if is_changed { hash.next_hash(body) } else { stated };
            if next != stated {
                let bytes = next.as_str().as_bytes().to_vec();
                let at = offset + LineHash::LINE_PREFIX.len() as u64;
                edits.push(ByteEdit { offset: at, bytes, is_forgotten: false });
            }
            hash = next;
        }
        edits.extend(masks);
        offset += length;
    }
}
