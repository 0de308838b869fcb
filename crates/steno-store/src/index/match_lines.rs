//! Selects the lines of a text that match a query, and marks the matches.

use std::ops::Range;

use super::query::SearchQuery;

/// Longer lines are cut to this many characters.
const MAX_LINE_CHARS: usize = 240;

/// How many characters of a cut line precede its first match.
const CHARS_BEFORE_MATCH: usize = 60;

/// One line of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchLine {
    /// The line number, from 1.
    pub number: usize,
    /// The line. `…` replaces text that was cut.
    pub text: String,
    /// Byte ranges of the matches in `text`; empty for a context line.
    pub marks: Vec<Range<usize>>,
}

/// How many lines to return.
#[derive(Clone, Copy, Debug)]
pub struct LineLimits {
    /// Maximum number of matching lines.
    pub max_lines: usize,
    /// Number of context lines before and after each match.
    pub context_lines: usize,
}

impl SearchQuery {
    /// The lines of `text` that match. If nothing can be marked, returns the first line with text.
    pub fn matching_lines(&self, text: &str, shown: LineLimits) -> Vec<MatchLine> {
        let matches = self.find_marks(text);
        let all: Vec<Range<usize>> = line_ranges(text);
        let mut selected: Vec<usize> = Vec::new();
        for range in &matches {
            let line = all.partition_point(|line| line.end < range.start);
            if selected.last() != Some(&line) && selected.len() < shown.max_lines {
                selected.push(line);
            }
        }
        if selected.is_empty() {
            let first = all.iter().position(|line| !text[line.clone()].trim().is_empty());
            selected.push(first.unwrap_or(0));
        }
        let mut lines: Vec<MatchLine> = Vec::new();
        for at in selected {
            let first = at
                .saturating_sub(shown.context_lines)
                .max(lines.last().map_or(0, |last| last.number));
            let around = all.iter().enumerate().take(at + shown.context_lines + 1).skip(first);
            lines.extend(around.map(|(before, range)| cut_line(text, range, before + 1, &matches)));
        }
        lines
    }

    /// Whether anything in `text` would be marked.
    pub fn has_mark(&self, text: &str) -> bool {
        self.mark_regex.as_ref().is_some_and(|marks| marks.is_match(text))
    }

    /// The ranges of all matches. Matches of whole words, or of their parts, win over others.
    fn find_marks(&self, text: &str) -> Vec<Range<usize>> {
        let Some(marks) = &self.mark_regex else { return Vec::new() };
        let all = marks.find_iter(text).map(|found| found.range());
        let all: Vec<_> = all.filter(|range| !range.is_empty()).take(1000).collect();
        if self.regex.is_some() {
            return all;
        }
        let whole: Vec<_> =
            all.iter().filter(|range| is_whole_word(text, range)).cloned().collect();
        if whole.is_empty() { all } else { whole }
    }
}

/// Whether a match starts and ends at the boundary of a word or word part.
fn is_whole_word(text: &str, range: &Range<usize>) -> bool {
    let found = &text[range.clone()];
    let (first, last) = (found.chars().next(), found.chars().next_back());
    let before = text[..range.start].chars().next_back();
    let after = text[range.end..].chars().next();
    let joins = |left: Option<char>, right: Option<char>| match (left, right) {
        (Some(left), Some(right)) => {
            left.is_alphanumeric()
                && right.is_alphanumeric()
                && !(left.is_lowercase() && right.is_uppercase())
                && !super::text_folding::is_cjk(left)
                && !super::text_folding::is_cjk(right)
        }
        _ => false,
    };
    !joins(before, first) && !joins(last, after)
}

fn line_ranges(text: &str) -> Vec<Range<usize>> {
    let mut begin = 0;
    let mut ranges: Vec<_> = memchr::memchr_iter(b'\n', text.as_bytes())
        .map(|end| std::mem::replace(&mut begin, end + 1)..end)
        .collect();
    ranges.push(begin..text.len());
    ranges
}

