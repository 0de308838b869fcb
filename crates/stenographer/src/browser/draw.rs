//! Draws the browser. Uses only the terminal's own colours and background, so that it is readable in every theme.

mod help;
mod list;
mod reader;

use std::ops::Range;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Clear;
use steno_store::index::match_lines::MatchLine as MarkedLine;
use unicode_width::UnicodeWidthStr;

use super::state::{BrowserState, ListView};
use super::text_input::TextInput as Typed;
use crate::text_table::{fit_columns, wrap_columns};
use crate::ui::escape_control;

/// The styles that the terminal may show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TerminalPalette {
    /// Whether colours are allowed, rather than bold and dim text only.
    pub(crate) has_colours: bool,
}

impl TerminalPalette {
    fn foreground(self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }
}

const PLAIN_STYLE: Style = Style::new();
const BOLD_STYLE: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM_STYLE: Style = Style::new().add_modifier(Modifier::DIM);
// Reversed colours on dim text would look patchy.
const SELECTED_STYLE: Style =
    Style::new().fg(Color::Reset).remove_modifier(Modifier::DIM).add_modifier(Modifier::REVERSED);
const MATCH_STYLE: Style =
    Style::new().add_modifier(Modifier::BOLD).add_modifier(Modifier::UNDERLINED);

/// A key, its action, and its priority when space is short.
type KeyHint = (&'static str, &'static str, u8);

/// Draws the whole screen.
pub(crate) fn draw_browser(
    frame: &mut Frame<'_>,
    state: &mut BrowserState,
    palette: TerminalPalette,
) {
    if state.reader.is_some() {
        reader::draw_reader(frame, state, palette);
    } else {
        list::draw_list(frame, state, palette);
    }
    if state.is_help_shown {
        help::draw_help(frame, state.reader.is_some());
    }
}

/// Draws the last row: a notice, the work in progress, or the keys.
fn draw_footer(frame: &mut Frame<'_>, state: &BrowserState, area: Rect, keys: &[KeyHint]) {
    let message = match &state.notice {
        _ if state.opening.is_some() => Some("reading …"),
        _ if state.is_exporting => Some("writing …"),
        notice => notice.as_deref(),
    };
    let Some(message) = message else {
        return draw_line(frame, keys_line(keys, usize::from(area.width)), area);
    };
    // A notice of several rows covers the rows above.
    let rows = wrap_columns(&one_line(message), usize::from(area.width.saturating_sub(2)));
    let height = u16::try_from(rows.len()).unwrap_or(1).min(frame.area().height).min(4);
    let area = Rect { y: area.bottom().saturating_sub(height), height, ..area };
    frame.render_widget(Clear, area);
    for (row, place) in rows.iter().zip(area.rows()) {
        draw_line(frame, Line::styled(format!(" {row}"), BOLD_STYLE), place);
    }
}

/// Renders as many key hints as fit.
fn keys_line(keys: &[KeyHint], width: usize) -> Line<'static> {
    let mut shown = keys.to_vec();
    let wide = |(key, what, _): &KeyHint| key.width() + what.width() + 3;
    while shown.iter().map(wide).sum::<usize>() > width + 1 {
        let Some(least) = shown.iter().map(|key| key.2).min() else { break };
        shown.retain(|key| key.2 > least);
    }
    let mut spans = Vec::new();
    for (key, what, _) in shown {
        spans.push(Span::raw(if spans.is_empty() { " " } else { "  " }));
        spans.push(Span::styled(key, BOLD_STYLE));
        spans.push(Span::raw(format!(" {what}")));
    }
    Line::from(spans)
}

/// Draws one row; cuts it with `…` if it is too wide.
fn draw_line(frame: &mut Frame<'_>, line: Line<'_>, area: Rect) {
    let room = usize::from(area.width);
    if line.width() <= room {
        return frame.render_widget(line, area);
    }
    let (mut used, mut cut) = (0, Line::default().style(line.style));
    for span in line.spans {
        let left = room.saturating_sub(used);
        used += span.width();
        if left > 0 {
            // The next span does not fit either.
            let text = if used >= room {
                fit_columns(&format!("{} ", span.content), left)
            } else {
                span.content.into_owned()
            };
            cut.push_span(Span::styled(text, span.style));
        }
    }
    frame.render_widget(cut, area);
}

/// Draws text at the left and the right of a row. The left text is cut if both do not fit.
fn draw_line_ends(frame: &mut Frame<'_>, area: Rect, left: Line<'_>, right: Line<'_>) {
    let wide = u16::try_from(right.width()).unwrap_or(u16::MAX);
    let (mut first, mut last) = (area, Rect::default());
    if wide > 0 && wide + 12 <= area.width {
        first.width = area.width - wide - 1;
        last = Rect { x: area.x + first.width + 1, width: wide, ..area };
    }
    draw_line(frame, left, first);
    draw_line(frame, right, last);
}

/// Draws an input line with its cursor.
fn draw_text_input(frame: &mut Frame<'_>, area: Rect, prompt: &str, line: &Typed) {
    let before = u16::try_from(prompt.width()).unwrap_or(0).min(area.width);
    let room = Rect { x: area.x + before, width: area.width - before, ..area };
    frame.render_widget(Line::styled(prompt, BOLD_STYLE), area);
    // Scrolls the text left so that the cursor stays visible.
    let (text, column) = (line.text(), line.cursor_column());
    let hidden = (column + 1).saturating_sub(usize::from(room.width));
    let mut begins = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let begin = begins.find(|at| text[..*at].width() >= hidden).unwrap_or(0);
    frame.render_widget(Line::raw(&text[begin..]), room);
    if room.area() > 0 {
        let column = column.saturating_sub(text[..begin].width());
        let x = room.x + u16::try_from(column).unwrap_or(0).min(room.width - 1);
        frame.set_cursor_position(Position::new(x, room.y));
    }
}

/// Renders a line from byte `at`. If the first match would be out of view, starts shortly before it.
fn spans_around_match(line: &MarkedLine, at: usize, width: usize) -> Vec<Span<'static>> {
    let is_hidden = |mark: &Range<usize>| line.text[at..mark.end].width() + 2 > width;
    let Some(first) = line.marks.first().filter(|mark| at > mark.start || is_hidden(mark)) else {
        return spans_with_marks(line, at);
    };
    let before = line.text[..first.start].char_indices().rev().take(width / 4).last();
    let mut spans = vec![Span::raw("…")];
    spans.extend(spans_with_marks(line, before.map_or(first.start, |(at, _)| at)));
    spans
}

/// Renders a line from byte `at` with its matches marked.
fn spans_with_marks(line: &MarkedLine, mut at: usize) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for mark in &line.marks {
        spans.push(Span::raw(one_line(&line.text[at..mark.start])));
        spans.push(Span::styled(one_line(&line.text[mark.clone()]), MATCH_STYLE));
        at = mark.end;
    }
    spans.push(Span::raw(one_line(&line.text[at..])));
    spans
}

/// Escapes control characters and keeps the text on one row.
fn one_line(text: &str) -> String {
    escape_control(text).replace(['\n', '\t'], " ")
}

/// Returns whether the list of hits is shown, rather than that of sessions.
fn shows_hits(state: &BrowserState) -> bool {
    state.view == ListView::Hits
}
