//! Ranks texts by the query's selective words.
//!
//! To weigh a word, SQLite reads all texts that contain it. That pays off for a selective word; for "the" it would take
//! longer than the search itself.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Row, params};

use super::query::{Query, is_open_ended, is_single};
use super::{Index, IndexError};

/// A word in more texts than this, by estimate, is not selective.
const COMMON: i64 = 10_000;

/// How many of the newest texts with a word are sampled to estimate its frequency.
const SAMPLE: i64 = 200;

/// The relevance of a text, in SQL. FTS5 ranks are negative and the best is lowest. Word parts count half.
pub(super) const RELEVANCE: &str = "-bm25(words, 1.0, 0.5)";

/// Limit for weighed texts.
const WEIGHED: usize = 5_000;

/// Which words of a query rank its results.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ranking {
    /// All words. SQLite weighs texts as it finds them.
    Whole,
    /// Some words, as an FTS5 expression.
    Part(String),
    /// No words.
    Nothing,
}

impl Index {
    /// Chooses the words that rank a query's results.
    pub(super) fn ranking(&self, query: &Query) -> Result<Ranking, IndexError> {
        let telling = || -> rusqlite::Result<Vec<String>> {
            let newest = self.newest_text()?;
            let mut telling = Vec::new();
            for group in &query.groups {
                let mut is_telling = true;
                for word in group {
                    is_telling = is_telling && self.is_telling(word, newest)?;
                }
                telling.extend(is_telling.then(|| format!("({})", group.join(" OR "))));
            }
            Ok(telling)
        };
        let telling = self.on(telling())?;
        Ok(match telling.len() {
            0 => Ranking::Nothing,
            count if count == query.groups.len() && !query.has_open_not => Ranking::Whole,
            _ => Ranking::Part(telling.join(" AND ")),
        })
    }

    fn newest_text(&self) -> rusqlite::Result<i64> {
        let sql = "SELECT coalesce(max(id), 0) FROM text";
        self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
    }

    /// Whether few texts contain a word. A prefix matches many words; a phrase is rare.
    fn is_telling(&self, word: &str, newest: i64) -> rusqlite::Result<bool> {
        if is_open_ended(word) || !is_single(word) || newest <= COMMON {
            return Ok(!is_open_ended(word));
        }
        let sql =
            "SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rowid DESC LIMIT 1 OFFSET ?2";
        let mut sample = self.connection.prepare_cached(sql)?;
        let last: Option<i64> =
            sample.query_row(params![word, SAMPLE - 1], |row| row.get(0)).optional()?;
        // Extrapolates from the texts since the oldest sample to all texts.
        Ok(last.is_none_or(|last| SAMPLE * newest / (newest - last + 1) <= COMMON))
    }

    /// The relevance of texts from id `oldest` on. Higher is better.
    pub(super) fn relevance(
        &self,
        words: &str,
        oldest: i64,
    ) -> Result<HashMap<i64, f64>, IndexError> {
        let sql = format!(
            "SELECT rowid, {RELEVANCE} FROM words
             WHERE words MATCH ?1 AND rowid >= ?2 ORDER BY rowid DESC LIMIT {WEIGHED}"
        );
        let weigh = || -> rusqlite::Result<HashMap<i64, f64>> {
            let mut weigh = self.connection.prepare_cached(&sql)?;
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            weigh.query_map(params![words, oldest], read)?.collect()
        };
        self.on(weigh())
    }
}
