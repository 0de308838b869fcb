//! Draws the lists of sessions and of search hits.

use ratatui::Frame;
use ratatui::layout::{Margin, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use steno_model::{SessionStatus, Timestamp};
use steno_store::index::ListedSession;
use unicode_width::UnicodeWidthStr;

use super::reader::draw_preview;
use super::{
    BOLD_STYLE, DIM_STYLE, KeyHint, PLAIN_STYLE, SELECTED_STYLE, TerminalPalette, draw_footer,
    draw_line, draw_line_ends, draw_text_input, one_line, shows_hits, spans_around_match,
};
use crate::browser::layout;
use crate::browser::search_pane::{BrowserHit, MAX_HITS};
use crate::browser::state::BrowserState;
use crate::commands::list::format_start;
use crate::commands::show::terminal::render_heading;
use crate::text_table::fit_columns;
use crate::ui::count_noun;

const NAVIGATION_KEYS: [KeyHint; 7] = [
    ("Enter", "open", 8),
    ("/", "filter", 7),
    ("s", "search", 6),
    ("r", "resume", 5),
    ("e", "export", 4),
    ("?", "help", 9),
    ("q", "quit", 10),
];
const FILTER_KEYS: [KeyHint; 4] =
    [("Enter", "open", 9), ("↑↓", "choose", 8), ("Tab", "search all text", 6), ("Esc", "done", 10)];
const SEARCH_KEYS: [KeyHint; 4] =
    [("Enter", "open", 9), ("↑↓", "choose", 8), ("Tab", "sessions", 6), ("Esc", "done", 10)];

pub(super) fn draw_list(frame: &mut Frame<'_>, state: &mut BrowserState, palette: TerminalPalette) {
    let mut parts = layout::list_layout(frame.area());
    if !shows_hits(state) {
        let (left, preview) = layout::split_preview(parts);
        parts = left;
        if let (Some(area), Some(preview)) = (preview, &mut state.preview) {
            draw_preview(frame, preview, area, palette);
        }
    }
    draw_list_parts(frame, state, parts, palette);
}

fn draw_list_parts(
    frame: &mut Frame<'_>,
    state: &BrowserState,
    parts: layout::ScreenParts,
    palette: TerminalPalette,
) {
    draw_title(frame, state, parts.title);
    draw_input(frame, state, parts.line);
    if shows_hits(state) {
        draw_hits(frame, state, parts.body);
        let width = usize::from(parts.detail.width.saturating_sub(2));
        let lines =
            state.search.selected_hit().map(|found| hit_lines(found, width)).unwrap_or_default();
        draw_detail(frame, parts.detail, lines);
    } else {
        draw_sessions(frame, state, parts.body, palette);
        let chosen = state.sessions.selected_session();
        let lines = chosen.map(|listed| session_lines(state, listed)).unwrap_or_default();
        draw_detail(frame, parts.detail, lines);
    }
    let keys: &[KeyHint] = match (state.is_typing, shows_hits(state)) {
        (false, _) => &NAVIGATION_KEYS,
        (true, false) => &FILTER_KEYS,
        (true, true) => &SEARCH_KEYS,
    };
    draw_footer(frame, state, parts.footer, keys);
}

/// Draws the title row: what is listed, and background work.
fn draw_title(frame: &mut Frame<'_>, state: &BrowserState, area: Rect) {
    let what = if shows_hits(state) {
        let finder = &state.search;
        match (finder.input.is_empty(), finder.is_waiting()) {
            (true, _) => "search".to_owned(),
            (_, true) => "searching …".to_owned(),
            _ if finder.hits.len() >= MAX_HITS => format!("the first {MAX_HITS} hits"),
            _ => count_noun(finder.hits.len() as u64, "hit"),
        }
    } else {
        let (left, all) = state.sessions.counts();
        let all = count_noun(all as u64, "session");
        if state.sessions.filter.is_empty() { all } else { format!("{left} of {all}") }
    };
    let left = Line::from(vec![Span::styled(" steno ", BOLD_STYLE), Span::raw(format!(" {what}"))]);
    let right =
        state.background_work.as_ref().map(|working| format!("{working} … ")).unwrap_or_default();
    draw_line_ends(frame, area, left, Line::styled(right, DIM_STYLE));
}

/// Draws the input line, or a hint for it.
fn draw_input(frame: &mut Frame<'_>, state: &BrowserState, area: Rect) {
    let (prompt, line, hint) = if shows_hits(state) {
        (" Search: ", &state.search.input, "words \"a phrase\" -not begin* one OR other /regex/")
    } else {
        (" Filter: ", &state.sessions.filter, "press / to filter, s to search all text")
    };
    if state.is_typing {
        draw_text_input(frame, area, prompt, line);
    } else if line.is_empty() {
        draw_line(frame, Line::styled(format!(" {hint}"), DIM_STYLE), area);
    } else {
        let text = vec![Span::styled(prompt, BOLD_STYLE), Span::raw(line.text())];
        draw_line(frame, Line::from(text), area);
    }
}

fn draw_sessions(
    frame: &mut Frame<'_>,
    state: &BrowserState,
    area: Rect,
    palette: TerminalPalette,
) {
    let (left, all) = state.sessions.counts();
    if left == 0 {
        let text = match (all, &state.background_work) {
            (0, Some(_)) => "",
            (0, None) => " no sessions yet; run `steno sync`",
            _ => " no session matches; press Esc twice to see all",
        };
        draw_line(frame, Line::raw(text), area);
    }
    let width = usize::from(area.width);
    let shown = state.sessions.visible_sessions(usize::from(area.height));
    for ((is_chosen, listed), row) in shown.zip(area.rows()) {
        draw_line(frame, session_row(state, listed, width, palette), row);
        if is_chosen {
            frame.buffer_mut().set_style(row, SELECTED_STYLE);
        }
    }
}

/// Renders one session: date, agent, project, entries and title. Narrow screens show fewer columns.
fn session_row(
    state: &BrowserState,
    listed: &ListedSession,
    width: usize,
    palette: TerminalPalette,
) -> Line<'static> {
    let session = &listed.session;
    let year = state.now.in_zone(&state.zone).wall().year();
    let when = session.started.map(|at| format_start(at.in_zone(&state.zone), year));
    let (mark, style) = status_mark(listed, palette);
    let mut spans = vec![Span::styled(mark, style)];
    let mut cell = |text: String, width: usize, style: Style| {
        let text = fit_columns(&one_line(&text), width);
        let gap = " ".repeat(width - text.width().min(width) + 2);
        spans.push(Span::styled(text + &gap, style));
    };
    cell(when.unwrap_or_default(), 11, PLAIN_STYLE);
    if width >= 60 {
        cell(session.agent.clone(), 11, palette.foreground(Color::Cyan));
    }
    if width >= 100 {
        let folder = session.project.as_deref().and_then(|path| path.rsplit('/').next());
        cell(folder.unwrap_or_default().to_owned(), 16, PLAIN_STYLE);
    }
    if width >= 44 {
        cell(format!("{:>6}", session.totals.entries), 6, DIM_STYLE);
    }
    let title = session.title.as_deref().unwrap_or("(no title)");
    let title = listed.problem.as_deref().unwrap_or(title);
    spans.push(Span::raw(one_line(title)));
    Line::from(spans)
}

