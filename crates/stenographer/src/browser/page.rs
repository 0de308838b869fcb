//! An entry as rows of a screen: its heading, and what was said broken into lines that fit.

use jiff::tz::TimeZone;
use steno_core::index::text;
use steno_core::{Entry, entry};
use unicode_width::UnicodeWidthStr;

use crate::table::{fit, untabbed, wrap};
use crate::ui::{count, defused};

/// One row of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// Nothing.
    Blank,
    /// Who speaks; of what is folded also how it begins.
    Heading { caption: String, preview: String },
    /// What is said.
    Text(String),
}

/// How an entry is laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Columns that a row may take.
    pub(crate) width: usize,
    /// Whether only the heading is shown.
    pub(crate) folded: bool,
    /// Whether the entry stands apart from the one before it.
    pub(crate) apart: bool,
}

/// The rows of an entry.
pub(crate) fn rows(entry: &Entry, zone: &TimeZone, shape: Shape) -> Vec<Row> {
    let said = text::of(entry);
    let mark = match shape.folded {
        _ if said.trim().is_empty() => '·',
        true => '▸',
        false => '▾',
    };
    let mut rows = Vec::new();
    if shape.apart {
        rows.push(Row::Blank);
    }
    let caption = defused(&format!("{mark} {}", caption(entry, zone))).replace(['\n', '\t'], " ");
    let preview = if shape.folded {
        preview(&said, shape.width.saturating_sub(caption.width() + 2))
    } else {
        String::new()
    };
    rows.push(Row::Heading { caption: fit(&caption, shape.width), preview });
    if !shape.folded {
        for line in said.trim_end().lines() {
            rows.extend(wrap(&defused(&untabbed(line)), shape.width).into_iter().map(Row::Text));
        }
    }
    rows
}

/// Who speaks, and when.
fn caption(entry: &Entry, zone: &TimeZone) -> String {
    let mut words = Vec::new();
    words.extend(entry.created_at.map(|at| at.in_zone(zone).clock()));
    if entry.source != entry::PRIMARY {
        let name = entry.source.trim_start_matches("subagent:");
        words.push(format!("[{}]", fit(name, 9)));
    }
    words.push(entry.heading());
    words.join(" ")
}

/// How a folded text begins, and how much more of it there is.
fn preview(said: &str, width: usize) -> String {
    if width == 0 {
        return String::new();
    }
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    // Only the beginning is looked at: the line may be megabytes long.
    let first: String = lines.next().unwrap_or_default().trim().chars().take(width + 1).collect();
    let more = match lines.count() as u64 {
        0 => String::new(),
        more => format!("  +{}", count(more, "line")),
    };
    if width <= more.width() {
        return fit(&defused(&untabbed(&first)), width);
    }
    format!("{}{more}", fit(&defused(&untabbed(&first)), width - more.width()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_core::{Kind, Role};

    #[test]
    fn a_folded_entry_tells_how_it_begins() {
        let entry = Entry::new(Role::Tool, Kind::ToolResult, "\none\ttwo\x1b[1m\nmore\nand more\n");
        let shape = Shape { width: 50, folded: true, apart: false };
        let heading = |caption: &str, preview: &str| {
            vec![Row::Heading { caption: caption.to_owned(), preview: preview.to_owned() }]
        };
        let zone = TimeZone::UTC;
        assert_eq!(
            rows(&entry, &zone, shape),
            heading("▸ tool result", "one two\\u{1b}[1m  +2 lines")
        );
        let narrow = Shape { width: 22, ..shape };
        assert_eq!(rows(&entry, &zone, narrow), heading("▸ tool result", "one tw…"));
        let tiny = Shape { width: 5, ..shape };
        assert_eq!(rows(&entry, &zone, tiny), heading("▸ to…", ""));
    }
}
