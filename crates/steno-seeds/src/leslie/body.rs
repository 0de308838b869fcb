//! Parses the part of a transcript file below its header.
//!
//! A marker is recognised at the beginning and after an empty line, but not inside a query, which ends at its closing
//! tag.

use super::file::{
    QUERY_CLOSE_TAG, QUERY_OPEN_TAG, TOOL_CALL_MARKER, TOOL_RESULT_MARKER, UnitItem,
};

/// The lines below the header, and which of them start an item.
pub(super) struct UnitBody<'a> {
    lines: Vec<&'a str>,
    markers: Vec<bool>,
    /// For each line, the first line at or after it that closes a query.
    closes: Vec<usize>,
}

impl<'a> UnitBody<'a> {
    /// Splits a text into lines. `cut` is true if the end of the text is missing.
    pub(super) fn new(text: &'a str, cut: bool) -> Self {
        let lines: Vec<_> = text.split('\n').collect();
        let end = lines.len();
        let mut body = Self { markers: vec![false; end + 2], closes: vec![end; end + 4], lines };
        // Backwards, because a query is closed only where another item or the end follows.
        for at in (0..end).rev() {
            let ends = at + 1 == end && !cut;
            let goes_on = body.lines.get(at + 1) == Some(&"") && body.markers[at + 2];
            let closes = body.lines[at] == QUERY_CLOSE_TAG && (ends || goes_on);
            body.closes[at] = if closes { at } else { body.closes[at + 1] };
            body.markers[at] = body.is_marker(at, cut);
        }
        body
    }

    fn is_marker(&self, at: usize, cut: bool) -> bool {
        let end = self.lines.len();
        match self.lines[at] {
            "user:" => {
                let opened = self.lines.get(at + 1) == Some(&QUERY_OPEN_TAG);
                opened && (self.closes[at + 3] < end || cut && at + 2 < end)
            }
            "assistant:" | "A:" | "[Error]" => at + 1 < end,
            line => {
                let named =
                    line.starts_with(TOOL_CALL_MARKER) || line.starts_with(TOOL_RESULT_MARKER);
                named && at + 1 < end
            }
        }
    }

    /// Parses the items in order.
    pub(super) fn parse_items(&self) -> Vec<UnitItem> {
        let mut items = Vec::new();
        let mut at = 0;
        while at < self.lines.len() {
            let (item, next) = self.parse_item(at);
            items.push(item);
            at = next;
        }
        items
    }

    /// Parses the item that starts at a line, and returns the line at which the next one starts.
    fn parse_item(&self, at: usize) -> (UnitItem, usize) {
        let line = self.lines[at];
        if !self.markers[at] {
            let next = self.next_marker(at + 2);
            return (UnitItem::Unmarked(self.text_between(at, next)), next);
        }
        if line == "user:" {
            let close = self.closes[at + 3];
            return (UnitItem::User(self.lines[at + 2..close].join("\n")), close + 2);
        }
        let next = self.next_marker(at + 3);
        let text = self.text_between(at + 1, next);
        let item = if let Some(name) = line.strip_prefix(TOOL_CALL_MARKER) {
            UnitItem::ToolCall(name.to_owned(), text)
        } else if let Some(name) = line.strip_prefix(TOOL_RESULT_MARKER) {
            UnitItem::ToolResult(name.to_owned(), text)
        } else if line == "[Error]" {
            UnitItem::Error(text)
        } else {
            UnitItem::Assistant(text)
        };
        (item, next)
    }

    /// The lines from `from` up to the empty line before `next`.
    fn text_between(&self, from: usize, next: usize) -> String {
        let end = if next < self.lines.len() { next - 1 } else { next };
        self.lines.get(from..end).unwrap_or_default().join("\n")
    }

    /// The first marker at or after a line that follows an empty line.
    fn next_marker(&self, from: usize) -> usize {
        (from..self.lines.len())
            .find(|at| self.lines[at - 1].is_empty() && self.markers[*at])
            .unwrap_or(self.lines.len())
    }
}
