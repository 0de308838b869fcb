//! Splits the screen into parts. On a small screen the least important parts are dropped first.

use ratatui::layout::Rect;

/// Columns left of a session's text, for the cursor.
pub(crate) const GUTTER_COLUMNS: u16 = 2;

/// Rows per search hit.
pub(crate) const HIT_ROWS: usize = 2;

/// The parts of a screen, top to bottom. Parts without space are empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScreenParts {
    /// The title row.
    pub(crate) title: Rect,
    /// The input line, or the session's facts.
    pub(crate) line: Rect,
    /// The list or the text.
    pub(crate) body: Rect,
    /// Details of the selected item.
    pub(crate) detail: Rect,
    /// Keys or a notice.
    pub(crate) footer: Rect,
}

/// Returns the layout of the list screen.
pub(crate) fn list_layout(area: Rect) -> ScreenParts {
    let detail = match area.height {
        0..16 => 0,
        16..30 => 5,
        _ => 8,
    };
    split_screen(area, detail)
}

/// Minimum width of a screen with a preview beside the list.
const MIN_PREVIEW_SCREEN: u16 = 140;

/// Splits off the right part of the list screen for a preview, if the screen is wide enough.
pub(crate) fn split_preview(parts: ScreenParts) -> (ScreenParts, Option<Rect>) {
    let width = parts.body.width;
    if width < MIN_PREVIEW_SCREEN || parts.body.height == 0 {
        return (parts, None);
    }
    let left = (width * 2 / 5).max(70);
    let (body, detail) = (parts.body, parts.detail);
    let height = body.height + detail.height;
    let preview = Rect { x: body.x + left, width: width - left, height, ..body };
    let body = Rect { width: left, ..body };
    let detail = Rect { width: left, ..detail };
    (ScreenParts { body, detail, ..parts }, Some(preview))
}

/// Returns the columns and rows available for the text of a preview: beside a rule, and below the title and facts.
pub(crate) fn preview_text_area(preview: Rect) -> Rect {
    let (x, y) = (preview.x + 2, preview.y + 3);
    let height = preview.height.saturating_sub(3);
    Rect { x, y, width: preview.width.saturating_sub(3), height }
}

/// Returns the layout of the reader screen.
pub(crate) fn reader_layout(area: Rect) -> ScreenParts {
    split_screen(area, 0)
}

/// Returns the columns and rows available for a session's text.
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
    fn a_preview_needs_a_wide_screen() {
        let split = |width, height| split_preview(list_layout(Rect::new(0, 0, width, height)));
        assert_eq!(split(139, 60).1, None);
        let (parts, preview) = split(200, 60);
        let preview = preview.unwrap();
        assert_eq!(parts.body.width + preview.width, 200);
        assert_eq!(parts.body.height + parts.detail.height, preview.height);
        assert_eq!(preview.x, parts.body.right());
        let text = preview_text_area(preview);
        assert!(text.right() < preview.right() && text.bottom() == preview.bottom());
    }

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
