//! Searches texts for a regular expression with two threads. Only texts that can match are read.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use regex::Regex;
use regex_syntax::hir::{Hir, HirKind};
use rusqlite::{Connection, params_from_iter};

use super::search::{ENTRY_TIME_SQL, SearchCandidate, SearchRequest};
use super::text_blocks::TextBlockReader;
use super::{Index, IndexError};

/// Threads of a scan.
const SCAN_THREADS: usize = 2;

/// The location of a text.
struct TextLocation {
    text: i64,
    block: i64,
    start: i64,
    length: i64,
}

impl Index {
    /// The newest entry of each text that matches.
    pub(super) fn scan_texts(
        &self,
        search: &SearchRequest<'_>,
        regex: &Regex,
    ) -> Result<Vec<SearchCandidate>, IndexError> {
        let texts = self.wrap_error(self.find_scannable_texts(search, regex))?;
        let blocks: Vec<&[TextLocation]> = texts.chunk_by(|a, b| a.block == b.block).collect();
        let share = blocks.len().div_ceil(SCAN_THREADS).max(1);
        let (path, access) = (&self.path, self.access);
        let work = |blocks: &[&[TextLocation]]| -> rusqlite::Result<Vec<i64>> {
            let connection = access.connect(path)?;
            connection.busy_timeout(super::LOCK_TIMEOUT)?;
            let mut matches = Vec::new();
            for texts in blocks {
                find_block_matches(&connection, texts, regex, &mut matches)?;
            }
            Ok(matches)
        };
        let matches: Vec<rusqlite::Result<Vec<i64>>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                blocks.chunks(share).map(|share| scope.spawn(move || work(share))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic in a scan")).collect()
        });
        let mut candidates = Vec::new();
        for texts in matches {
            for text in self.wrap_error(texts)? {
                candidates.extend(self.wrap_error(self.find_newest_entry(search, text))?);
            }
        }
        Ok(candidates)
    }

    /// The texts to read, in block order: those of selected entries that contain the words of every match.
    fn find_scannable_texts(
        &self,
        search: &SearchRequest<'_>,
        regex: &Regex,
    ) -> rusqlite::Result<Vec<TextLocation>> {
        let required = required_words(regex.as_str());
        let words: Vec<String> =
            search.query.match_expression.iter().cloned().chain(required).collect();
        let (conditions, mut values) = search.filter.sql_conditions();
        let mut sql = "SELECT id, block, start, length FROM text WHERE true".to_owned();
        if !words.is_empty() {
            sql.push_str(" AND text.id IN (SELECT rowid FROM words WHERE words MATCH ?1)");
        }
        values.insert(0, words.join(" AND ").into());
        if !search.filter.is_unrestricted() {
            sql.push_str(&format!(
                " AND text.id IN (SELECT entry.text FROM entry WHERE ?1 IS NOT NULL{conditions})"
            ));
        } else if words.is_empty() {
            values.clear();
        }
        let mut texts = self.connection.prepare(&sql)?;
        let read = |row: &rusqlite::Row<'_>| {
            let (text, block) = (row.get(0)?, row.get(1)?);
            Ok(TextLocation { text, block, start: row.get(2)?, length: row.get(3)? })
        };
        let mut locations: Vec<TextLocation> =
            texts.query_map(params_from_iter(values), read)?.collect::<Result<_, _>>()?;
        locations.sort_by_key(|location| (location.block, location.start));
        Ok(locations)
    }

    /// The newest selected entry with a text.
    fn find_newest_entry(
        &self,
        search: &SearchRequest<'_>,
        text: i64,
    ) -> rusqlite::Result<Option<SearchCandidate>> {
        let (conditions, mut values) = search.filter.sql_conditions();
        let words = search.query.match_expression.clone();
        values.insert(0, words.clone().unwrap_or_default().into());
        values.push(text.into());
        let parameter = format!("?{}", values.len());
        let mut sql = format!(
            "SELECT entry.session, entry.number, {ENTRY_TIME_SQL} FROM entry INDEXED BY entry_text
             WHERE entry.text = {parameter} AND ?1 IS NOT NULL{conditions}"
        );
        if words.is_some() {
            sql.push_str(&format!(
                " AND EXISTS (SELECT 1 FROM words WHERE words MATCH ?1 AND rowid = {parameter})"
            ));
        }
        let mut newest: Option<SearchCandidate> = None;
        let mut entries = self.connection.prepare_cached(&sql)?;
        let mut rows = entries.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            let (session, number, time) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let candidate = SearchCandidate { text, session, number, time, score: 0.0, copies: 0 };
            match &mut newest {
                Some(newest) => newest.merge_copy(candidate),
                None => newest = Some(candidate),
            }
        }
        Ok(newest)
    }
}

