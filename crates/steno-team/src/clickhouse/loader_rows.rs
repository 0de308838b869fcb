//! Rows of a session as lines of JSON.

use serde_json::json;
use steno_store::index::session_rows::{EntryRecord, SessionRows, UsageRecord};
use steno_store::index::text_folding::fold_text;
use steno_store::index::word_tokens::WordTokenizer;

use crate::team_error::TeamError;

pub(super) const ENTRY_COLUMNS: &str = "org, session, source, seq, part, at, role, kind, tool, model, is_failure, body, words, text_bytes";
pub(super) const USAGE_COLUMNS: &str = "org, key, session, revision, at, model, band, input, cache_read, cache_write, cache_write_5m, cache_write_1h, output, reasoning";

/// Between the words of a text and the parts of its words.
const PARTS_MARK: char = '\u{1}';

/// Encodes the rows of one session.
pub(super) struct RowEncoder<'a> {
    pub(super) org: &'a str,
    pub(super) session: &'a str,
    pub(super) rows: &'a SessionRows,
    pub(super) tokenizer: &'a mut WordTokenizer,
}

impl RowEncoder<'_> {
    /// Appends an entry, as a row of a part.
    pub(super) fn push_entry(
        &mut self,
        number: usize,
        part: &str,
        out: &mut String,
    ) -> Result<(), TeamError> {
        let entry: &EntryRecord = &self.rows.entries[number];
        let started = self.rows.session.started.map(|at| at.instant().as_millisecond());
        let (mut words, mut text_bytes) = (String::new(), 0);
        if let Some(text) = &entry.text {
            let folded = fold_text(text);
            words.push(' ');
            let mut push_words = |text: &str, words: &mut String| {
                self.tokenizer.for_each_word(text, &mut |word| {
                    words.push_str(word);
                    words.push(' ');
                })
            };
            push_words(&folded.text, &mut words)?;
            text_bytes = words.len();
            words.extend([PARTS_MARK, ' ']);
            push_words(&folded.parts, &mut words)?;
        }
        let row = json!({
            "org": self.org, "session": self.session, "source": entry.source, "seq": number,
            "part": part, "at": entry.time.or(started).unwrap_or(0), "role": entry.role,
            "kind": entry.kind, "tool": entry.tool.as_deref().unwrap_or_default(),
            "model": entry.model.as_deref().unwrap_or_default(),
            "is_failure": u8::from(entry.is_failure),
            "body": entry.text.as_deref().unwrap_or_default(), "words": words,
            "text_bytes": text_bytes,
        });
        out.push_str(&row.to_string());
        out.push('\n');
        Ok(())
    }

    /// Appends all usage, as rows of a revision.
    pub(super) fn push_usage(&self, revision: &str, out: &mut String) {
        for record in &self.rows.usage {
            let UsageRecord { key, time, model, tokens, band, .. } = record;
            let [input, cache_read, cache_write, write_5m, write_1h, output, reasoning] = tokens;
            let row = json!({
                "org": self.org, "key": hex_text(key), "session": self.session,
                "revision": revision, "at": time, "model": model.as_deref().unwrap_or_default(),
                "band": band, "input": input, "cache_read": cache_read,
                "cache_write": cache_write, "cache_write_5m": write_5m,
                "cache_write_1h": write_1h, "output": output, "reasoning": reasoning,
            });
            out.push_str(&row.to_string());
            out.push('\n');
        }
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
