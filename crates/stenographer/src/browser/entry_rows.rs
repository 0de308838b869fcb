//! An entry as rows of a screen: its heading, and what was said broken into lines that fit.

use jiff::tz::TimeZone;
use steno_core::index::text;
use steno_core::{Entry, entry};
use unicode_width::UnicodeWidthStr;

use crate::text_table::{expand_tabs, fit_columns, wrap_columns};
use crate::ui::{count_noun, escape_control};

/// One row of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScreenRow {
    /// Nothing.
    Blank,
    /// Who speaks; of what is folded also how it begins.
    Heading { caption: String, preview: String },
    /// What is said.
    Text(String),
}

/// How an entry is laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryLayout {
    /// Columns that a row may take.
    pub(crate) width: usize,
    /// Whether only the heading is shown.
    pub(crate) is_folded: bool,
    /// Whether the entry stands apart from the one before it.
    pub(crate) is_apart: bool,
}

/// The rows of an entry.
pub(crate) fn layout_entry(entry: &Entry, zone: &TimeZone, shape: EntryLayout) -> Vec<ScreenRow> {
    let said = text::of(entry);
    let mark = match shape.is_folded {
        _ if said.trim().is_empty() => '·',
        true => '▸',
        false => '▾',
    };
    let mut rows = Vec::new();
    if shape.is_apart {
        rows.push(ScreenRow::Blank);
    }
    let caption = escape_control(&format!("{mark} {}", entry_caption(entry, zone)))
        .replace(['\n', '\t'], " ");
    let preview = if shape.is_folded {
        text_preview(&said, shape.width.saturating_sub(caption.width() + 2))
    } else {
        String::new()
    };
    rows.push(ScreenRow::Heading { caption: fit_columns(&caption, shape.width), preview });
    if !shape.is_folded {
        for line in said.trim_end().lines() {
            rows.extend(
                wrap_columns(&escape_control(&expand_tabs(line)), shape.width)
                    .into_iter()
                    .map(ScreenRow::Text),
            );
        }
    }
    rows
}

/// Who speaks, and when.
fn entry_caption(entry: &Entry, zone: &TimeZone) -> String {
    let mut words = Vec::new();
    words.extend(entry.created_at.map(|at| at.in_zone(zone).clock()));
    if entry.source != entry::PRIMARY {
        let name = entry.source.trim_start_matches("subagent:");
        words.push(format!("[{}]", fit_columns(name, 9)));
    }
    words.push(entry.heading());
    words.join(" ")
}

/// How a folded text begins, and how much more of it there is.
fn text_preview(said: &str, width: usize) -> String {
    if width == 0 {
        return String::new();
    }
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    // Only the beginning is looked at: the line may be megabytes long.
    let first: String = lines.next().unwrap_or_default().trim().chars().take(width + 1).collect();
    let more = match lines.count() as u64 {
        0 => String::new(),
        more => format!("  +{}", count_noun(more, "line")),
    };
    if width <= more.width() {
        return fit_columns(&escape_control(&expand_tabs(&first)), width);
    }
    format!("{}{more}", fit_columns(&escape_control(&expand_tabs(&first)), width - more.width()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_core::{Kind, Role};

    #[test]
    fn a_folded_entry_tells_how_it_begins() {
        let entry = Entry::new(Role::Tool, Kind::ToolResult, "\none\ttwo\x1b[1m\nmore\nand more\n");
        let shape = EntryLayout { width: 50, is_folded: true, is_apart: false };
        let heading = |caption: &str, preview: &str| {
            vec![ScreenRow::Heading { caption: caption.to_owned(), preview: preview.to_owned() }]
        };
        let zone = TimeZone::UTC;
        assert_eq!(
            layout_entry(&entry, &zone, shape),
            heading("▸ tool result", "one two\\u{1b}[1m  +2 lines")
        );
        let narrow = EntryLayout { width: 22, ..shape };
        assert_eq!(layout_entry(&entry, &zone, narrow), heading("▸ tool result", "one tw…"));
        let tiny = EntryLayout { width: 5, ..shape };
        assert_eq!(layout_entry(&entry, &zone, tiny), heading("▸ to…", ""));
    }
}
