//! Sends entries and usage of a session. What the database has already is not sent again.

use std::borrow::Cow;

use steno_model::Timestamp;
use steno_store::index::session_rows::{EntryRecord, SessionRows, UsageRecord};
use steno_store::index::word_tokens::WordTokenizer;

use super::PostgresRemote;
use super::folded_words::FoldedWords;
use crate::manifest::SessionKey;
use crate::team_error::TeamError;

/// How many entries are sent at once.
const MAX_BATCH_ENTRIES: usize = 2_000;

/// The size of text at which a batch ends. A batch takes four times as much memory.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// Adds entries after those that the database has, unless another machine has added some. One statement does both, so a
/// push that is killed leaves all of a batch or nothing.
const ADD_ENTRIES: &str = "
    WITH progress AS (
        UPDATE steno.session SET taken = $2, digest = $3 WHERE key = $1 AND taken = $4 RETURNING key
    ), added AS (
        INSERT INTO steno.entry (session, number, at, role, kind, tool, model, source, failed, text_hash, body,
            folded, parts, words)
        SELECT progress.key, $4 + e.place - 1, e.at, e.role, e.kind, e.tool, e.model, e.source, e.failed,
            e.text_hash, e.body, e.folded, e.parts, e.words::tsvector
        FROM progress, unnest($5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
            $11::boolean[], $12::bytea[], $13::text[], $14::text[], $15::text[], $16::text[]) WITH ORDINALITY
            AS e (at, role, kind, tool, model, source, failed, text_hash, body, folded, parts, words, place)
        ON CONFLICT DO NOTHING)
    SELECT count(*) FROM progress";

const PUT_USAGE: &str = "
    INSERT INTO steno.usage (session, key, number, at, model, input, cache_read, cache_write, cache_write_5m,
        cache_write_1h, output, reasoning, band)
    SELECT DISTINCT ON (u.key) $1, u.* FROM unnest($2::bytea[], $3::bigint[], $4::bigint[], $5::text[],
        $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
        $13::bigint[]) AS u (key) ORDER BY u.key
    ON CONFLICT (session, key) DO UPDATE SET model = excluded.model, input = excluded.input,
        cache_read = excluded.cache_read, cache_write = excluded.cache_write,
        cache_write_5m = excluded.cache_write_5m, cache_write_1h = excluded.cache_write_1h,
        output = excluded.output, reasoning = excluded.reasoning, band = excluded.band
    WHERE (usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning, usage.model)
        IS DISTINCT FROM (excluded.input, excluded.cache_read, excluded.cache_write, excluded.output,
            excluded.reasoning, excluded.model)";

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
        let session = self.session_number(key)?;
        let mut sent = 0;
        let mut taken = self.common_entries(session, rows)?;
        while taken < rows.entries.len() {
            let batch = EntryBatch::fill(rows, taken, self.tokenizer()?)?;
            let added = self.add_entries(session, taken, &batch)?;
            if !added {
                // Another machine has sent entries of this session. The next push compares again.
                return Ok(sent);
            }
            taken += batch.at.len();
            sent += batch.at.len() as u64;
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

    /// Adds entries after the first `taken`. Returns whether the database had that many.
    fn add_entries(
        &mut self,
        session: i64,
        taken: usize,
        batch: &EntryBatch<'_>,
    ) -> Result<bool, TeamError> {
        let (from, to) = (taken as i64, (taken + batch.at.len()) as i64);
        let EntryBatch { at, roles, kinds, tools, models, sources, .. } = batch;
        let EntryBatch { failed, text_hashes, bodies, folded, parts, words, .. } = batch;
        let row = self.run("send entries", |client| {
            client.query_one(
                ADD_ENTRIES,
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
                ],
            )
        })?;
        Ok(row.get::<_, i64>(0) == 1)
    }

    fn put_usage(&mut self, session: i64, usage: &[UsageRecord]) -> Result<u64, TeamError> {
        if usage.is_empty() {
            return Ok(0);
        }
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
                ],
            )
        })
    }

    fn put_heading(&mut self, session: i64, rows: &SessionRows) -> Result<(), TeamError> {
        let heading = &rows.session;
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

/// PostgreSQL stores no NUL in texts.
fn without_nul(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "\u{2400}")),
        false => Cow::Borrowed(text),
    }
}

/// Entries as columns.
#[derive(Default)]
struct EntryBatch<'a> {
    at: Vec<i64>,
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
    /// The hash over the last entry and all before it.
    digest: &'a [u8],
}

impl<'a> EntryBatch<'a> {
    /// The entries from a number on, up to the size of a batch.
    fn fill(
        rows: &'a SessionRows,
        from: usize,
        tokenizer: &mut WordTokenizer,
    ) -> Result<Self, TeamError> {
        let started = rows.session.started.map(|at| at.instant().as_millisecond());
        let (mut batch, mut bytes) = (Self::default(), 0);
        for entry in &rows.entries[from..] {
            batch.at.push(entry.time.or(started).unwrap_or(0));
            batch.push_entry(entry, tokenizer)?;
            bytes += entry.text.as_ref().map_or(0, String::len);
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
        self.bodies.push(entry.text.as_deref().map(without_nul));
        self.digest = &entry.digest;
        let words = entry.text.as_deref().map(|text| FoldedWords::new(text, tokenizer));
        let words = words.transpose()?;
        let (folded, parts, vector) = match words {
            Some(words) => (Some(words.folded), Some(words.parts), Some(words.vector)),
            None => (None, None, None),
        };
        self.folded.push(folded);
        self.parts.push(parts);
        self.words.push(vector);
        Ok(())
    }
}
