//! Columns for a terminal: as wide as they need, the last one cut to what is left.

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
        self.rows.push(cells.map(|cell| cell.replace(['\n', '\t'], " ")));
    }

    /// The table as text, no line wider than `width` unless the columns before the last already are.
    pub(crate) fn render(&self, width: usize) -> String {
        let widths: Vec<usize> = (0..N - 1)
            .map(|column| self.rows.iter().map(|row| row[column].width()).max().unwrap_or(0))
            .collect();
        let left =
            width.saturating_sub(widths.iter().map(|width| width + 2).sum::<usize>()).max(10);
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', width - cell.width() + 2));
            }
            line.push_str(&fit(&row[N - 1], left));
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// The text, cut to `width` columns.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
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
    cut
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
}
