//! How well texts match a question: by those of its words that are not in every other text.
//!
//! To weigh a word, SQLite goes through all texts that have it. That is worth it for a word that tells texts apart;
//! "the" would take longer than the search itself.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Row, params};

use super::query::{Query, is_open_ended, is_single};
use super::{Index, IndexError};

/// A word that more texts have than this, by estimate, does not tell them apart.
const COMMON: i64 = 10_000;

/// How many of a word's newest texts tell how common it is.
const SAMPLE: i64 = 200;

/// How well a text matches, in SQL. SQLite's ranks are negative, the best one lowest; the parts of words count half.
pub(super) const RELEVANCE: &str = "-bm25(words, 1.0, 0.5)";

/// At most so many texts are weighed.
const WEIGHED: usize = 5_000;

/// What a question is ranked by.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ranking {
    /// All of its words: SQLite can weigh texts as it finds them.
    Whole,
    /// Some of its words, in the language of the index.
    Part(String),
    /// None of them.
    Nothing,
}

impl Index {
    /// By what a question is to be ranked.
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

    /// Whether few texts have a word. One that may go on is many words, and few texts have the same few in a row.
    fn is_telling(&self, word: &str, newest: i64) -> rusqlite::Result<bool> {
        if is_open_ended(word) || !is_single(word) || newest <= COMMON {
            return Ok(!is_open_ended(word));
        }
        let sql =
            "SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rowid DESC LIMIT 1 OFFSET ?2";
        let mut sample = self.connection.prepare_cached(sql)?;
        let last: Option<i64> =
            sample.query_row(params![word, SAMPLE - 1], |row| row.get(0)).optional()?;
        // All texts have it as often as those since the oldest of the sample.
        Ok(last.is_none_or(|last| SAMPLE * newest / (newest - last + 1) <= COMMON))
    }

    /// How well texts from `oldest` on match some words: the larger the better.
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