/// Builds one line with its marks. A long line is cut around the first mark.
fn cut_line(
    text: &str,
    range: &Range<usize>,
    number: usize,
    matches: &[Range<usize>],
) -> MatchLine {
    let inside: Vec<_> = matches
        .iter()
        .filter(|mark| mark.start < range.end && mark.end > range.start)
        .map(|mark| {
            mark.start.max(range.start) - range.start..mark.end.min(range.end) - range.start
        })
        .collect();
    let whole = text[range.clone()].trim_end_matches('\r');
    if whole.chars().count() <= MAX_LINE_CHARS {
        let marks = inside.into_iter().filter(|mark| mark.end <= whole.len()).collect();
        return MatchLine { number, text: whole.to_owned(), marks };
    }
    let first = inside.first().map_or(0, |mark| mark.start.min(whole.len()));
    let begin = whole[..first].char_indices().rev().nth(CHARS_BEFORE_MATCH).map_or(0, |(at, _)| at);
    let end =
        whole[begin..].char_indices().nth(MAX_LINE_CHARS).map_or(whole.len(), |(at, _)| begin + at);
    let ahead = if begin > 0 { "…" } else { "" };
    let tail = if end < whole.len() { "…" } else { "" };
    let moved =
        |mark: &Range<usize>| mark.start - begin + ahead.len()..mark.end - begin + ahead.len();
    let marks = inside.iter().filter(|mark| mark.start >= begin && mark.end <= end).map(moved);
    MatchLine {
        number,
        marks: marks.collect(),
        text: format!("{ahead}{}{tail}", &whole[begin..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(query: &str, text: &str, context: usize) -> Vec<String> {
        let lines = SearchQuery::parse(query)
            .unwrap()
            .matching_lines(text, LineLimits { max_lines: 3, context_lines: context });
        let show = |line: MatchLine| {
            let mut out = line.text.clone();
            for mark in line.marks.iter().rev() {
                out.insert(mark.end, ']');
                out.insert(mark.start, '[');
            }
            format!("{}: {out}", line.number)
        };
        lines.into_iter().map(show).collect()
    }

    #[test]
    fn matches_are_marked_in_their_lines() {
        let text = "first\nthe Log_in failed\nlogin, again\nblogs\n";
        assert_eq!(marked("log", text, 0), ["2: the [Log]_in failed"]);
        assert_eq!(marked("log*", "login blog", 0), ["1: [login] blog"]);
        assert_eq!(
            marked("FAILED again", text, 0),
            ["2: the Log_in [failed]", "3: login, [again]"]
        );
        assert_eq!(
            marked("again", text, 1),
            ["2: the Log_in failed", "3: login, [again]", "4: blogs"]
        );
        assert_eq!(marked("/l.g/", text, 0), ["3: [log]in, again", "4: b[log]s"]);
        assert_eq!(marked("cafe", "\nCafé", 0), ["2: Café"]);
        assert_eq!(marked("caf*", "café→bar", 0), ["1: [café]→bar"]);
        assert_eq!(marked("src/a_b.rs", "in src/a_b.rs:1", 0), ["1: in [src/a_b.rs]:1"]);
        assert_eq!(marked("\"one two\"", "one… \u{2014} two", 0), ["1: [one… \u{2014} two]"]);
        assert_eq!(marked("Line", "parseLine outline", 0), ["1: parse[Line] outline"]);
    }

    #[test]
    fn a_long_line_is_cut_around_its_match() {
        let text = format!("{} needle {}", "é".repeat(500), "x".repeat(500));
        let lines = SearchQuery::parse("needle")
            .unwrap()
            .matching_lines(&text, LineLimits { max_lines: 1, context_lines: 0 });
        let line = &lines[0];
        assert_eq!(&line.text[line.marks[0].clone()], "needle");
        assert!(line.text.starts_with('…') && line.text.ends_with('…'));
        assert!(line.text.chars().count() <= MAX_LINE_CHARS + 2);
    }
}
