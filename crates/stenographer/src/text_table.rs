//! Tables for a terminal, with the last column cut to the width; and functions that wrap and cut text.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::terminal_text::escape_control;

/// Rows below a heading.
pub(crate) struct TextTable<const N: usize> {
    /// Buffer with the text of all cells.
    text: String,
    rows: Vec<[TextCell; N]>,
    /// Maximum widths of the columns. A wider cell moves the rest of its row to the right.
    limits: [usize; N],
}

/// A cell; it starts where the previous one ends.
#[derive(Clone, Copy)]
struct TextCell {
    end: u32,
    /// Width in columns.
    columns: u32,
}

impl<const N: usize> TextTable<N> {
    pub(crate) fn new(heading: [&str; N]) -> Self {
        let mut table = Self { text: String::new(), rows: Vec::new(), limits: [usize::MAX; N] };
        table.add_row(heading);
        table
    }

    /// Limits the width of a column, so that a few wide cells do not take the room of the last column in all rows.
    pub(crate) fn limit_column(&mut self, column: usize, columns: usize) {
        self.limits[column] = columns;
    }

    pub(crate) fn add_row<T: AsRef<str>>(&mut self, cells: [T; N]) {
        let row = cells.map(|cell| self.push_cell(cell.as_ref()));
        self.rows.push(row);
    }

    fn push_cell(&mut self, text: &str) -> TextCell {
        let columns = if is_printable_ascii(text) {
            self.text.push_str(text);
            text.len()
        } else {
            let text = escape_control(text).replace(['\n', '\t'], " ");
            self.text.push_str(&text);
            text.width()
        };
        TextCell { end: self.text.len() as u32, columns: columns as u32 }
    }

