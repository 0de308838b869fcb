//! Masks of forgotten texts, and the recognition of these texts in files that are kept later.
//!
//! # Units
//! A text is found by its unit: a JSON string, without its quotes and as it is escaped, or a whole line that is not
//! JSON. A mask has the length of the text that it replaces and contains no character that JSON escapes, so offsets,
//! line numbers and the structure of records stay the same.
//!
//! # Recognition
//! A tombstone has a hash of each unit under the secret key of the store, `forget.key`, which is beside the vault and
//! never leaves the store. Whoever has a copy of the vault alone cannot check a guess. Whoever has the key too can
//! check guesses of whole units. A unit is recognized wherever it appears, also after the agent has rewritten the file;
//! a unit that the agent has changed is not.

use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use super::frame::HexHash;
use super::tombstone::{TextPrint, Tombstone, TombstoneState};
use crate::SessionFile;
use steno_cipher::store_fs;
use steno_model::durable::{self, FileError, OnPath};

/// The key file's name beside the vault.
pub(crate) const FORGET_KEY_FILE: &str = "forget.key";

/// Units shorter than this are masked only in the session that they were forgotten in: elsewhere they may mean
/// something else.
const MIN_SHARED_UNIT: u64 = 12;

/// The secret key of a store.
#[derive(Clone, Copy)]
pub(crate) struct ForgetKey([u8; blake3::KEY_LEN]);

impl std::fmt::Debug for ForgetKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ForgetKey")
    }
}

impl ForgetKey {
    /// Reads the key beside the vault at `root`; `None` if there is none.
    pub(crate) fn read(root: &Path) -> Result<Option<Self>, FileError> {
        let path = root.with_file_name(FORGET_KEY_FILE);
        match store_fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).on("read", &path),
            Ok(text) => {
                let key = blake3::Hash::from_hex(text.trim_ascii_end()).map_err(|_| {
                    io::Error::new(io::ErrorKind::InvalidData, "not a key of 64 digits")
                });
                Ok(Some(Self(*key.on("read", &path)?.as_bytes())))
            }
        }
    }

    /// Reads the key, or creates one.
    pub(crate) fn read_or_create(root: &Path) -> Result<Self, FileError> {
        let path = root.with_file_name(FORGET_KEY_FILE);
        let mut key = [0; blake3::KEY_LEN];
        for half in key.chunks_mut(16) {
            half.copy_from_slice(Uuid::new_v4().as_bytes());
        }
        let text = format!("{}\n", blake3::Hash::from_bytes(*blake3::hash(&key).as_bytes()));
        store_fs::create_private_dir(durable::parent_folder(&path))?;
        // An existing key stays.
        store_fs::create_atomic(&path, text.as_bytes())?;
        Self::read(root)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)).on("read", &path)
    }

    fn hash_unit(&self, unit: &[u8]) -> HexHash {
        HexHash(blake3::keyed_hash(&self.0, unit))
    }

    /// The print of a unit with its masks.
    pub(crate) fn print_unit(&self, unit: &[u8], masks: Vec<(u64, u64)>) -> TextPrint {
        TextPrint { hash: self.hash_unit(unit), length: unit.len() as u64, masks }
    }
}

/// The bytes that replace `length` forgotten bytes. Long ones name the tombstone.
pub(crate) fn make_mask(tombstone: &str, length: usize) -> Vec<u8> {
    let marker = format!("[forgotten {tombstone}]").into_bytes();
    if marker.len() > length {
        return vec![b'*'; length];
    }
    let mut mask = marker;
    mask.resize(length, b' ');
    mask
}

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitKind {
    /// The key of a field.
    Key,
    /// Another JSON string.
    Value,
    /// A line that is not JSON.
    Line,
}

/// The location of a unit in a line.
#[derive(Clone, Debug)]
pub(crate) struct UnitLocation {
    pub(crate) range: Range<usize>,
    pub(crate) kind: UnitKind,
    /// The key before a value.
    pub(crate) key: Option<Range<usize>>,
}

/// Calls `take` with each unit of a line: JSON strings, or the whole line if it is not JSON.
pub(crate) fn for_each_unit(line: &[u8], take: &mut dyn FnMut(UnitLocation)) {
    let text = line.trim_ascii();
    if !text.first().is_some_and(|first| b"{[\"]}".contains(first)) {
        let end = line.trim_ascii_end().len();
        return take(UnitLocation { range: 0..end, kind: UnitKind::Line, key: None });
    }
    let (mut at, mut last_key) = (0, None);
    while let Some(quote) = memchr::memchr(b'"', &line[at..]) {
        let begin = at + quote + 1;
        let end = find_string_end(line, begin);
        let after = line.get(end + 1..).unwrap_or_default().trim_ascii_start();
        let (range, key) = (begin..end, last_key.clone());
        if after.first() == Some(&b':') {
            last_key = Some(range.clone());
            take(UnitLocation { range, kind: UnitKind::Key, key });
        } else {
            take(UnitLocation { range, kind: UnitKind::Value, key });
        }
        at = (end + 1).min(line.len());
    }
}

/// The offset of the quote that ends a string, or the end of the line.
fn find_string_end(line: &[u8], begin: usize) -> usize {
    let mut at = begin;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &line[at..]) {
        if line[at + found] == b'"' {
            return at + found;
        }
        at = (at + found + 2).min(line.len());
    }
    line.len()
}

