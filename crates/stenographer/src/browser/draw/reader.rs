//! Draws the open session.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use steno_model::{Entry, EntryKind, Role};
use steno_store::index::SearchQuery;
use steno_store::index::match_lines::LineLimits;

use super::{
    BOLD_STYLE, DIM_STYLE, KeyHint, PLAIN_STYLE, TerminalPalette, draw_footer, draw_line,
    draw_line_ends, draw_text_input, one_line, spans_with_marks,
};
use crate::browser::entry_rows::ScreenRow;
use crate::browser::layout::{self, GUTTER_COLUMNS};
use crate::browser::preview::{PreviewContent, SessionPreview};
use crate::browser::reader::SessionReader;
use crate::browser::state::BrowserState;
use crate::commands::show::terminal::render_heading;

const READER_KEYS: [KeyHint; 10] = [
    ("Enter", "fold", 9),
    ("x", "error", 8),
    ("c", "compact", 5),
    ("n p", "prompt", 4),
    ("a", "note", 2),
    ("/", "find", 3),
    ("r", "resume", 7),
    ("e", "export", 6),
    ("?", "help", 10),
    ("q", "back", 11),
];

pub(super) fn draw_reader(
    frame: &mut Frame<'_>,
    state: &mut BrowserState,
    palette: TerminalPalette,
) {
    let parts = layout::reader_layout(frame.area());
    if let Some(reader) = &mut state.reader {
        let count = reader.transcript.entries.len();
        let position = format!("{}/{count} ", (reader.cursor().entry + 1).min(count));
        draw_header(frame, reader, [parts.title, parts.line], position);
        draw_body(frame, reader, parts.body, palette);
    }
    if state.is_typing && state.is_noting {
        draw_text_input(frame, parts.footer, " Note: ", &state.note);
    } else if state.is_typing {
        let prompt = if state.notice.is_some() { " Find (no match): " } else { " Find: " };
        draw_text_input(frame, parts.footer, prompt, &state.find);
    } else {
        draw_footer(frame, state, parts.footer, &READER_KEYS);
    }
}

/// Draws the session's title and facts on two rows, and the reader's position.
fn draw_header(
    frame: &mut Frame<'_>,
    reader: &SessionReader,
    [title, line]: [Rect; 2],
    position: String,
) {
    let session = &reader.transcript.session;
    let name = session.title.as_deref().unwrap_or("(no title)");
    draw_line_ends(
        frame,
        title,
        Line::styled(format!(" {}", one_line(name)), BOLD_STYLE),
        Line::raw(position),
    );
    let facts = render_heading(session, reader.zone());
    let facts: Vec<&str> = facts.lines().skip(2).collect();
    let facts = format!(" {} · {}", one_line(&session.agent), one_line(&facts.join(" · ")));
    draw_line(frame, Line::styled(facts, DIM_STYLE), line);
}

fn draw_body(
    frame: &mut Frame<'_>,
    reader: &mut SessionReader,
    area: Rect,
    palette: TerminalPalette,
) {
    let shown = reader.visible_rows();
    if shown.is_empty() {
        frame.render_widget(Line::raw(" no entries"), area);
    }
    let cursor = reader.cursor();
    for ((spot, row), place) in shown.iter().zip(area.rows()) {
        let mark = match spot.entry == cursor.entry {
            _ if *spot == cursor => Span::styled("❯", BOLD_STYLE),
            true if *row != ScreenRow::Blank => Span::styled("│", DIM_STYLE),
            _ => Span::raw(""),
        };
        frame.render_widget(mark, place);
        let gutter = GUTTER_COLUMNS.min(place.width);
        let text = Rect { x: place.x + gutter, width: place.width - gutter, ..place };
        let entry = &reader.transcript.entries[spot.entry];
        draw_line(frame, render_row(row, entry, reader.find.as_ref(), palette), text);
    }
}

/// Draws a session beside the list: its title, its facts, and its first entries.
pub(super) fn draw_preview(
    frame: &mut Frame<'_>,
    preview: &mut SessionPreview,
    area: Rect,
    palette: TerminalPalette,
) {
    for row in area.rows() {
        frame.render_widget(Span::styled("│", DIM_STYLE), row);
    }
    let text = layout::preview_text_area(area);
    let title = Rect { y: area.y, height: 1, ..text };
    let reader = match &mut preview.content {
        PreviewContent::Reading => {
            return draw_line(frame, Line::styled("reading …", DIM_STYLE), title);
        }
        PreviewContent::Unavailable(reason) => {
            return draw_line(frame, Line::raw(one_line(reason)), title);
        }
        PreviewContent::Read(reader) => reader,
    };
    let rows = [title, Rect { y: area.y + 1, ..title }];
    draw_header(frame, reader, rows, String::new());
    for ((spot, row), place) in reader.visible_rows().iter().zip(text.rows()) {
        let entry = &reader.transcript.entries[spot.entry];
        draw_line(frame, render_row(row, entry, None, palette), place);
    }
}

fn render_row(
    row: &ScreenRow,
    entry: &Entry,
    find: Option<&SearchQuery>,
    palette: TerminalPalette,
) -> Line<'static> {
    match row {
        ScreenRow::Blank => Line::default(),
        ScreenRow::Heading { caption, preview } => Line::from(vec![
            Span::styled(caption.clone(), caption_style(entry, palette)),
            Span::styled(format!("  {preview}"), DIM_STYLE),
        ]),
        ScreenRow::Text(text) => {
            let style = if entry.kind == EntryKind::Thinking { DIM_STYLE } else { PLAIN_STYLE };
            Line::from(mark_matches(text, find)).style(style)
        }
    }
}

/// Splits a row into spans, with matches of the query marked.
fn mark_matches(text: &str, find: Option<&SearchQuery>) -> Vec<Span<'static>> {
    let lines =
        find.map(|query| query.matching_lines(text, LineLimits { max_lines: 1, context_lines: 0 }));
    match lines.as_deref() {
        Some([line]) if line.text == text => spans_with_marks(line, 0),
        _ => vec![Span::raw(text.to_owned())],
    }
}

/// Returns the style for a speaker; errors are red.
fn caption_style(entry: &Entry, palette: TerminalPalette) -> Style {
    if entry.kind == EntryKind::Error || entry.is_tool_error() {
        return palette.foreground(Color::Red).add_modifier(Modifier::BOLD);
    }
    match (entry.kind, &entry.role) {
        (EntryKind::Compaction, _) => {
            palette.foreground(Color::Magenta).add_modifier(Modifier::BOLD)
        }
        (EntryKind::Text, Role::User) => {
            palette.foreground(Color::Green).add_modifier(Modifier::BOLD)
        }
        (EntryKind::Text, _) => BOLD_STYLE,
        (EntryKind::ToolCall | EntryKind::ToolResult, _) => palette.foreground(Color::Cyan),
        _ => DIM_STYLE,
    }
}