    /// Renders the table. No line is wider than `width` unless the columns before the last are.
    pub(crate) fn render(&self, width: usize) -> String {
        let widest =
            |column: usize| self.rows.iter().map(|row| row[column].columns).max().unwrap_or(0);
        let widths: Vec<usize> =
            (0..N - 1).map(|column| self.limits[column].min(widest(column) as usize)).collect();
        let before = widths.iter().map(|width| width + 2).sum::<usize>();
        let left = width.saturating_sub(before).max(10);
        let longest = (widest(N - 1) as usize).min(left + 3);
        let mut out = String::with_capacity(self.rows.len() * (before + longest + 1));
        let mut begin = 0;
        for cells in &self.rows {
            let mut cell = |cell: &TextCell| {
                let begin = std::mem::replace(&mut begin, cell.end as usize);
                (&self.text[begin..cell.end as usize], cell.columns as usize)
            };
            let (mut used, mut aligned) = (0, 0);
            for (text_cell, width) in cells.iter().zip(&widths) {
                let (text, columns) = cell(text_cell);
                out.push_str(text);
                aligned += width + 2;
                let gap = aligned.saturating_sub(used + columns).max(2);
                out.extend(std::iter::repeat_n(' ', gap));
                used += columns + gap;
            }
            let left = left.saturating_sub(used - aligned);
            match cell(&cells[N - 1]) {
                (text, columns) if columns <= left => out.push_str(text),
                (_, _) if left < 2 => {}
                (text, _) => out.push_str(&cut_columns(text, left)),
            }
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
        out
    }
}

/// Returns the width of a text in columns.
fn count_columns(text: &str) -> usize {
    if is_printable_ascii(text) { text.len() } else { text.width() }
}

/// Returns whether each byte is a character of one column. Without a branch at each byte, compilers use vector
/// instructions.
fn is_printable_ascii(text: &str) -> bool {
    text.bytes().fold(true, |all, byte| all & matches!(byte, b' '..=b'~'))
}

/// Cuts a text to `width` columns.
pub(crate) fn fit_columns(text: &str, width: usize) -> String {
    if count_columns(text) <= width { text.to_owned() } else { cut_columns(text, width) }
}

/// Cuts the beginning of a text, so that the rest fits into `width` columns.
pub(crate) fn fit_end(text: &str, width: usize) -> String {
    if count_columns(text) <= width {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    let end: Vec<char> = text.chars().rev().take_while(fits).collect();
    std::iter::once('…').chain(end.into_iter().rev()).collect()
}

/// Cuts a label to `width` columns: a path at its beginning, which many paths share, other labels at the end.
pub(crate) fn fit_label(label: &str, width: usize) -> String {
    let is_path = label.starts_with(['/', '~']) || label.get(1..3) == Some(":\\");
    if is_path { fit_end(label, width) } else { fit_columns(label, width) }
}

/// Returns the start of a text that is too wide.
fn cut_columns(text: &str, width: usize) -> String {
    let mut used = 1;
    let too_wide = |c: char| {
        used += c.width().unwrap_or(0);
        used > width
    };
    let end = match text.get(..width.saturating_sub(1)).filter(|start| is_printable_ascii(start)) {
        Some(start) => start.len(),
        None => text.find(too_wide).unwrap_or(text.len()),
    };
    format!("{}…", &text[..end])
}

/// Expands tabs and removes a final carriage return.
pub(crate) fn expand_tabs(line: &str) -> Cow<'_, str> {
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

/// Wraps a line into rows of at most `width` columns, between words if possible.
pub(crate) fn wrap_columns(line: &str, width: usize) -> Vec<String> {
    let width = width.max(2);
    if line.len() <= width {
        return vec![line.to_owned()];
    }
    let (mut rows, mut begin, mut used) = (Vec::new(), 0, 0);
    // End of the row after the last space, and the columns up to there.
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
        let mut table = TextTable::new(["A", "B"]);
        table.add_row(["日本", "xxxxxxxxxx\txxxxxxxxxx"]);
        table.add_row(["\n", "日"]);
        assert_eq!(table.render(20), "A     B\n日本  xxxxxxxxxx xx…\n      日\n");
    }

    #[test]
    fn a_wide_cell_takes_the_room_of_its_row_only() {
        let mut table = TextTable::new(["A", "ID", "TITLE"]);
        table.limit_column(1, 4);
        for id in ["0190", "0190-a", "0190-abcdefghij"] {
            table.add_row(["x", id, "some long title"]);
        }
        insta::assert_snapshot!(table.render(20), @r"
        A  ID    TITLE
        x  0190  some long …
        x  0190-a  some lon…
        x  0190-abcdefghij
        ");
    }

    #[test]
    fn cells_cannot_drive_a_terminal() {
        let mut table = TextTable::new(["A", "B"]);
        table.add_row(["\u{1b}[2J", "x\u{202e}y\rz"]);
        assert_eq!(table.render(80), "A          B\n\\u{1b}[2J  x\\u{202e}y\\u{d}z\n");
    }

    #[test]
    fn the_beginning_or_the_end_is_cut() {
        assert_eq!(
            (fit_columns("abcdef", 4), fit_end("abcdef", 4)),
            ("abc…".into(), "…def".into())
        );
        assert_eq!((fit_end("abcdef", 6), fit_end("日本語", 4)), ("abcdef".into(), "…語".into()));
        assert_eq!(
            ["/a/bcd", "C:\\abc", "abcdef"].map(|label| fit_label(label, 4)),
            ["…bcd", "…abc", "abc…"]
        );
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap_columns("", 5), [""]);
        assert_eq!(wrap_columns("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap_columns("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap_columns("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap_columns("    if deep {", 8), ["    if", "deep {"]);
        assert_eq!(wrap_columns("a  b", 1), ["a", "b"]);
    }

    #[test]
    fn wide_characters_never_pass_the_edge() {
        assert_eq!(wrap_columns("日本語の文章", 5), ["日本", "語の", "文章"]);
        let family = "👩‍👩‍👧👩‍👩‍👧";
        assert_eq!(wrap_columns(family, 3), ["👩‍👩‍👧", "👩‍👩‍👧"]);
        for width in 1..9 {
            for row in wrap_columns("x 日本 ne\u{301}e 👩‍👩‍👧 語 wort", width) {
                assert!(row.width() <= width.max(2), "{row:?} at {width}");
            }
        }
    }
}
