//! Paints the lists: sessions, and what was found.

use ratatui::Frame;
use ratatui::layout::{Margin, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use steno_core::index::Listed;
use steno_core::{Status, Timestamp};
use unicode_width::UnicodeWidthStr;

use super::{BOLD, CHOSEN, DIM, Key, PLAIN, Palette, both_ends, footer, is_search, marked};
use super::{one_line, put, typed};
use crate::browser::finder::{Found, MOST};
use crate::browser::layout;
use crate::browser::state::State;
use crate::commands::list::started;
use crate::commands::show::terminal::heading;
use crate::table::fit;
use crate::ui::count;

const KEYS: [Key; 7] = [
    ("Enter", "open", 8),
    ("/", "filter", 7),
    ("s", "search", 6),
    ("r", "resume", 5),
    ("e", "export", 4),
    ("?", "help", 9),
    ("q", "quit", 10),
];
const FILTERING: [Key; 4] =
    [("Enter", "open", 9), ("↑↓", "choose", 8), ("Tab", "search all text", 6), ("Esc", "done", 10)];
const SEARCHING: [Key; 4] =
    [("Enter", "open", 9), ("↑↓", "choose", 8), ("Tab", "sessions", 6), ("Esc", "done", 10)];

pub(super) fn draw(frame: &mut Frame<'_>, state: &State, palette: Palette) {
    let parts = layout::list(frame.area());
    title(frame, state, parts.title);
    input(frame, state, parts.line);
    if is_search(state) {
        hits(frame, state, parts.body);
        let width = usize::from(parts.detail.width.saturating_sub(2));
        let lines = state.finder.chosen().map(|found| hit_lines(found, width)).unwrap_or_default();
        detail(frame, parts.detail, lines);
    } else {
        sessions(frame, state, parts.body, palette);
        let chosen = state.sessions.chosen();
        let lines = chosen.map(|listed| session_lines(state, listed)).unwrap_or_default();
        detail(frame, parts.detail, lines);
    }
    let keys: &[Key] = match (state.typing, is_search(state)) {
        (false, _) => &KEYS,
        (true, false) => &FILTERING,
        (true, true) => &SEARCHING,
    };
    footer(frame, state, parts.footer, keys);
}

/// What is listed, and what goes on.
fn title(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let what = if is_search(state) {
        let finder = &state.finder;
        match (finder.line.is_empty(), finder.is_waiting()) {
            (true, _) => "search".to_owned(),
            (_, true) => "searching …".to_owned(),
            _ if finder.found.len() >= MOST => format!("the first {MOST} hits"),
            _ => count(finder.found.len() as u64, "hit"),
        }
    } else {
        let (left, all) = state.sessions.counts();
        let all = count(all as u64, "session");
        if state.sessions.filter.is_empty() { all } else { format!("{left} of {all}") }
    };
    let left = Line::from(vec![Span::styled(" steno ", BOLD), Span::raw(format!(" {what}"))]);
    let right = state.working.as_ref().map(|working| format!("{working} … ")).unwrap_or_default();
    both_ends(frame, area, left, Line::styled(right, DIM));
}

/// The line that is typed, or how to get there.
fn input(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let (prompt, line, hint) = if is_search(state) {
        (" Search: ", &state.finder.line, "words \"a phrase\" -not begin* one OR other /regex/")
    } else {
        (" Filter: ", &state.sessions.filter, "press / to filter, s to search all text")
    };
    if state.typing {
        typed(frame, area, prompt, line);
    } else if line.is_empty() {
        put(frame, Line::styled(format!(" {hint}"), DIM), area);
    } else {
        let text = vec![Span::styled(prompt, BOLD), Span::raw(line.text())];
        put(frame, Line::from(text), area);
    }
}

fn sessions(frame: &mut Frame<'_>, state: &State, area: Rect, palette: Palette) {
    let (left, all) = state.sessions.counts();
    if left == 0 {
        let text = match (all, &state.working) {
            (0, Some(_)) => "",
            (0, None) => " nothing is kept yet; run `steno sync`",
            _ => " no session has all of these words; Esc and Esc again to see all",
        };
        put(frame, Line::raw(text), area);
    }
    let width = usize::from(area.width);
    let shown = state.sessions.shown(usize::from(area.height));
    for ((is_chosen, listed), row) in shown.zip(area.rows()) {
        put(frame, session_row(state, listed, width, palette), row);
        if is_chosen {
            frame.buffer_mut().set_style(row, CHOSEN);
        }
    }
}

/// When, who, where, how much, and what it was about; the narrower, the less.
fn session_row(state: &State, listed: &Listed, width: usize, palette: Palette) -> Line<'static> {
    let session = &listed.session;
    let year = state.now.in_zone(&state.zone).wall().year();
    let when = session.started.map(|at| started(at.in_zone(&state.zone), year));
    let (mark, style) = mark(listed, palette);
    let mut spans = vec![Span::styled(mark, style)];
    let mut cell = |text: String, width: usize, style: Style| {
        let text = fit(&one_line(&text), width);
        let gap = " ".repeat(width - text.width().min(width) + 2);
        spans.push(Span::styled(text + &gap, style));
    };
    cell(when.unwrap_or_default(), 11, PLAIN);
    if width >= 60 {
        cell(session.agent.clone(), 11, palette.colour(Color::Cyan));
    }
    if width >= 100 {
        let folder = session.project.as_deref().and_then(|path| path.rsplit('/').next());
        cell(folder.unwrap_or_default().to_owned(), 16, PLAIN);
    }
    if width >= 44 {
        cell(format!("{:>6}", session.totals.entries), 6, DIM);
    }
    let title = session.title.as_deref().unwrap_or("(no title)");
    let title = listed.trouble.as_deref().unwrap_or(title);
    spans.push(Span::raw(one_line(title)));
    Line::from(spans)
}

