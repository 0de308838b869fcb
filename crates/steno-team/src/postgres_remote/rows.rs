//! Sends entries and usage of a session. What the database has already is not sent again.

use std::fmt::Write as _;
use std::io::Write as _;

use steno_store::index::session_rows::{EntryRecord, SessionRows, UsageRecord};
use steno_store::index::text_folding::fold_text;
use steno_store::index::word_tokens::WordTokenizer;

use super::{DatabaseFailure, PostgresRemote};
use crate::manifest::SessionKey;
use crate::team_error::TeamError;

/// How many entries are sent in one transaction.
const MAX_BATCH_ENTRIES: usize = 2_000;

/// The size of text at which a transaction ends.
const MAX_BATCH_BYTES: usize = 8 << 20;

/// A longer text is only searched up to here.
const MAX_WORD_BYTES: usize = 512 << 10;

/// A longer word is cut: PostgreSQL limits the length of a key.
const MAX_WORD_LENGTH: usize = 500;

const STAGING_TABLES: &str = "
CREATE TEMP TABLE IF NOT EXISTS new_entry (number bigint, at bigint, role text, kind text, tool text,
    model text, source text, failed boolean, text_hash bytea, body text, folded text, parts text,
    words tsvector) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE IF NOT EXISTS new_usage (key bytea, number bigint, at bigint, model text, input bigint,
    cache_read bigint, cache_write bigint, cache_write_5m bigint, cache_write_1h bigint, output bigint,
    reasoning bigint, band bigint) ON COMMIT DELETE ROWS;
";

const TAKE_ENTRIES: &str = "INSERT INTO steno.entry (session, number, at, role, kind, tool, model, source,
        failed, text_hash, body, folded, parts, words)
    SELECT $1, number, at, role, kind, tool, model, source, failed, text_hash, body, folded, parts, words
    FROM pg_temp.new_entry ON CONFLICT DO NOTHING";

const TAKE_USAGE: &str = "INSERT INTO steno.usage (session, key, number, at, model, input, cache_read,
        cache_write, cache_write_5m, cache_write_1h, output, reasoning, band)
    SELECT DISTINCT ON (key) $1, key, number, at, model, input, cache_read, cache_write, cache_write_5m,
        cache_write_1h, output, reasoning, band FROM pg_temp.new_usage ORDER BY key
    ON CONFLICT (session, key) DO UPDATE SET model = excluded.model, input = excluded.input,
        cache_read = excluded.cache_read, cache_write = excluded.cache_write,
        cache_write_5m = excluded.cache_write_5m, cache_write_1h = excluded.cache_write_1h,
        output = excluded.output, reasoning = excluded.reasoning, band = excluded.band
    WHERE (usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning, usage.model)
        IS DISTINCT FROM (excluded.input, excluded.cache_read, excluded.cache_write, excluded.output,
            excluded.reasoning, excluded.model)";

const SET_PROGRESS: &str =
    "UPDATE steno.session SET taken = $2, digest = $3 WHERE key = $1 AND taken = $4";

const SET_HEADING: &str =
    "UPDATE steno.session SET project = $2, title = $3, branch = $4, thread = $5,
    models = $6, started = $7, ended = $8, entries = $9, cost = $10, tokens = $11 WHERE key = $1";

