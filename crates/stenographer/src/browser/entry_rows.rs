//! Lays out an entry as screen rows: its caption, and its text wrapped to the width.

use jiff::tz::TimeZone;
use steno_model::{Entry, entry};
use steno_store::index::entry_text;
use unicode_width::UnicodeWidthStr;

use crate::text_table::{expand_tabs, fit_columns, wrap_columns};
use crate::ui::{count_noun, escape_control};

/// One row of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScreenRow {
    /// An empty row.
    Blank,
    /// The speaker; a folded entry adds a preview.
    Heading { caption: String, preview: String },
    /// One row of the entry's text.
    Text(String),
}

/// Options for laying out an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryLayout {
    /// Columns per row.
    pub(crate) width: usize,
    /// Whether only the caption is shown.
    pub(crate) is_folded: bool,
    /// Whether a blank row comes first.
    pub(crate) is_apart: bool,
}

/// Returns the rows of an entry.
pub(crate) fn layout_entry(entry: &Entry, zone: &TimeZone, shape: EntryLayout) -> Vec<ScreenRow> {
    let text = entry_text::searchable_text(entry);
    let mark = match shape.is_folded {
        _ if text.trim().is_empty() => '·',
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
        text_preview(&text, shape.width.saturating_sub(caption.width() + 2))
    } else {
        String::new()
    };
    rows.push(ScreenRow::Heading { caption: fit_columns(&caption, shape.width), preview });
    if !shape.is_folded {
        for line in text.trim_end().lines() {
            rows.extend(
                wrap_columns(&escape_control(&expand_tabs(line)), shape.width)
                    .into_iter()
                    .map(ScreenRow::Text),
            );
        }
    }
    rows
}

/// Returns the speaker and the time.
fn entry_caption(entry: &Entry, zone: &TimeZone) -> String {
    let mut words = Vec::new();
    words.extend(entry.created_at.map(|at| at.in_zone(zone).clock_text()));
    if entry.source != entry::PRIMARY_SOURCE {
        let name = entry.source.trim_start_matches("subagent:");
        words.push(format!("[{}]", fit_columns(name, 9)));
    }
    words.push(entry.heading());
    words.join(" ")
}

/// Returns the start of a folded text and the number of further lines.
fn text_preview(text: &str, width: usize) -> String {
    if width == 0 {
        return String::new();
    }
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    // The line may be megabytes long, so only its start is processed.
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
    use steno_model::{EntryKind, Role};

    #[test]
    fn a_folded_entry_shows_a_preview() {
        let entry =
            Entry::new(Role::Tool, EntryKind::ToolResult, "\none\ttwo\x1b[1m\nmore\nand more\n");
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
