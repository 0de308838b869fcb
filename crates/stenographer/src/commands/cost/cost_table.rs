//! A table of costs: labels at the left, amounts at the right, and bars if there is space.

use steno_store::cost::report::ChargeSum;
use unicode_width::UnicodeWidthStr;

use crate::amount;
use crate::text_table::{fit_columns, fit_label};

/// Minimum columns of a label.
const MIN_LABEL_COLUMNS: usize = 10;

/// Maximum columns of a bar.
const MAX_BAR_COLUMNS: usize = 24;

/// Minimum columns of a bar; below, bars are omitted.
const MIN_BAR_COLUMNS: usize = 6;

const HEADINGS: [&str; 5] = ["INPUT", "CACHE WRITE", "CACHE READ", "OUTPUT", "COST"];

/// Rows of the table.
pub(super) struct CostTable {
    heading: &'static str,
    lines: Vec<CostTableRow>,
}

struct CostTableRow {
    label: String,
    cells: [String; 5],
    /// Value of the bar; none for the total.
    cost: Option<f64>,
}

impl CostTable {
    pub(super) fn new(heading: &'static str) -> Self {
        Self { heading, lines: Vec::new() }
    }

    /// Adds a row.
    pub(super) fn add_row(&mut self, label: String, sum: &ChargeSum) {
        self.push_row(label, sum, sum.cost());
    }

    /// Adds the total.
    pub(super) fn add_total(&mut self, sum: &ChargeSum) {
        self.push_row("total".to_owned(), sum, None);
    }

    fn push_row(&mut self, label: String, sum: &ChargeSum, cost: Option<f64>) {
        let tokens = sum.tokens();
        let [input, write, read, output] =
            [tokens.input, tokens.cache_write, tokens.cache_read, tokens.output]
                .map(amount::format_count);
        let cells = [input, write, read, output, amount::format_cost(sum)];
        let label = label.replace(['\n', '\t'], " ");
        self.lines.push(CostTableRow { label, cells, cost });
    }

    /// Renders the table. No line is wider than `width` unless the amounts alone are.
    pub(super) fn render(&self, width: usize, bars: bool) -> String {
        let widths: Vec<usize> = (0..HEADINGS.len()).map(|at| self.column_width(at)).collect();
        let amounts: usize = widths.iter().map(|width| width + 2).sum();
        let longest = self.lines.iter().map(|line| line.label.width()).max().unwrap_or(0);
        let room = width.saturating_sub(amounts).max(MIN_LABEL_COLUMNS);
        let kept = if bars { MIN_BAR_COLUMNS + 2 } else { 0 };
        let label =
            longest.max(self.heading.width()).min(room.saturating_sub(kept).max(MIN_LABEL_COLUMNS));
        let bar = room.saturating_sub(label + 2).min(MAX_BAR_COLUMNS);
        let bar = if bars && bar >= MIN_BAR_COLUMNS { bar } else { 0 };
        let top = self.lines.iter().filter_map(|line| line.cost).fold(0.0, f64::max);
        let mut text = render_row(
            &fit_columns(self.heading, label),
            label,
            &HEADINGS.map(str::to_owned),
            &widths,
        );
        text.push('\n');
        for line in &self.lines {
            text.push_str(&render_row(&fit_label(&line.label, label), label, &line.cells, &widths));
            if let Some(cost) = line.cost.filter(|cost| bar > 0 && *cost > 0.0) {
                text.push_str("  ");
                text.push_str(&amount::render_bar(cost / top, bar));
            }
            text.push('\n');
        }
        text
    }

    fn column_width(&self, column: usize) -> usize {
        let cells = self.lines.iter().map(|line| line.cells[column].width());
        cells.max().unwrap_or(0).max(HEADINGS[column].width())
    }
}

fn render_row(label: &str, width: usize, cells: &[String; 5], widths: &[usize]) -> String {
    let mut text = format!("{label}{}", " ".repeat(width - label.width().min(width)));
    for (cell, width) in cells.iter().zip(widths) {
        text.push_str(&" ".repeat(width + 2 - cell.width()));
        text.push_str(cell);
    }
    text
}

#[cfg(test)]
mod tests {
    use steno_store::cost::PriceTable;
    use steno_store::cost::charge::{ChargeTable, CostMode};
    use steno_store::cost::file_charges::{ChargeCollector, SessionStatement};
    use steno_store::format;

    use super::*;

    /// Two sessions; one costs half as much as the other.
    fn charges() -> (ChargeTable, Vec<Option<f64>>) {
        let dir = tempfile::tempdir().unwrap();
        let mut register = ChargeCollector::default();
        for (session, output) in [("one", 1_000_000), ("two", 2_000_000)] {
            let line = format!(
                "{{\"type\":\"assistant\",\"uuid\":\"u\",\"sessionId\":\"{session}\",\"version\":\"2.1.0\",\
                 \"timestamp\":\"2026-01-02T00:00:00Z\",\"message\":{{\"id\":\"{session}\",\"role\":\"assistant\",\
                 \"model\":\"claude-haiku-4-5\",\"content\":[],\"usage\":{{\"output_tokens\":{output}}}}}}}\n"
            );
            let path = dir.path().join(format!("{session}.jsonl"));
            std::fs::write(&path, line).unwrap();
            let found = format::find_sessions(&path).unwrap();
            register.add_statement(SessionStatement::read(&found[0]).unwrap());
        }
        let charges = register.finish();
        let costs = charges.charge_costs(&PriceTable::bundled(), CostMode::Auto);
        (charges, costs)
    }

    #[test]
    fn bars_and_labels_share_what_is_left() {
        let (charges, costs) = charges();
        let mut chart = CostTable::new("PROJECT");
        chart.add_row("one".to_owned(), &charges.sum_charges(&costs, &[0]));
        chart.add_row("two".to_owned(), &charges.sum_charges(&costs, &[1]));
        chart.add_total(&charges.sum_charges(&costs, &[0, 1]));
        insta::assert_snapshot!(chart.render(80, true), @"
        PROJECT  INPUT  CACHE WRITE  CACHE READ  OUTPUT    COST
        one          0            0           0   1.00M   $5.00  ███████████▌
        two          0            0           0   2.00M  $10.00  ███████████████████████
        total        0            0           0   3.00M  $15.00
        ");
        chart.add_row("a".repeat(60), &ChargeSum::default());
        insta::assert_snapshot!(chart.render(80, true), @"
        PROJECT                   INPUT  CACHE WRITE  CACHE READ  OUTPUT    COST
        one                           0            0           0   1.00M   $5.00  ███
        two                           0            0           0   2.00M  $10.00  ██████
        total                         0            0           0   3.00M  $15.00
        aaaaaaaaaaaaaaaaaaaaaaa…      0            0           0       0   $0.00
        ");
        for width in [40, 80, 120] {
            let text = chart.render(width, true);
            assert!(text.lines().all(|line| line.width() <= width.max(60)), "{text}");
        }
    }
}