impl PostgresRemote {
    /// Sends the rows that the database lacks. Returns their number.
    pub(crate) fn put_rows(
        &mut self,
        key: &SessionKey,
        rows: &SessionRows,
    ) -> Result<u64, TeamError> {
        if !self.has_staging {
            self.run("prepare a push", |client| client.batch_execute(STAGING_TABLES))?;
            self.has_staging = true;
        }
        let session = self.session_number(key)?;
        let mut sent = 0;
        let mut taken = self.common_entries(session, rows)?;
        let mut encoder = EntryEncoder { rows, tokenizer: WordTokenizer::new()? };
        while taken < rows.entries.len() {
            let (text, count) = encoder.encode_batch(taken)?;
            let (from, to) = (taken as i64, (taken + count) as i64);
            let digest = rows.entries[taken + count - 1].digest;
            let is_next = self.run("send entries", |client| {
                let mut transaction = client.transaction()?;
                let changed = transaction
                    .execute(SET_PROGRESS, &[&session, &to, &digest.as_slice(), &from])?;
                if changed == 1 {
                    let mut copy = transaction.copy_in("COPY pg_temp.new_entry FROM STDIN")?;
                    copy.write_all(text.as_bytes())?;
                    copy.finish()?;
                    transaction.execute(TAKE_ENTRIES, &[&session])?;
                }
                transaction.commit()?;
                Ok::<_, DatabaseFailure>(changed == 1)
            })?;
            if !is_next {
                // Another machine has sent entries of this session. The next push compares again.
                return Ok(sent);
            }
            taken += count;
            sent += count as u64;
        }
        sent += self.put_usage(session, &rows.usage)?;
        self.put_heading(session, rows)?;
        Ok(sent)
    }

    /// How many entries the database has. If they differ from these, it forgets them first.
    fn common_entries(&mut self, session: i64, rows: &SessionRows) -> Result<usize, TeamError> {
        let sql = "SELECT taken, digest FROM steno.session WHERE key = $1";
        let row = self.run("compare entries", |client| client.query_one(sql, &[&session]))?;
        let taken = usize::try_from(row.get::<_, i64>(0)).unwrap_or(0);
        let digest: Option<&[u8]> = row.get(1);
        let own = taken.checked_sub(1).and_then(|last| rows.entries.get(last));
        if taken == 0 || own.is_some_and(|own| Some(own.digest.as_slice()) == digest) {
            return Ok(taken);
        }
        self.run("replace entries", |client| {
            client.execute("SELECT steno.clear_rows($1)", &[&session])
        })?;
        Ok(0)
    }

    fn put_usage(&mut self, session: i64, usage: &[UsageRecord]) -> Result<u64, TeamError> {
        if usage.is_empty() {
            return Ok(0);
        }
        let text: String = usage.iter().map(encode_usage).collect();
        self.run("send usage", |client| {
            let mut transaction = client.transaction()?;
            let mut copy = transaction.copy_in("COPY pg_temp.new_usage FROM STDIN")?;
            copy.write_all(text.as_bytes())?;
            copy.finish()?;
            let sent = transaction.execute(TAKE_USAGE, &[&session])?;
            transaction.commit()?;
            Ok::<_, DatabaseFailure>(sent)
        })
    }

    fn put_heading(&mut self, session: i64, rows: &SessionRows) -> Result<(), TeamError> {
        let heading = &rows.session;
        let clean = |text: &Option<String>| text.as_deref().map(without_nul);
        let (project, title) = (clean(&heading.project), clean(&heading.title));
        let (branch, thread) = (clean(&heading.branch), clean(&heading.thread));
        let models: Vec<String> = heading.models.iter().map(|model| without_nul(model)).collect();
        let moment =
            |at: Option<steno_model::Timestamp>| at.map(|at| at.instant().as_millisecond());
        let (started, ended) = (moment(heading.started), moment(heading.ended));
        let entries = heading.totals.entries as i64;
        let usage = heading.totals.usage;
        let tokens =
            i64::try_from(usage.prompt_tokens().saturating_add(usage.output)).unwrap_or(i64::MAX);
        let cost = heading.totals.cost;
        self.run("describe a session", |client| {
            client.execute(
                SET_HEADING,
                &[
                    &session, &project, &title, &branch, &thread, &models, &started, &ended,
                    &entries, &cost, &tokens,
                ],
            )
        })?;
        Ok(())
    }
}

/// PostgreSQL stores no NUL in texts.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{2400}")
}

/// Encodes entries as lines of COPY.
struct EntryEncoder<'a> {
    rows: &'a SessionRows,
    tokenizer: WordTokenizer,
}