/// Adds the texts of a block that match.
fn find_block_matches(
    connection: &Connection,
    texts: &[TextLocation],
    regex: &Regex,
    matches: &mut Vec<i64>,
) -> rusqlite::Result<()> {
    let Some(first) = texts.first() else { return Ok(()) };
    let mut block = connection.prepare_cached("SELECT data FROM block WHERE id = ?1")?;
    block.query_row([first.block], |row| {
        let mut block = TextBlockReader::new(row.get_ref(0)?.as_blob()?);
        for location in texts {
            let text = block.text_at(location.start, location.length);
            if text.is_some_and(|text| regex.is_match(text)) {
                matches.push(location.text);
            }
        }
        Ok(())
    })
}

/// Words that every match contains, as FTS5 expressions.
fn required_words(pattern: &str) -> Vec<String> {
    let Ok(hir) = regex_syntax::parse(pattern) else { return Vec::new() };
    let mut words = HashMap::new();
    for literal in required_literals(&hir) {
        for word in whole_words(&literal) {
            if let Entry::Vacant(free) = words.entry(word.clone()) {
                free.insert(format!("{{text}} : \"{word}\""));
            }
        }
    }
    words.into_values().collect()
}

/// Literals that every match contains.
fn required_literals(hir: &Hir) -> Vec<String> {
    let parts = match hir.kind() {
        HirKind::Concat(parts) => parts.as_slice(),
        _ => std::slice::from_ref(hir),
    };
    let literal = |part: &Hir| match part.kind() {
        HirKind::Literal(literal) => String::from_utf8(literal.0.to_vec()).ok(),
        _ => None,
    };
    parts.iter().filter_map(literal).collect()
}

/// The words of a literal that do not touch its ends, so that both neighbours are known.
fn whole_words(literal: &str) -> Vec<String> {
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii() && !c.is_ascii_alphanumeric());
    let mut words = Vec::new();
    let mut at = 0;
    for word in literal.split(|c: char| !c.is_ascii_alphanumeric()) {
        let begin = at;
        at += word.len();
        let (before, after) = (literal[..begin].chars().next_back(), literal[at..].chars().next());
        at += after.map_or(0, char::len_utf8);
        // Text that was left out of the index as base64 has only these characters around words.
        let encoded = [before, after].iter().flatten().any(|c| "+/=".contains(*c));
        if !word.is_empty() && is_end(before) && is_end(after) && !encoded {
            words.push(word.to_owned());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_with_known_ends_are_required() {
        let words = |pattern: &str| {
            let mut words = required_words(pattern);
            words.sort();
            words
        };
        assert_eq!(words("could not open (it|them)"), ["{text} : \"not\"", "{text} : \"open\""]);
        assert_eq!(words("(a b c|d)"), Vec::<String>::new());
        assert_eq!(words("x/y/z"), Vec::<String>::new());
        assert_eq!(words("(?i)could not open"), Vec::<String>::new());
        assert_eq!(words("é not é"), ["{text} : \"not\""]);
    }
}
