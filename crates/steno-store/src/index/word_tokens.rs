//! Splits folded texts into words as the index of this machine does, for databases that cannot.
//!
//! ASCII is split here. A piece with other characters goes through SQLite's own tokenizer, so that both give the same
//! words; each such piece is split once.

use std::collections::HashMap;
use std::path::Path;

use foldhash::fast::RandomState;
use rusqlite::Connection;

use super::IndexError;

/// Pieces remembered at most.
const MAX_KNOWN_PIECES: usize = 50_000;

/// Splits texts into words.
#[derive(Debug)]
pub struct WordTokenizer {
    connection: Connection,
    known: HashMap<String, Vec<String>, RandomState>,
}

impl WordTokenizer {
    /// A tokenizer with a database in memory.
    pub fn new() -> Result<Self, IndexError> {
        let failed =
            |source| IndexError::Database { path: Path::new(":memory:").to_owned(), source };
        let connection = Connection::open_in_memory().map_err(failed)?;
        connection
            .execute_batch(
                "CREATE VIRTUAL TABLE piece USING fts5 (
                    text, content='', tokenize='unicode61 remove_diacritics 2'
                );
                CREATE VIRTUAL TABLE word USING fts5vocab (piece, instance);",
            )
            .map_err(failed)?;
        Ok(Self { connection, known: HashMap::default() })
    }

    /// Calls `take` with each word of a text, in order.
    pub fn for_each_word(
        &mut self,
        text: &str,
        take: &mut dyn FnMut(&str),
    ) -> Result<(), IndexError> {
        let mut lower = String::new();
        for piece in text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric()) {
            if piece.is_empty() {
                continue;
            }
            if !piece.is_ascii() {
                self.split_piece(piece)?.iter().for_each(|word| take(word));
            } else if piece.bytes().any(|byte| byte.is_ascii_uppercase()) {
                lower.clear();
                lower.extend(piece.chars().map(|c| c.to_ascii_lowercase()));
                take(&lower);
            } else {
                take(piece);
            }
        }
        Ok(())
    }

    fn split_piece(&mut self, piece: &str) -> Result<&[String], IndexError> {
        if !self.known.contains_key(piece) {
            let words = self.ask_sqlite(piece).map_err(|source| IndexError::Database {
                path: Path::new(":memory:").to_owned(),
                source,
            })?;
            if self.known.len() >= MAX_KNOWN_PIECES {
                self.known.clear();
            }
            self.known.insert(piece.to_owned(), words);
        }
        Ok(self.known.get(piece).map_or(&[], Vec::as_slice))
    }

    fn ask_sqlite(&self, piece: &str) -> rusqlite::Result<Vec<String>> {
        let insert = "INSERT INTO piece (rowid, text) VALUES (1, ?1)";
        self.connection.prepare_cached(insert)?.execute([piece])?;
        let read = "SELECT term FROM word ORDER BY offset";
        let mut read = self.connection.prepare_cached(read)?;
        let words = read.query_map([], |row| row.get(0))?.collect();
        let delete = "INSERT INTO piece (piece, rowid, text) VALUES ('delete', 1, ?1)";
        self.connection.prepare_cached(delete)?.execute([piece])?;
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        let take = &mut |word: &str| words.push(word.to_owned());
        WordTokenizer::new().unwrap().for_each_word(text, take).unwrap();
        words
    }

    #[test]
    fn words_are_those_of_sqlite() {
        assert_eq!(split("fn Parse_line(x) -> 42"), ["fn", "parse", "line", "x", "42"]);
        assert_eq!(split("Café naïve… Ünïcode—dash"), ["cafe", "naive", "unicode", "dash"]);
        assert_eq!(split("日本 本語 x日"), ["日本", "本語", "x日"]);
        assert_eq!(split("… — ¿"), Vec::<String>::new());
        assert_eq!(split("é é"), ["e", "e"], "twice, from memory");
    }
}
