//! The statements that send entries and usage of a session, some megabytes at once.

use std::borrow::Cow;
use std::io::{self, Write};

use postgres::error::SqlState;
use steno_model::{Session, Timestamp};
use steno_store::index::session_rows::{EntryRecord, USAGE_KEY_VERSION, UsageRecord};
use steno_store::index::word_tokens::WordTokenizer;

use super::PostgresRemote;
use super::folded_words::FoldedWords;
use super::prepared_client::PreparedClient;
use crate::team_error::TeamError;

/// How many entries are sent at once.
const MAX_BATCH_ENTRIES: usize = 2_000;

/// The size of text at which a batch ends. A batch takes four times as much memory.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// A longer text is not a parameter of a statement, of which the client holds several copies.
const MAX_PARAMETER_BYTES: usize = 4 << 20;

/// The size of the pieces in which such a text is sent.
const PIECE_BYTES: usize = 256 << 10;

/// Adds entries after those that the database has, unless another machine has added some. One statement does both, so a
/// push that is killed leaves all of a batch or nothing.
macro_rules! add_entries_sql {
    ($body:literal) => {
        concat!(
            "
    WITH progress AS (
        UPDATE steno.session SET taken = $2, digest = $3 WHERE key = $1 AND taken = $4 RETURNING key
    ), added AS (
        INSERT INTO steno.entry (session, number, at, role, kind, tool, model, source, failed, text_hash, body,
            folded, parts, words, pairs)
        SELECT progress.key, $4 + e.place - 1, e.at, e.role, e.kind, e.tool, e.model, e.source, e.failed,
            e.text_hash, ",
            $body,
            ", e.folded, e.parts, e.words::tsvector, e.pairs
        FROM progress, unnest($5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
            $11::boolean[], $12::bytea[], $13::text[], $14::text[], $15::text[], $16::text[], $17::bytea[])
            WITH ORDINALITY AS e (at, role, kind, tool, model, source, failed, text_hash, body, folded, parts, words,
            pairs, place)
        ON CONFLICT DO NOTHING)
    SELECT count(*) FROM progress"
        )
    };
}

const ADD_ENTRIES: &str = add_entries_sql!("e.body");

/// The same if the text of the last entry was sent before.
const ADD_ENTRIES_BEFORE_LARGE_TEXT: &str = add_entries_sql!(
    "CASE WHEN $4 + e.place = $2 THEN (SELECT body FROM pg_temp.steno_large_text) ELSE e.body END"
);

const CREATE_LARGE_TEXT: &str = "CREATE TEMPORARY TABLE IF NOT EXISTS steno_large_text (body text)";

const COPY_LARGE_TEXT: &str = "COPY pg_temp.steno_large_text FROM STDIN (FORMAT binary)";

/// Adds usage. The records of a message can be in two parts of a session, so its counts are only raised. What is left of the
/// session's own total has no number, and is replaced.
const PUT_USAGE: &str = "
    INSERT INTO steno.usage (session, key, number, at, model, input, cache_read, cache_write, cache_write_5m,
        cache_write_1h, output, reasoning, band, key_version)
    SELECT DISTINCT ON (u.key) $1, u.*, $14::smallint FROM unnest($2::bytea[], $3::bigint[], $4::bigint[], $5::text[],
        $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
        $13::bigint[]) AS u (key) ORDER BY u.key
    ON CONFLICT (session, key) DO UPDATE SET
        (model, input, cache_read, cache_write, cache_write_5m, cache_write_1h, output, reasoning, band, key_version) = (
            SELECT coalesce(usage.model, excluded.model), greatest(usage.input, excluded.input),
                greatest(usage.cache_read, excluded.cache_read), greatest(usage.cache_write, excluded.cache_write),
                greatest(usage.cache_write_5m, excluded.cache_write_5m),
                greatest(usage.cache_write_1h, excluded.cache_write_1h), greatest(usage.output, excluded.output),
                greatest(usage.reasoning, excluded.reasoning), greatest(usage.band, excluded.band),
                excluded.key_version
            WHERE excluded.number IS NOT NULL
            UNION ALL SELECT excluded.model, excluded.input, excluded.cache_read, excluded.cache_write,
                excluded.cache_write_5m, excluded.cache_write_1h, excluded.output, excluded.reasoning, excluded.band,
                excluded.key_version
            WHERE excluded.number IS NULL)
    WHERE usage.key_version < excluded.key_version OR CASE WHEN excluded.number IS NULL
        THEN (usage.model, usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning)
            IS DISTINCT FROM (excluded.model, excluded.input, excluded.cache_read, excluded.cache_write,
                excluded.output, excluded.reasoning)
        ELSE excluded.input > usage.input OR excluded.cache_read > usage.cache_read
            OR excluded.cache_write > usage.cache_write OR excluded.cache_write_5m > usage.cache_write_5m
            OR excluded.cache_write_1h > usage.cache_write_1h OR excluded.output > usage.output
            OR excluded.reasoning > usage.reasoning OR (usage.model IS NULL AND excluded.model IS NOT NULL) END";

