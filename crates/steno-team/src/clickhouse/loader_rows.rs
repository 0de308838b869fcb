//! Rows of a session as lines of JSON.

use serde::Serialize;
use serde_json::json;
use steno_store::index::session_rows::{EntryRecord, UsageRecord};
use steno_store::index::text_folding::fold_text;
use steno_store::index::word_tokens::WordTokenizer;

use crate::postgres_remote::folded_words::searched_part;
use crate::team_error::TeamError;

pub(super) const ENTRY_COLUMNS: &str = "org, session, source, seq, part, at, role, kind, tool, model, is_failure, body, words, text_bytes";
pub(super) const USAGE_COLUMNS: &str = "org, key, session, revision, at, model, band, input, cache_read, cache_write, cache_write_5m, cache_write_1h, output, reasoning";

/// Between the words of a text and the parts of its words.
const PARTS_MARK: char = '\u{1}';

/// Encodes the rows of one session.
pub(super) struct RowEncoder<'a> {
    pub(super) org: &'a str,
    pub(super) session: &'a str,
}

/// The row of an entry.
#[derive(Debug, Default, Serialize)]
pub(super) struct LoadedEntryRow<'a> {
    org: &'a str,
    session: &'a str,
    source: &'a str,
    seq: usize,
    part: &'a str,
    at: Option<i64>,
    role: &'a str,
    kind: &'a str,
    tool: &'a str,
    model: &'a str,
    is_failure: u8,
    body: &'a str,
    words: String,
    text_bytes: usize,
}

impl RowEncoder<'_> {
    /// The row of an entry in a part, without its words.
    pub(super) fn entry_row<'a>(
        &'a self,
        number: usize,
        entry: &'a EntryRecord,
        part: &'a str,
    ) -> LoadedEntryRow<'a> {
        LoadedEntryRow {
            org: self.org,
            session: self.session,
            source: &entry.source,
            seq: number,
            part,
            at: entry.time,
            role: &entry.role,
            kind: entry.kind,
            tool: entry.tool.as_deref().unwrap_or_default(),
            model: entry.model.as_deref().unwrap_or_default(),
            is_failure: u8::from(entry.is_failure),
            body: entry.text.as_ref().map_or("", |text| text),
            ..LoadedEntryRow::default()
        }
    }

    /// Appends usage, as rows of a revision.
    pub(super) fn push_usage(&self, usage: &[UsageRecord], revision: &str, out: &mut Vec<u8>) {
        for record in usage {
            let UsageRecord { key, time, model, tokens, band, .. } = record;
            let [input, cache_read, cache_write, write_5m, write_1h, output, reasoning] = tokens;
            let row = json!({
                "org": self.org, "key": hex_text(key), "session": self.session,
                "revision": revision, "at": time, "model": model.as_deref().unwrap_or_default(),
                "band": band, "input": input, "cache_read": cache_read,
                "cache_write": cache_write, "cache_write_5m": write_5m,
                "cache_write_1h": write_1h, "output": output, "reasoning": reasoning,
            });
            push_line(&row, out);
        }
    }
}

impl LoadedEntryRow<'_> {
    /// Appends the row. An entry without a time is from when the session `started`.
    pub(super) fn push(
        mut self,
        started: Option<i64>,
        tokenizer: &mut WordTokenizer,
        out: &mut Vec<u8>,
    ) -> Result<(), TeamError> {
        self.at = Some(self.at.or(started).unwrap_or(0));
        if !self.body.is_empty() {
            self.add_words(tokenizer)?;
        }
        out.reserve(self.body.len() + self.words.len());
        push_line(&self, out);
        Ok(())
    }

    fn add_words(&mut self, tokenizer: &mut WordTokenizer) -> Result<(), TeamError> {
        let folded = fold_text(searched_part(self.body));
        let mut push_words = |text: &str, words: &mut String| {
            tokenizer.for_each_word(text, &mut |word| {
                words.push_str(word);
                words.push(' ');
            })
        };
        self.words.push(' ');
        push_words(&folded.text, &mut self.words)?;
        self.text_bytes = self.words.len();
        self.words.extend([PARTS_MARK, ' ']);
        push_words(&folded.parts, &mut self.words)?;
        Ok(())
    }
}

fn push_line(row: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(&mut *out, row).expect("a row has only texts and numbers");
    out.push(b'\n');
}

/// Bytes as hexadecimal digits.
pub(super) fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
