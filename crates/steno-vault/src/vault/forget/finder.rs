//! Finds texts in the files of a session, as they are kept.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;

use super::super::sealed::SharedProblems;
use super::super::text_mask::{UnitKind, for_each_unit, make_mask};
use super::super::{SessionDir, list_names, parse_sealed_name};
use super::has_units;
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};

/// A unit of text in a kept file: a JSON string without its quotes and as it is escaped, or a line that is not JSON.
#[derive(Clone, Copy, Debug)]
pub struct TextUnit<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Whether it is a JSON string, so that its bytes may have escapes.
    pub is_json: bool,
    /// The key of the field that it is the value of.
    pub key: Option<&'a [u8]>,
    /// The line that it is in.
    pub line: &'a [u8],
}

/// The parts of a session to mask.
#[derive(Clone, Debug, Default)]
pub struct MaskPlan {
    /// Offset in the session file, and length, of each part, by the sealed file's name.
    pub files: BTreeMap<String, Vec<(u64, u64)>>,
    /// The units, with offset and length of each part in them.
    pub(crate) units: BTreeMap<Vec<u8>, Vec<(u64, u64)>>,
    /// Number of masked notes.
    pub notes: u64,
    /// Whether a file is compressed by its agent, so that texts in it cannot be found or masked.
    pub has_compressed_files: bool,
}

impl MaskPlan {
    /// Whether there is nothing to mask.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The number of parts.
    pub fn part_count(&self) -> u64 {
        self.files.values().map(|ranges| ranges.len() as u64).sum()
    }

    /// The number of bytes to mask.
    pub fn byte_count(&self) -> u64 {
        self.files.values().flatten().map(|(_, length)| length).sum()
    }
}

/// Returns the parts of a unit to mask.
pub type FindParts<'a> = &'a dyn Fn(TextUnit<'_>) -> Vec<Range<usize>>;

impl SessionDir {
    /// Finds the parts to mask in all kept files of the session: every generation, its recording and its notes. Only
    /// parts of sealed files can be masked.
    pub fn plan_masks(&self, find: FindParts<'_>) -> Result<MaskPlan, FileError> {
        let mut plan = MaskPlan::default();
        for (stem, generation) in self.sealed_files()? {
            let sealed = self.open_sealed(&stem, generation)?;
            if has_units(&sealed) {
                let path = sealed.path().to_owned();
                let mut input = sealed.lenient_reader(SharedProblems::default());
                plan.find_in_file(&path, &mut input, find)?;
            }
        }
        for (_, path) in self.live_logs()? {
            let file = store_fs::open(&path).on("open", &path)?;
            plan.find_in_file(&path, &mut BufReader::new(file), find)?;
        }
        self.for_each_note_line(&mut |line| {
            plan.notes += u64::from(!plan.find_in_line(line, find).is_empty());
        })?;
        Ok(plan)
    }

    /// Whether a live log has records that are not sealed.
    pub fn has_live_logs(&self) -> Result<bool, FileError> {
        let names = list_names(self.path())?;
        Ok(names.iter().any(|name| Self::parse_live_log_base(name).is_some()))
    }

    /// Seals the live logs of ended recordings, so that parts of them can be masked.
    pub fn seal_live_logs(&self) -> Result<(), FileError> {
        super::super::sealing::seal_all_logs(self)
    }
}

/// Whether bytes start like a zstd, gzip or zip file.
fn is_compressed(bytes: &[u8]) -> bool {
    let magics: [&[u8]; 3] = [&[0x28, 0xb5, 0x2f, 0xfd], &[0x1f, 0x8b], b"PK\x03\x04"];
    magics.iter().any(|magic| bytes.starts_with(magic))
}

/// Masks the parts that `find` returns in a text of lines, with the short id of a tombstone. Returns their number.
pub fn mask_text(text: &mut [u8], find: FindParts<'_>, tombstone: &str) -> u64 {
    let (mut plan, mut ranges, mut begin) = (MaskPlan::default(), Vec::new(), 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let found = plan.find_in_line(line, find).into_iter();
        ranges.extend(found.map(|range| begin + range.start..begin + range.end));
        begin += line.len();
    }
    for range in &ranges {
        text[range.clone()].copy_from_slice(&make_mask(tombstone, range.len()));
    }
    ranges.len() as u64
}

impl MaskPlan {
    /// Whether a part is in a log that is not sealed.
    pub fn has_live_parts(&self) -> bool {
        self.files.keys().any(|name| parse_sealed_name(name).is_none())
    }

    /// Adds the parts of a file.
    fn find_in_file(
        &mut self,
        path: &Path,
        input: &mut dyn BufRead,
        find: FindParts<'_>,
    ) -> Result<(), FileError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (mut line, mut offset) = (Vec::new(), 0);
        loop {
            line.clear();
            let length = input.read_until(b'\n', &mut line).on("read", path)?;
            if length == 0 {
                return Ok(());
            }
            self.has_compressed_files |= offset == 0 && is_compressed(&line);
            let ranges = self.find_in_line(&line, find);
            if !ranges.is_empty() {
                let at = |range: Range<usize>| (offset + range.start as u64, range.len() as u64);
                self.files.entry(name.clone()).or_default().extend(ranges.into_iter().map(at));
            }
            offset += length as u64;
        }
    }

    /// Adds the parts of a line. Returns them.
    fn find_in_line(&mut self, line: &[u8], find: FindParts<'_>) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        for_each_unit(line, &mut |unit| {
            if matches!(unit.kind, UnitKind::Key) {
                return;
            }
            let bytes = &line[unit.range.clone()];
            let is_json = unit.kind != UnitKind::Line;
            let key = unit.key.clone().map(|key| &line[key]);
            let parts = find(TextUnit { bytes, is_json, key, line });
            if parts.is_empty() {
                return;
            }
            let masks = parts.iter().map(|part| (part.start as u64, part.len() as u64)).collect();
            self.units.insert(bytes.to_vec(), super::merge_ranges(masks));
            let begin = unit.range.start;
            ranges.extend(parts.into_iter().map(|part| begin + part.start..begin + part.end));
        });
        ranges
    }
}