const SET_HEADING: &str =
    "UPDATE steno.session SET project = $2, title = $3, branch = $4, thread = $5,
    models = $6, started = $7, ended = $8, entries = $9, cost = $10, tokens = $11 WHERE key = $1";

impl PostgresRemote {
    /// Adds entries after the first `taken`. Returns whether the database had that many.
    pub(super) fn add_entries(
        &mut self,
        session: i64,
        taken: usize,
        batch: &mut EntryBatch<'_>,
    ) -> Result<bool, TeamError> {
        let (from, to) = (taken as i64, (taken + batch.at.len()) as i64);
        let mut sql = ADD_ENTRIES;
        if let Some(text) = batch.large_text.take() {
            match self.send_large_text(&text)? {
                true => sql = ADD_ENTRIES_BEFORE_LARGE_TEXT,
                false => *batch.bodies.last_mut().expect("the entry with the text") = Some(text),
            }
        }
        let EntryBatch { at, roles, kinds, tools, models, sources, .. } = batch;
        let EntryBatch { failed, text_hashes, bodies, folded, parts, words, pairs, .. } = batch;
        let row = self.run("send entries", |client| {
            client.query_one(
                sql,
                &[
                    &session,
                    &to,
                    &batch.digest,
                    &from,
                    at,
                    roles,
                    kinds,
                    tools,
                    models,
                    sources,
                    failed,
                    text_hashes,
                    bodies,
                    folded,
                    parts,
                    words,
                    pairs,
                ],
            )
        })?;
        Ok(row.get::<_, i64>(0) == 1)
    }

    /// Sends a text in pieces into a temporary table. Returns whether this role may have one.
    fn send_large_text(&mut self, text: &str) -> Result<bool, TeamError> {
        self.run("send a large text", |PreparedClient { client, .. }| {
            match client.batch_execute(CREATE_LARGE_TEXT) {
                Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                    return Ok(false);
                }
                created => created?,
            }
            client.batch_execute("TRUNCATE pg_temp.steno_large_text")?;
            let mut copy = client.copy_in(COPY_LARGE_TEXT)?;
            // The server refuses a text whose end was not written, and says why.
            let _ = write_copied_text(&mut copy, text);
            copy.finish().map(|_| true)
        })
    }

    /// Sends usage. Returns the number of rows that are new or have changed.
    pub(super) fn put_usage(
        &mut self,
        session: i64,
        usage: &[UsageRecord],
    ) -> Result<u64, TeamError> {
        usage.chunks(MAX_BATCH_ENTRIES).map(|batch| self.put_usage_batch(session, batch)).sum()
    }

    fn put_usage_batch(&mut self, session: i64, usage: &[UsageRecord]) -> Result<u64, TeamError> {
        let keys: Vec<&[u8]> = usage.iter().map(|record| record.key.as_slice()).collect();
        let numbers: Vec<Option<i64>> = usage.iter().map(|record| record.number).collect();
        let times: Vec<Option<i64>> = usage.iter().map(|record| record.time).collect();
        let models: Vec<Option<Cow<'_, str>>> =
            usage.iter().map(|record| record.model.as_deref().map(without_nul)).collect();
        let tokens: [Vec<i64>; 7] =
            std::array::from_fn(|kind| usage.iter().map(|record| record.tokens[kind]).collect());
        let [input, cache_read, cache_write, cache_5m, cache_1h, output, reasoning] = &tokens;
        let bands: Vec<i64> = usage.iter().map(|record| record.band).collect();
        self.run("send usage", |client| {
            client.execute(
                PUT_USAGE,
                &[
                    &session,
                    &keys,
                    &numbers,
                    &times,
                    &models,
                    input,
                    cache_read,
                    cache_write,
                    cache_5m,
                    cache_1h,
                    output,
                    reasoning,
                    &bands,
                    &USAGE_KEY_VERSION,
                ],
            )
        })
    }

    /// Removes usage with keys of older versions, after all of the session was sent with present ones.
    pub(super) fn remove_old_usage(&mut self, session: i64) -> Result<(), TeamError> {
        let sql = "SELECT steno.remove_old_usage($1, $2)";
        self.run("replace usage", |client| {
            client.execute(sql, &[&session, &USAGE_KEY_VERSION]).map(drop)
        })
    }

    /// Describes the session.
    pub(super) fn put_heading(&mut self, session: i64, heading: &Session) -> Result<(), TeamError> {
        let clean =
            |text: &Option<String>| text.as_deref().map(|text| without_nul(text).into_owned());
        let (project, title) = (clean(&heading.project), clean(&heading.title));
        let (branch, thread) = (clean(&heading.branch), clean(&heading.thread));
        let models: Vec<Cow<'_, str>> =
            heading.models.iter().map(|model| without_nul(model)).collect();
        let moment = |at: Option<Timestamp>| at.map(|at| at.instant().as_millisecond());
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

/// Writes a table of one text in the binary format of COPY.
fn write_copied_text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let length = i32::try_from(text.len()).map_err(io::Error::other)?;
    out.write_all(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x01")?;
    out.write_all(&length.to_be_bytes())?;
    text.as_bytes().chunks(PIECE_BYTES).try_for_each(|piece| out.write_all(piece))?;
    out.write_all(&(-1_i16).to_be_bytes())
}

/// PostgreSQL stores no NUL in texts.
fn without_nul(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "\u{2400}")),
        false => Cow::Borrowed(text),
    }
}

