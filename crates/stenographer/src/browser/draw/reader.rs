//! Paints the session that is read.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use steno_core::index::Query;
use steno_core::index::mark::Shown;
use steno_core::{Entry, Kind, Role};

use super::{BOLD, DIM, Key, PLAIN, Palette, both_ends, footer, one_line, put, typed, with_marks};
use crate::browser::layout::{self, GUTTER};
use crate::browser::page::Row;
use crate::browser::reader::Reader;
use crate::browser::state::State;
use crate::commands::show::terminal::heading;

const KEYS: [Key; 10] = [
    ("Enter", "fold", 9),
    ("x", "error", 8),
    ("c", "compact", 5),
    ("a", "subagent", 4),
    ("u", "prompt", 2),
    ("/", "find", 3),
    ("r", "resume", 7),
    ("e", "export", 6),
    ("?", "help", 10),
    ("q", "back", 11),
];

pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State, palette: Palette) {
    let parts = layout::reader(frame.area());
    if let Some(reader) = &mut state.reader {
        header(frame, reader, (parts.title, parts.line));
        body(frame, reader, parts.body, palette);
    }
    if state.typing {
        let prompt = if state.notice.is_some() { " Find (no match): " } else { " Find: " };
        typed(frame, parts.footer, prompt, &state.find);
    } else {
        footer(frame, state, parts.footer, &KEYS);
    }
}

/// What the session is, and where in it the reader is.
fn header(frame: &mut Frame<'_>, reader: &Reader, (title, line): (Rect, Rect)) {
    let session = &reader.transcript.session;
    let name = session.title.as_deref().unwrap_or("(no title)");
    let count = reader.transcript.entries.len();
    let place = format!("{}/{count} ", (reader.cursor().entry + 1).min(count));
    both_ends(frame, title, Line::styled(format!(" {}", one_line(name)), BOLD), Line::raw(place));
    let facts = heading(session, reader.zone());
    let facts: Vec<&str> = facts.lines().skip(2).collect();
    let facts = format!(" {} · {}", one_line(&session.agent), one_line(&facts.join(" · ")));
    put(frame, Line::styled(facts, DIM), line);
}

fn body(frame: &mut Frame<'_>, reader: &mut Reader, area: Rect, palette: Palette) {
    let shown = reader.shown();
    if shown.is_empty() {
        frame.render_widget(Line::raw(" nothing was said"), area);
    }
    let cursor = reader.cursor();
    for ((spot, row), place) in shown.iter().zip(area.rows()) {
        let mark = match spot.entry == cursor.entry {
            _ if *spot == cursor => Span::styled("❯", BOLD),
            true if *row != Row::Blank => Span::styled("│", DIM),
            _ => Span::raw(""),
        };
        frame.render_widget(mark, place);
        let gutter = GUTTER.min(place.width);
        let text = Rect { x: place.x + gutter, width: place.width - gutter, ..place };
        let entry = &reader.transcript.entries[spot.entry];
        put(frame, painted(row, entry, reader.find.as_ref(), palette), text);
    }
}

fn painted(row: &Row, entry: &Entry, find: Option<&Query>, palette: Palette) -> Line<'static> {
    match row {
        Row::Blank => Line::default(),
        Row::Heading { caption, preview } => Line::from(vec![
            Span::styled(caption.clone(), caption_style(entry, palette)),
            Span::styled(format!("  {preview}"), DIM),
        ]),
        Row::Text(text) => {
            let style = if entry.kind == Kind::Thinking { DIM } else { PLAIN };
            Line::from(found_in(text, find)).style(style)
        }
    }
}

/// A row with what is looked for marked.
fn found_in(text: &str, find: Option<&Query>) -> Vec<Span<'static>> {
    let lines = find.map(|query| query.lines(text, Shown { lines: 1, context: 0 }));
    match lines.as_deref() {
        Some([line]) if line.text == text => with_marks(line, 0),
        _ => vec![Span::raw(text.to_owned())],
    }
}

/// A colour for each speaker; what went wrong is red.
fn caption_style(entry: &Entry, palette: Palette) -> Style {
    if entry.kind == Kind::Error || entry.is_tool_error() {
        return palette.colour(Color::Red).add_modifier(Modifier::BOLD);
    }
    match (entry.kind, &entry.role) {
        (Kind::Compaction, _) => palette.colour(Color::Magenta).add_modifier(Modifier::BOLD),
        (Kind::Text, Role::User) => palette.colour(Color::Green).add_modifier(Modifier::BOLD),
        (Kind::Text, _) => BOLD,
        (Kind::ToolCall | Kind::ToolResult, _) => palette.colour(Color::Cyan),
        _ => DIM,
    }
}
