//! Columns for a terminal: as wide as they need, the last one cut to what is left; and lines broken to fit.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Rows under a heading.
pub(crate) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(heading: [&str; N]) -> Self {
        Self { rows: vec![heading.map(str::to_owned)] }
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        let is_plain = |cell: &str| !cell.bytes().any(|byte| byte == b'\n' || byte == b'\t');
        self.rows.push(
            cells.map(|cell| if is_plain(&cell) { cell } else { cell.replace(['\n', '\t'], " ") }),
        );
    }

    /// The table as text, no line wider than `width` unless the columns before the last already are.
    pub(crate) fn render(&self, width: usize) -> String {
        let widths: Vec<usize> = (0..N - 1)
            .map(|column| self.rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0))
            .collect();
        let before = widths.iter().map(|width| width + 2).sum::<usize>();
        let left = width.saturating_sub(before).max(10);
        let longest = self.rows.iter().map(|row| row[N - 1].len()).max().unwrap_or(0);
        let mut text =
            String::with_capacity(self.rows.len() * (before + longest.min(left + 3) + 1));
        for row in &self.rows {
            for (cell, width) in row.iter().zip(&widths) {
                text.push_str(cell);
                text.extend(std::iter::repeat_n(' ', width - columns(cell) + 2));
            }
            text.push_str(&fitted(&row[N - 1], left));
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text
    }
}

/// How many columns a text takes.
fn columns(text: &str) -> usize {
    if text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        text.len()
    } else {
        text.width()
    }
}

/// The text, cut to `width` columns.
pub(crate) fn fit(text: &str, width: usize) -> String {
    fitted(text, width).into_owned()
}

fn fitted(text: &str, width: usize) -> Cow<'_, str> {
    if columns(text) <= width {
        return Cow::Borrowed(text);
    }
    let mut used = 1;
    let mut cut: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= width
        })
        .collect();
    cut.push('…');
    Cow::Owned(cut)
}

/// A line without what would move the cursor of a plain terminal: tabs are spaces, a final carriage return is gone.
pub(crate) fn untabbed(line: &str) -> Cow<'_, str> {
    let line = line.trim_end_matches('\r');
    if !line.contains('\t') {
        return Cow::Borrowed(line);
    }
    let mut out = String::new();
    for part in line.split_inclusive('\t') {
        out.push_str(part.trim_end_matches('\t'));
        if part.ends_with('\t') {
            let gap = 4 - out.width() % 4;
            out.extend(std::iter::repeat_n(' ', gap));
        }
    }
    Cow::Owned(out)
}

/// A line broken into rows of at most `width` columns, between words where that can be.
pub(crate) fn wrap(line: &str, width: usize) -> Vec<String> {
    let width = width.max(2);
    if line.len() <= width {
        return vec![line.to_owned()];
    }
    let (mut rows, mut begin, mut used) = (Vec::new(), 0, 0);
    // After the last space: where the row can end, and the columns up to there.
    let mut gap = None;
    for (at, grapheme) in line.grapheme_indices(true) {
        let wide = grapheme.width();
        if used + wide > width && grapheme == " " {
            rows.push(line[begin..at].trim_end().to_owned());
            (begin, used, gap) = (at + 1, 0, None);
            continue;
        }
        if used + wide > width {
            let (end, columns) = gap.take().unwrap_or((at, used));
            rows.push(line[begin..end].trim_end().to_owned());
            begin = end;
            used -= columns;
        }
        used += wide;
        if grapheme == " " && !line[begin..at].trim().is_empty() {
            gap = Some((at + 1, used));
        }
    }
    rows.push(line[begin..].to_owned());
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_count_twice() {
        let mut table = Table::new(["A", "B"]);
        table.row(["日本".to_owned(), "x".repeat(30)]);
        assert_eq!(table.render(20), "A     B\n日本  xxxxxxxxxxxxx…\n");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("    if deep {", 8), ["    if", "deep {"]);
        assert_eq!(wrap("a  b", 1), ["a", "b"]);
    }

    #[test]
    fn wide_characters_never_pass_the_edge() {
        assert_eq!(wrap("日本語の文章", 5), ["日本", "語の", "文章"]);
        let family = "👩‍👩‍👧👩‍👩‍👧";
        assert_eq!(wrap(family, 3), ["👩‍👩‍👧", "👩‍👩‍👧"]);
        for width in 1..9 {
            for row in wrap("x 日本 ne\u{301}e 👩‍👩‍👧 語 wort", width) {
                assert!(row.width() <= width.max(2), "{row:?} at {width}");
            }
        }
    }
}