impl EntryEncoder<'_> {
    /// Encodes entries from a number on. Returns the lines and their number.
    fn encode_batch(&mut self, from: usize) -> Result<(String, usize), TeamError> {
        let (mut text, mut count) = (String::new(), 0);
        for (number, entry) in self.rows.entries.iter().enumerate().skip(from) {
            self.encode_entry(number, entry, &mut text)?;
            count += 1;
            if count >= MAX_BATCH_ENTRIES || text.len() >= MAX_BATCH_BYTES {
                break;
            }
        }
        Ok((text, count))
    }

    fn encode_entry(
        &mut self,
        number: usize,
        entry: &EntryRecord,
        out: &mut String,
    ) -> Result<(), TeamError> {
        let started = self.rows.session.started.map(|at| at.instant().as_millisecond());
        let _ = write!(out, "{number}\t{}\t", entry.time.or(started).unwrap_or(0));
        push_field(Some(&entry.role), out);
        push_field(Some(entry.kind), out);
        push_field(entry.tool.as_deref(), out);
        push_field(entry.model.as_deref(), out);
        push_field(Some(&entry.source), out);
        out.push_str(if entry.is_failure { "t\t" } else { "f\t" });
        push_bytes(entry.text_hash.as_ref().map(<[u8; 16]>::as_slice), out);
        push_field(entry.text.as_deref(), out);
        match &entry.text {
            Some(text) => {
                let words = FoldedWords::new(text, &mut self.tokenizer)?;
                push_field(Some(&words.folded), out);
                push_field(Some(&words.parts), out);
                out.push_str(&words.vector);
            }
            None => out.push_str("\\N\t\\N\t\\N"),
        }
        out.push('\n');
        Ok(())
    }
}

/// The words of a text, as the database needs them.
struct FoldedWords {
    /// The words of the text in order, with a space around each.
    folded: String,
    /// The parts of its words, likewise.
    parts: String,
    /// Each word once, as a `tsvector`.
    vector: String,
}

impl FoldedWords {
    fn new(text: &str, tokenizer: &mut WordTokenizer) -> Result<Self, TeamError> {
        let end = text.len().min(MAX_WORD_BYTES);
        let end = (0..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let indexable = fold_text(&text[..end]);
        let (mut folded, mut parts) = (" ".to_owned(), " ".to_owned());
        let mut push = |out: &mut String, text: &str| {
            tokenizer.for_each_word(text, &mut |word| {
                out.push_str(cut_word(word));
                out.push(' ');
            })
        };
        push(&mut folded, &indexable.text)?;
        push(&mut parts, &indexable.parts)?;
        let mut words: Vec<&str> =
            folded.split(' ').chain(parts.split(' ')).filter(|word| !word.is_empty()).collect();
        words.sort_unstable();
        words.dedup();
        let mut vector = String::new();
        for word in words {
            vector.push('\'');
            vector.push_str(word);
            vector.push_str("' ");
        }
        Ok(Self { folded, parts, vector })
    }
}

/// The beginning of a very long word.
pub(super) fn cut_word(word: &str) -> &str {
    let end = word.len().min(MAX_WORD_LENGTH);
    let end = (0..=end).rev().find(|at| word.is_char_boundary(*at)).unwrap_or(0);
    &word[..end]
}

fn encode_usage(usage: &UsageRecord) -> String {
    let mut out = String::new();
    push_bytes(Some(&usage.key), &mut out);
    let number = |number: Option<i64>| number.map_or("\\N".to_owned(), |n| n.to_string());
    let _ = write!(out, "{}\t{}\t", number(usage.number), number(usage.time));
    push_field(usage.model.as_deref(), &mut out);
    for tokens in usage.tokens {
        let _ = write!(out, "{tokens}\t");
    }
    let _ = writeln!(out, "{}", usage.band);
    out
}

fn push_bytes(bytes: Option<&[u8]>, out: &mut String) {
    match bytes {
        Some(bytes) => {
            out.push_str("\\\\x");
            for byte in bytes {
                let _ = write!(out, "{byte:02x}");
            }
        }
        None => out.push_str("\\N"),
    }
    out.push('\t');
}

/// Appends a text, escaped as COPY wants it.
fn push_field(text: Option<&str>, out: &mut String) {
    let Some(text) = text else {
        out.push_str("\\N\t");
        return;
    };
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push('\u{2400}'),
            c => out.push(c),
        }
    }
    out.push('\t');
}
