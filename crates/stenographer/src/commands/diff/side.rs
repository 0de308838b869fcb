//! Two columns of text with a mark between them.

use std::ops::Range;

use steno_core::compare::text::words;
use unicode_width::UnicodeWidthStr;

use crate::error::CommandError;
use crate::table::{untabbed, wrap};
use crate::ui::{Ui, defused};
use steno_core::compare::facts::Fact;

/// Columns for the names of facts.
const NAMES: usize = 9;

/// Columns between both sides.
const MIDDLE: usize = 3;

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";

/// A line of each side; one that is missing has no counterpart.
#[derive(Clone, Copy)]
pub(super) struct Column<'a> {
    pub(super) a: Option<&'a str>,
    pub(super) b: Option<&'a str>,
}

/// Prints both sides.
pub(super) struct Sides<'a> {
    ui: &'a mut Ui,
    width: usize,
}

impl<'a> Sides<'a> {
    pub(super) fn new(ui: &'a mut Ui, width: usize) -> Self {
        Self { ui, width }
    }

    /// One point that is known of both.
    pub(super) fn fact(&mut self, fact: &Fact) -> Result<(), CommandError> {
        let column = Column { a: Some(&fact.a), b: Some(&fact.b) };
        self.beside(&format!("{:<NAMES$}", fact.name), column, BOLD)
    }

    /// The headings of two entries, or of one.
    pub(super) fn heading(
        &mut self,
        a: Option<String>,
        b: Option<String>,
    ) -> Result<(), CommandError> {
        writeln!(self.ui.out())?;
        let mark = mark(a.is_some(), b.is_some(), false);
        let cells = [a.unwrap_or_default(), b.unwrap_or_default()];
        let half = self.half(0);
        let rows = cells.map(|cell| wrap(&self.safe(&cell), half));
        for at in 0..rows[0].len().max(rows[1].len()) {
            let [left, right] = [0, 1].map(|side| rows[side].get(at).cloned().unwrap_or_default());
            let gap = " ".repeat(half.saturating_sub(left.width()));
            let (left, right) = (self.styled(&left, BOLD), self.styled(&right, BOLD));
            self.put(&format!("{left}{gap} {mark} {right}"))?;
        }
        Ok(())
    }

    /// A line of each entry.
    pub(super) fn row(&mut self, column: Column<'_>) -> Result<(), CommandError> {
        self.beside("", column, "")
    }

    /// A line about both sessions.
    pub(super) fn note(&mut self, text: &str) -> Result<(), CommandError> {
        writeln!(self.ui.out())?;
        self.aside(text)
    }

    /// A line about both entries.
    pub(super) fn aside(&mut self, text: &str) -> Result<(), CommandError> {
        let text = self.styled(text, DIM);
        self.put(&text)
    }

    fn beside(&mut self, name: &str, column: Column<'_>, style: &str) -> Result<(), CommandError> {
        let half = self.half(name.width());
        let texts = [column.a, column.b].map(|line| self.safe(line.unwrap_or_default()));
        let is_same = column.a == column.b;
        let marks = match column {
            _ if is_same => [Vec::new(), Vec::new()],
            Column { a: Some(_), b: Some(_) } => words(&texts[0], &texts[1]),
            _ => texts.each_ref().map(|text| Vec::from_iter(Some(0..text.len()))),
        };
        let mark = mark(column.a.is_some(), column.b.is_some(), is_same);
        let sides: [Vec<String>; 2] = [0, 1].map(|side| wrap(&texts[side], half));
        let mut at = [0, 0];
        for row in 0..sides[0].len().max(sides[1].len()) {
            let [left, right] = [0, 1].map(|side| {
                let text = sides[side].get(row).map(String::as_str).unwrap_or_default();
                self.painted((&texts[side], &mut at[side]), text, (&marks[side], side))
            });
            let shown = sides[0].get(row).map_or(0, |text| text.width());
            let gap = " ".repeat(half.saturating_sub(shown));
            let name = if row == 0 { self.styled(name, style) } else { " ".repeat(name.width()) };
            self.put(&format!("{name}{left}{gap} {mark} {right}"))?;
        }
        Ok(())
    }

    /// A row of a text that was broken, with what changed in its colour; `at` goes on to where the next row begins.
    fn painted(
        &self,
        (whole, at): (&str, &mut usize),
        row: &str,
        (marks, side): (&[Range<usize>], usize),
    ) -> String {
        // Blanks where the line was broken are in no row.
        let begin = *at + whole[*at..].find(row).unwrap_or(0);
        *at = begin + row.len();
        if !self.ui.is_styled() {
            return row.to_owned();
        }
        let colour = if side == 0 { RED } else { GREEN };
        let (mut out, mut from) = (String::new(), begin);
        for mark in marks {
            let (start, end) = (mark.start.clamp(from, *at), mark.end.clamp(from, *at));
            out.push_str(&whole[from..start]);
            out.push_str(&self.styled(&whole[start..end], colour));
            from = end;
        }
        out.push_str(&whole[from..*at]);
        out
    }

    fn half(&self, names: usize) -> usize {
        (self.width.saturating_sub(names + MIDDLE) / 2).max(8)
    }

    fn styled(&self, text: &str, style: &str) -> String {
        if self.ui.is_styled() && !text.is_empty() && !style.is_empty() {
            format!("{style}{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Text that stays in its line and, on a terminal, cannot drive it.
    fn safe(&self, text: &str) -> String {
        let text = untabbed(text).replace('\n', " ");
        if self.ui.is_terminal() { defused(&text) } else { text }
    }

    fn put(&mut self, line: &str) -> Result<(), CommandError> {
        Ok(writeln!(self.ui.out(), "{}", line.trim_end())?)
    }
}

/// What stands between two lines.
fn mark(has_a: bool, has_b: bool, is_same: bool) -> char {
    match (has_a, has_b) {
        _ if is_same => ' ',
        (true, false) => '<',
        (false, true) => '>',
        _ => '|',
    }
}