/// The texts that must not be kept again.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForgottenTexts {
    key: Option<ForgetKey>,
    /// Units by length and hash.
    units: HashMap<u64, HashMap<[u8; 32], Vec<ForgottenUnit>>>,
}

#[derive(Clone, Debug)]
struct ForgottenUnit {
    session: String,
    /// The tombstone's short id.
    tombstone: String,
    masks: Vec<(u64, u64)>,
}

impl ForgottenTexts {
    /// The texts of all tombstones of the vault at `root`.
    pub(crate) fn load(root: &Path, state: &TombstoneState) -> Result<Self, FileError> {
        let mut texts = Self::default();
        for tombstone in &state.tombstones {
            texts.add_tombstone(tombstone);
        }
        if !texts.units.is_empty() {
            texts.key = ForgetKey::read(root)?;
        }
        Ok(texts)
    }

    fn add_tombstone(&mut self, tombstone: &Tombstone) {
        for print in tombstone.parts().into_iter().flat_map(|parts| &parts.texts) {
            let (session, short) = (tombstone.session.clone(), tombstone.short_id());
            let unit = ForgottenUnit { session, tombstone: short, masks: print.masks.clone() };
            let same_length = self.units.entry(print.length).or_default();
            same_length.entry(*print.hash.0.as_bytes()).or_default().push(unit);
        }
    }

    /// Whether there is nothing to mask.
    pub(crate) fn is_empty(&self) -> bool {
        self.key.is_none() || self.units.is_empty()
    }

    /// Masks the forgotten units of a line that is kept for a session. Returns whether there were any.
    pub(crate) fn mask_line(&self, session: &str, line: &mut [u8]) -> bool {
        let mut is_masked = false;
        // A unit may have been forgotten in several steps. Each mask changes its hash, so this ends.
        while self.mask_known_units(session, line) {
            is_masked = true;
        }
        is_masked
    }

    /// Masks the units that are known as they are. Returns whether the line has changed.
    fn mask_known_units(&self, session: &str, line: &mut [u8]) -> bool {
        let Some(key) = &self.key else { return false };
        let mut masks = Vec::new();
        for_each_unit(line, &mut |UnitLocation { range: unit, kind, .. }| {
            if kind == UnitKind::Key {
                return;
            }
            let Some(same_length) = self.units.get(&(unit.len() as u64)) else { return };
            let hash = *key.hash_unit(&line[unit.clone()]).0.as_bytes();
            let is_short = (unit.len() as u64) < MIN_SHARED_UNIT;
            for known in same_length.get(&hash).into_iter().flatten() {
                if !is_short || known.session == session {
                    masks.extend(known.masks.iter().map(|(at, length)| {
                        (unit.start + *at as usize, make_mask(&known.tombstone, *length as usize))
                    }));
                }
            }
        });
        let mut is_changed = false;
        for (begin, mask) in &masks {
            let target = &mut line[*begin..begin + mask.len()];
            is_changed |= target != mask.as_slice();
            target.copy_from_slice(mask);
        }
        is_changed
    }

    /// The same file with masks, as it is kept for a session.
    pub(crate) fn mask_file(self: &Arc<Self>, session: &str, file: &SessionFile) -> SessionFile {
        if self.is_empty() {
            return file.clone();
        }
        let (texts, session, inner) = (Arc::clone(self), session.to_owned(), file.clone());
        file.with_content(move |at| {
            let input = inner.open().map_err(io::Error::other)?;
            let mut masked = MaskingReader {
                texts: Arc::clone(&texts),
                session: session.clone(),
                input,
                line: Vec::new(),
                consumed: 0,
            };
            io::copy(&mut masked.by_ref().take(at), &mut io::sink())?;
            Ok(Box::new(masked))
        })
    }
}

/// Masks forgotten texts while a file is read.
struct MaskingReader {
    texts: Arc<ForgottenTexts>,
    session: String,
    input: Box<dyn BufRead>,
    line: Vec<u8>,
    consumed: usize,
}

impl Read for MaskingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for MaskingReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.consumed == self.line.len() {
            self.line.clear();
            self.consumed = 0;
            self.input.read_until(b'\n', &mut self.line)?;
            let end = self.line.strip_suffix(b"\n").map_or(self.line.len(), <[u8]>::len);
            self.texts.mask_line(&self.session, &mut self.line[..end]);
        }
        Ok(&self.line[self.consumed..])
    }

    fn consume(&mut self, count: usize) {
        self.consumed += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(line: &str) -> Vec<&str> {
        let mut found = Vec::new();
        for_each_unit(line.as_bytes(), &mut |unit| found.push(&line[unit.range]));
        found
    }

    #[test]
    fn units_are_json_strings_or_whole_lines() {
        assert_eq!(units(r#"{"a":"b\"c","d":["e",1]}"#), ["a", r#"b\"c"#, "d", "e"]);
        assert_eq!(units("  \"text\": \"x\\\\\","), ["text", "x\\\\"]);
        assert_eq!(units("> he said \"no\"\r"), ["> he said \"no\""]);
        assert_eq!(units(r#"{"torn":"with"#), ["torn", "with"]);
        assert_eq!(units(r#"{"torn":"wi\"#), ["torn", r"wi\"]);
    }

    #[test]
    fn a_mask_has_the_length_of_what_it_replaces() {
        for length in 0..60 {
            let mask = make_mask("0123abcd", length);
            assert_eq!(mask.len(), length);
            assert_eq!(mask.starts_with(b"[forgotten 0123abcd]"), length >= 20);
        }
    }
}
