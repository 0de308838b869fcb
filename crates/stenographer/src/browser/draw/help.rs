//! Draws the list of keys.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::BOLD_STYLE;

const LIST_KEYS: [(&str, &str); 13] = [
    ("↑ ↓  j k", "choose"),
    ("PgUp PgDn  g G", "page, first, last"),
    ("Enter", "open the session, or the hit"),
    ("/", "filter by title, agent, project, model, id, date"),
    ("s", "search the text of all sessions"),
    ("Tab", "between filter and search"),
    ("r", "resume the session in its agent"),
    ("e", "export it as Markdown into this folder"),
    ("F5", "look for new sessions"),
    ("Esc", "one step back"),
    ("q  Ctrl-C", "quit"),
    ("", ""),
    ("! *", "failed or unreadable; running"),
];

const READER_KEYS: [(&str, &str); 16] = [
    ("↑ ↓  j k", "by line"),
    ("PgUp PgDn  ^U ^D", "by page, by half a page"),
    ("g G", "first, last"),
    ("Tab  Shift-Tab", "next, previous entry"),
    ("Enter  Space", "fold or unfold"),
    ("o  t", "fold or unfold all tools, all thoughts"),
    ("x X", "next, previous error"),
    ("c C", "next, previous compaction"),
    ("s S", "next, previous subagent"),
    ("n p", "next, previous prompt"),
    ("/  m M", "find; next, previous match"),
    ("a", "add a note to the entry"),
    ("r", "resume the session in its agent"),
    ("e", "export it as Markdown into this folder"),
    ("q  Esc", "back to the list"),
    ("Ctrl-C", "quit"),
];

pub(super) fn draw_help(frame: &mut Frame<'_>, reading: bool) {
    let keys: &[(&str, &str)] = if reading { &READER_KEYS } else { &LIST_KEYS };
    let line = |(key, what): &(&'static str, &'static str)| {
        Line::from(vec![Span::styled(format!(" {key:<17}"), BOLD_STYLE), Span::raw(*what)])
    };
    let lines: Vec<Line<'_>> = keys.iter().map(line).collect();
    let all = frame.area();
    let width = all.width.min(70);
    let height = all.height.min(lines.len() as u16 + 2);
    let area = Rect {
        x: all.x + (all.width - width) / 2,
        y: all.y + (all.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(" Keys ").title_bottom(" any key closes this ");
    frame.render_widget(Paragraph::new(lines).block(block), area);
}
