//! Which part of the screen shows what. Where there is little room, the least important part goes first.

use ratatui::layout::Rect;

/// Columns beside the text of a session, where the cursor stands.
pub(crate) const GUTTER_COLUMNS: u16 = 2;

/// Rows that a hit takes in its list.
pub(crate) const HIT_ROWS: usize = 2;

/// The parts of a screen, from top to bottom; those for which there is no room are empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScreenParts {
    /// What is shown.
    pub(crate) title: Rect,
    /// What is typed, or more about what is shown.
    pub(crate) line: Rect,
    /// The list or the text.
    pub(crate) body: Rect,
    /// More about the chosen item.
    pub(crate) detail: Rect,
    /// Keys, or what happened.
    pub(crate) footer: Rect,
}

/// The parts while a list is shown.
pub(crate) fn list_layout(area: Rect) -> ScreenParts {
    let detail = match area.height {
        0..16 => 0,
        16..30 => 5,
        _ => 8,
    };
    split_screen(area, detail)
}

/// The parts while a session is read.
pub(crate) fn reader_layout(area: Rect) -> ScreenParts {
    split_screen(area, 0)
}

/// Columns and rows for the text of a session.
pub(crate) fn reader_pane_size(area: Rect) -> (usize, usize) {
    let body = reader_layout(area).body;
    (usize::from(body.width.saturating_sub(GUTTER_COLUMNS)), usize::from(body.height))
}

fn split_screen(area: Rect, detail: u16) -> ScreenParts {
    let title = u16::from(area.height >= 4);
    let line = u16::from(area.height >= 2);
    let footer = u16::from(area.height >= 3);
    let body = area.height.saturating_sub(title + line + detail + footer);
    let mut y = area.y;
    let mut next = |height: u16| {
        let part = Rect { y, height, ..area };
        y += height;
        part
    };
    ScreenParts {
        title: next(title),
        line: next(line),
        body: next(body),
        detail: next(detail),
        footer: next(footer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fill_the_screen_whatever_its_size() {
        for height in 0..60 {
            let area = Rect::new(0, 0, 80, height);
            for parts in [list_layout(area), reader_layout(area)] {
                let all = [parts.title, parts.line, parts.body, parts.detail, parts.footer];
                assert_eq!(all.iter().map(|part| part.height).sum::<u16>(), height);
                assert!(height == 0 || parts.body.height > 0, "no body at {height}");
            }
        }
    }
}