/// Entries as columns.
#[derive(Default)]
pub(super) struct EntryBatch<'a> {
    pub(super) at: Vec<i64>,
    roles: Vec<Cow<'a, str>>,
    kinds: Vec<&'static str>,
    tools: Vec<Option<Cow<'a, str>>>,
    models: Vec<Option<Cow<'a, str>>>,
    sources: Vec<Cow<'a, str>>,
    failed: Vec<bool>,
    text_hashes: Vec<Option<&'a [u8]>>,
    bodies: Vec<Option<Cow<'a, str>>>,
    folded: Vec<Option<String>>,
    parts: Vec<Option<String>>,
    words: Vec<Option<String>>,
    pairs: Vec<Option<Vec<u8>>>,
    /// The text of the last entry, if it is large. Then the entry has no body.
    large_text: Option<Cow<'a, str>>,
    /// The hash over the last entry and all before it.
    digest: &'a [u8],
}

impl<'a> EntryBatch<'a> {
    /// The first of these entries, up to the size of a batch. Entries without a time are from when the session `started`.
    pub(super) fn fill(
        entries: &'a [EntryRecord],
        started: Option<Timestamp>,
        tokenizer: &mut WordTokenizer,
    ) -> Result<Self, TeamError> {
        let started = started.map(|at| at.instant().as_millisecond());
        let (mut batch, mut bytes) = (Self::default(), 0);
        for entry in entries {
            batch.at.push(entry.time.or(started).unwrap_or(0));
            batch.push_entry(entry, tokenizer)?;
            bytes += entry.text.as_ref().map_or(0, |text| text.len());
            if batch.at.len() >= MAX_BATCH_ENTRIES || bytes >= MAX_BATCH_BYTES {
                break;
            }
        }
        Ok(batch)
    }

    fn push_entry(
        &mut self,
        entry: &'a EntryRecord,
        tokenizer: &mut WordTokenizer,
    ) -> Result<(), TeamError> {
        self.roles.push(without_nul(&entry.role));
        self.kinds.push(entry.kind);
        self.tools.push(entry.tool.as_deref().map(without_nul));
        self.models.push(entry.model.as_deref().map(without_nul));
        self.sources.push(without_nul(&entry.source));
        self.failed.push(entry.is_failure);
        self.text_hashes.push(entry.text_hash.as_ref().map(<[u8; 16]>::as_slice));
        let mut text = entry.text.as_deref().map(|text| without_nul(text));
        // A batch ends after a large text.
        self.large_text = text.take_if(|text| text.len() > MAX_PARAMETER_BYTES);
        self.bodies.push(text);
        self.digest = &entry.digest;
        let words = entry.text.as_deref().map(|text| FoldedWords::new(text, tokenizer));
        let (folded, parts, vector, pairs) = match words.transpose()? {
            Some(FoldedWords { folded, parts, vector, pairs }) => {
                (Some(folded), Some(parts), Some(vector), Some(pairs))
            }
            None => (None, None, None, None),
        };
        self.folded.push(folded);
        self.parts.push(parts);
        self.words.push(vector);
        self.pairs.push(pairs);
        Ok(())
    }
}
