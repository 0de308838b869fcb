//! Ranks texts by the query's selective words.
//!
//! To weigh a word, SQLite reads all texts that contain it. That pays off for a selective word; for "the" it would take
//! longer than the search itself.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Row, params};

use super::query::{SearchQuery, is_prefix_expression, is_single_word};
use super::{Index, IndexError};

/// A word in more texts than this, by estimate, is not selective.
const COMMON_WORD_TEXTS: i64 = 10_000;

/// How many of the newest texts with a word are sampled to estimate its frequency.
const SAMPLE_TEXTS: i64 = 200;

/// The relevance of a text, in SQL. FTS5 ranks are negative and the best is lowest. Word parts count half.
pub(super) const RELEVANCE_SQL: &str = "-bm25(words, 1.0, 0.5)";

/// Limit for weighed texts.
const MAX_WEIGHED_TEXTS: usize = 5_000;

/// Which words of a query rank its results.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum QueryRanking {
    /// All words. SQLite weighs texts as it finds them.
    ByAll,
    /// Some words, as an FTS5 expression.
    BySome(String),
    /// No words.
    Unranked,
}

impl Index {
    /// Chooses the words that rank a query's results.
    pub(super) fn choose_ranking(&self, query: &SearchQuery) -> Result<QueryRanking, IndexError> {
        let ranking_words = || -> rusqlite::Result<Vec<String>> {
            let newest = self.newest_text()?;
            let mut ranking_words = Vec::new();
            for group in &query.groups {
                let mut is_telling = true;
                for word in group {
                    is_telling = is_telling && self.is_selective(word, newest)?;
                }
                ranking_words.extend(is_telling.then(|| format!("({})", group.join(" OR "))));
            }
            Ok(ranking_words)
        };
        let ranking_words = self.wrap_error(ranking_words())?;
        Ok(match ranking_words.len() {
            0 => QueryRanking::Unranked,
            count if count == query.groups.len() && !query.excludes_prefix => QueryRanking::ByAll,
            _ => QueryRanking::BySome(ranking_words.join(" AND ")),
        })
    }

    fn newest_text(&self) -> rusqlite::Result<i64> {
        let sql = "SELECT coalesce(max(id), 0) FROM text";
        self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
    }

    /// Whether few texts contain a word. A prefix matches many words; a phrase is rare.
    fn is_selective(&self, word: &str, newest: i64) -> rusqlite::Result<bool> {
        if is_prefix_expression(word) || !is_single_word(word) || newest <= COMMON_WORD_TEXTS {
            return Ok(!is_prefix_expression(word));
        }
        let sql =
            "SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rowid DESC LIMIT 1 OFFSET ?2";
        let mut sample = self.connection.prepare_cached(sql)?;
        let last: Option<i64> =
            sample.query_row(params![word, SAMPLE_TEXTS - 1], |row| row.get(0)).optional()?;
        // Extrapolates from the texts since the oldest sample to all texts.
        Ok(last.is_none_or(|last| SAMPLE_TEXTS * newest / (newest - last + 1) <= COMMON_WORD_TEXTS))
    }

    /// The relevance of texts from id `oldest` on. Higher is better.
    pub(super) fn weigh_texts(
        &self,
        words: &str,
        oldest: i64,
    ) -> Result<HashMap<i64, f64>, IndexError> {
        let sql = format!(
            "SELECT rowid, {RELEVANCE_SQL} FROM words
             WHERE words MATCH ?1 AND rowid >= ?2 ORDER BY rowid DESC LIMIT {MAX_WEIGHED_TEXTS}"
        );
        let weigh = || -> rusqlite::Result<HashMap<i64, f64>> {
            let mut weigh = self.connection.prepare_cached(&sql)?;
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            weigh.query_map(params![words, oldest], read)?.collect()
        };
        self.wrap_error(weigh())
    }
}
