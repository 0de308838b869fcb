//! Prints two columns of text with a mark between them.

use std::ops::Range;

use steno_store::compare::text_diff::changed_words;
use unicode_width::UnicodeWidthStr;

use crate::error::CommandError;
use crate::text_table::{expand_tabs, wrap_columns};
use crate::ui::{Ui, escape_control};
use steno_store::compare::facts::SessionFact;

/// Columns for the names of facts.
const FACT_NAME_COLUMNS: usize = 9;

/// Columns between both sides.
const MARK_COLUMNS: usize = 3;

const RED_ESCAPE: &str = "\x1b[31m";
const GREEN_ESCAPE: &str = "\x1b[32m";
const BOLD_ESCAPE: &str = "\x1b[1m";
const DIM_ESCAPE: &str = "\x1b[2m";

/// A line of each side; `None` has no counterpart.
#[derive(Clone, Copy)]
pub(super) struct LinePair<'a> {
    pub(super) a: Option<&'a str>,
    pub(super) b: Option<&'a str>,
}

/// Prints both sides.
pub(super) struct SideBySidePrinter<'a> {
    ui: &'a mut Ui,
    width: usize,
}

impl<'a> SideBySidePrinter<'a> {
    pub(super) fn new(ui: &'a mut Ui, width: usize) -> Self {
        Self { ui, width }
    }

    /// Prints one fact about both sessions.
    pub(super) fn print_fact(&mut self, fact: &SessionFact) -> Result<(), CommandError> {
        let column = LinePair { a: Some(&fact.a), b: Some(&fact.b) };
        self.print_side_by_side(&format!("{:<FACT_NAME_COLUMNS$}", fact.name), column, BOLD_ESCAPE)
    }

    /// Prints the captions of two entries, or of one.
    pub(super) fn print_headings(
        &mut self,
        a: Option<String>,
        b: Option<String>,
    ) -> Result<(), CommandError> {
        writeln!(self.ui.out())?;
        let mark = change_mark(a.is_some(), b.is_some(), false);
        let cells = [a.unwrap_or_default(), b.unwrap_or_default()];
        let half = self.column_width(0);
        let rows = cells.map(|cell| wrap_columns(&self.escape_text(&cell), half));
        for at in 0..rows[0].len().max(rows[1].len()) {
            let [left, right] = [0, 1].map(|side| rows[side].get(at).cloned().unwrap_or_default());
            let gap = " ".repeat(half.saturating_sub(left.width()));
            let (left, right) =
                (self.apply_style(&left, BOLD_ESCAPE), self.apply_style(&right, BOLD_ESCAPE));
            self.write_line(&format!("{left}{gap} {mark} {right}"))?;
        }
        Ok(())
    }

    /// Prints a line of each entry.
    pub(super) fn print_line_pair(&mut self, column: LinePair<'_>) -> Result<(), CommandError> {
        self.print_side_by_side("", column, "")
    }

    /// Prints a line about both sessions.
    pub(super) fn print_note(&mut self, text: &str) -> Result<(), CommandError> {
        writeln!(self.ui.out())?;
        self.print_aside(text)
    }

    /// Prints a line about both entries.
    pub(super) fn print_aside(&mut self, text: &str) -> Result<(), CommandError> {
        let text = self.apply_style(text, DIM_ESCAPE);
        self.write_line(&text)
    }

    fn print_side_by_side(
        &mut self,
        name: &str,
        column: LinePair<'_>,
        style: &str,
    ) -> Result<(), CommandError> {
        let half = self.column_width(name.width());
        let texts = [column.a, column.b].map(|line| self.escape_text(line.unwrap_or_default()));
        let is_same = column.a == column.b;
        let marks = match column {
            _ if is_same => [Vec::new(), Vec::new()],
            LinePair { a: Some(_), b: Some(_) } => changed_words(&texts[0], &texts[1]),
            _ => texts.each_ref().map(|text| Vec::from_iter(Some(0..text.len()))),
        };
        let mark = change_mark(column.a.is_some(), column.b.is_some(), is_same);
        let sides: [Vec<String>; 2] = [0, 1].map(|side| wrap_columns(&texts[side], half));
        let colours = [RED_ESCAPE, GREEN_ESCAPE];
        let mut wrapped = [0, 1].map(|side| {
            let (text, marks) = (&texts[side], &marks[side]);
            WrappedText { text, marks, colour: colours[side], offset: 0 }
        });
        for row in 0..sides[0].len().max(sides[1].len()) {
            let [left, right] = [0, 1].map(|side| {
                let text = sides[side].get(row).map(String::as_str).unwrap_or_default();
                self.colour_changes(&mut wrapped[side], text)
            });
            let shown = sides[0].get(row).map_or(0, |text| text.width());
            let gap = " ".repeat(half.saturating_sub(shown));
            let name =
                if row == 0 { self.apply_style(name, style) } else { " ".repeat(name.width()) };
            self.write_line(&format!("{name}{left}{gap} {mark} {right}"))?;
        }
        Ok(())
    }

    /// Colours the changes in the next wrapped row.
    fn colour_changes(&self, wrapped: &mut WrappedText<'_>, row: &str) -> String {
        let WrappedText { text, marks, colour, offset } = *wrapped;
        // Blanks at a line break are in no row.
        let begin = offset + text[offset..].find(row).unwrap_or(0);
        let row_end = begin + row.len();
        wrapped.offset = row_end;
        if !self.ui.is_styled() {
            return row.to_owned();
        }
        let (mut out, mut from) = (String::new(), begin);
        for mark in marks {
            let (start, end) = (mark.start.clamp(from, row_end), mark.end.clamp(from, row_end));
            out.push_str(&text[from..start]);
            out.push_str(&self.apply_style(&text[start..end], colour));
            from = end;
        }
        out.push_str(&text[from..row_end]);
        out
    }

    fn column_width(&self, names: usize) -> usize {
        (self.width.saturating_sub(names + MARK_COLUMNS) / 2).max(8)
    }

    fn apply_style(&self, text: &str, style: &str) -> String {
        if self.ui.is_styled() && !text.is_empty() && !style.is_empty() {
            format!("{style}{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Keeps text on one line and, on a terminal, escapes control characters.
    fn escape_text(&self, text: &str) -> String {
        let text = expand_tabs(text).replace('\n', " ");
        if self.ui.is_terminal() { escape_control(&text) } else { text }
    }

    fn write_line(&mut self, line: &str) -> Result<(), CommandError> {
        Ok(writeln!(self.ui.out(), "{}", line.trim_end())?)
    }
}

/// A text that was wrapped into rows, and its changes.
struct WrappedText<'a> {
    text: &'a str,
    marks: &'a [Range<usize>],
    colour: &'static str,
    /// Where the next row starts, or the space before it.
    offset: usize,
}

/// Returns the mark between two lines.
fn change_mark(has_a: bool, has_b: bool, is_same: bool) -> char {
    match (has_a, has_b) {
        _ if is_same => ' ',
        (true, false) => '<',
        (false, true) => '>',
        _ => '|',
    }
}