/// Returns the mark for a session that failed or is running.
fn status_mark(listed: &ListedSession, palette: TerminalPalette) -> (&'static str, Style) {
    match listed.session.status {
        _ if listed.problem.is_some() => ("! ", palette.foreground(Color::Red)),
        SessionStatus::Failed => ("! ", palette.foreground(Color::Red)),
        SessionStatus::Running => ("* ", palette.foreground(Color::Green)),
        _ => ("  ", PLAIN_STYLE),
    }
}

fn draw_hits(frame: &mut Frame<'_>, state: &BrowserState, area: Rect) {
    let finder = &state.search;
    if let Some(trouble) = &finder.error_message {
        draw_line(frame, Line::raw(format!(" {}", one_line(trouble))), area);
        return;
    }
    if finder.hits.is_empty() && !finder.input.is_empty() && !finder.is_waiting() {
        draw_line(frame, Line::raw(" no match"), area);
    }
    let mut rows = area.rows();
    for (at, found) in finder.hits.iter().enumerate().skip(finder.selection.first_visible) {
        let Some(first) = rows.next() else { break };
        let second = rows.next();
        draw_line(frame, hit_heading(state, found), first);
        if let Some(row) = second {
            draw_line(frame, hit_line(found, usize::from(row.width)), row);
        }
        if at == finder.selection.selected {
            frame.buffer_mut().set_style(first, SELECTED_STYLE);
        }
    }
}

fn hit_heading(state: &BrowserState, found: &BrowserHit) -> Line<'static> {
    let hit = &found.hit;
    let year = state.now.in_zone(&state.zone).wall().year();
    let when = |at: Timestamp| format!("{} ", format_start(at.in_zone(&state.zone), year));
    let mut text = format!("  {}{} ", hit.time.map(when).unwrap_or_default(), hit.agent);
    text.push_str(&hit.heading());
    let title = hit.title.as_ref().map(|title| format!(" · {title}")).unwrap_or_default();
    let copies = if hit.copies > 0 { format!(" (+{})", hit.copies) } else { String::new() };
    Line::from(vec![
        Span::styled(one_line(&(text + &copies)), BOLD_STYLE),
        Span::raw(one_line(&title)),
    ])
}

/// Renders the first matching line of a hit.
fn hit_line(found: &BrowserHit, width: usize) -> Line<'static> {
    let line = found.lines.iter().find(|line| !line.marks.is_empty());
    let mut spans = vec![Span::raw("    ")];
    let line = line.or(found.lines.first());
    if let Some(line) = line {
        let indent = line.text.len() - line.text.trim_start().len();
        spans.extend(spans_around_match(line, indent, width.saturating_sub(4)));
    }
    Line::from(spans)
}

/// Draws details of the selected item below a rule.
fn draw_detail(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    let mut rows = area.rows();
    if let Some(row) = rows.next() {
        draw_line(frame, Line::styled("─".repeat(usize::from(row.width)), DIM_STYLE), row);
    }
    for (line, row) in lines.into_iter().zip(rows) {
        draw_line(frame, line, row.inner(Margin::new(1, 0)));
    }
}

fn session_lines(state: &BrowserState, listed: &ListedSession) -> Vec<Line<'static>> {
    let is_unreadable = listed.session.totals.entries == 0;
    if let Some(problem) = listed.problem.as_ref().filter(|_| is_unreadable) {
        return vec![Line::raw(format!("cannot be read: {}", one_line(problem)))];
    }
    let text = render_heading(&listed.session, &state.zone);
    let line = |(at, text): (usize, &str)| {
        Line::styled(one_line(text), if at == 0 { BOLD_STYLE } else { PLAIN_STYLE })
    };
    let incomplete = listed.problem.as_ref().map(|problem| format!("incomplete: {problem}"));
    let incomplete = incomplete.map(|text| Line::styled(one_line(&text), BOLD_STYLE));
    incomplete.into_iter().chain(text.lines().enumerate().map(line)).collect()
}

fn hit_lines(found: &BrowserHit, width: usize) -> Vec<Line<'static>> {
    found.lines.iter().map(|line| Line::from(spans_around_match(line, 0, width))).collect()
}