/// How the session stands, if that is worth a look.
fn mark(listed: &Listed, palette: Palette) -> (&'static str, Style) {
    match listed.session.status {
        _ if listed.trouble.is_some() => ("! ", palette.colour(Color::Red)),
        Status::Failed => ("! ", palette.colour(Color::Red)),
        Status::Running => ("* ", palette.colour(Color::Green)),
        _ => ("  ", PLAIN),
    }
}

fn hits(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let finder = &state.finder;
    if let Some(trouble) = &finder.trouble {
        put(frame, Line::raw(format!(" {}", one_line(trouble))), area);
        return;
    }
    if finder.found.is_empty() && !finder.line.is_empty() && !finder.is_waiting() {
        put(frame, Line::raw(" nothing was found"), area);
    }
    let mut rows = area.rows();
    for (at, found) in finder.found.iter().enumerate().skip(finder.choice.top) {
        let Some(first) = rows.next() else { break };
        let second = rows.next();
        put(frame, hit_heading(state, found), first);
        if let Some(row) = second {
            put(frame, hit_line(found, usize::from(row.width)), row);
        }
        if at == finder.choice.at {
            frame.buffer_mut().set_style(first, CHOSEN);
        }
    }
}

fn hit_heading(state: &State, found: &Found) -> Line<'static> {
    let hit = &found.hit;
    let year = state.now.in_zone(&state.zone).wall().year();
    let when = |at: Timestamp| format!("{} ", started(at.in_zone(&state.zone), year));
    let mut text = format!("  {}{} ", hit.time.map(when).unwrap_or_default(), hit.agent);
    text.push_str(&hit.heading());
    let title = hit.title.as_ref().map(|title| format!(" · {title}")).unwrap_or_default();
    let copies = if hit.copies > 0 { format!(" (+{})", hit.copies) } else { String::new() };
    Line::from(vec![Span::styled(one_line(&(text + &copies)), BOLD), Span::raw(one_line(&title))])
}

/// The first line of a hit that matches.
fn hit_line(found: &Found, width: usize) -> Line<'static> {
    let line = found.lines.iter().find(|line| !line.marks.is_empty());
    let mut spans = vec![Span::raw("    ")];
    let line = line.or(found.lines.first());
    if let Some(line) = line {
        let indent = line.text.len() - line.text.trim_start().len();
        spans.extend(marked(line, indent, width.saturating_sub(4)));
    }
    Line::from(spans)
}

/// More about what is chosen, under a rule.
fn detail(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    let mut rows = area.rows();
    if let Some(row) = rows.next() {
        put(frame, Line::styled("─".repeat(usize::from(row.width)), DIM), row);
    }
    for (line, row) in lines.into_iter().zip(rows) {
        put(frame, line, row.inner(Margin::new(1, 0)));
    }
}

fn session_lines(state: &State, listed: &Listed) -> Vec<Line<'static>> {
    if let Some(trouble) = &listed.trouble {
        return vec![Line::raw(format!("cannot be read: {}", one_line(trouble)))];
    }
    let text = heading(&listed.session, &state.zone);
    let line = |(at, text): (usize, &str)| {
        Line::styled(one_line(text), if at == 0 { BOLD } else { PLAIN })
    };
    text.lines().enumerate().map(line).collect()
}

fn hit_lines(found: &Found, width: usize) -> Vec<Line<'static>> {
    found.lines.iter().map(|line| Line::from(marked(line, 0, width))).collect()
}
