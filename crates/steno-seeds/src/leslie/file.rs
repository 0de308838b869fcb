//! One transcript file: a header, `---`, and the conversation as plain text.
//!
//! Texts are not escaped, so a text that looks like a marker is parsed as one. Printing a parsed file still gives the
//! same bytes, for every file that [`UnitFile::to_text`] wrote.

use super::body::UnitBody;

/// Maximum size of a file in bytes.
pub const MAX_FILE_BYTES: usize = 20_480;

/// Maximum length of a tool's arguments, a tool's result or an error, in characters.
pub const MAX_TOOL_CHARS: usize = 200;

pub(super) const QUERY_OPEN_TAG: &str = "<user_query>";
pub(super) const QUERY_CLOSE_TAG: &str = "</user_query>";
pub(super) const TOOL_CALL_MARKER: &str = "[Tool call] ";
pub(super) const TOOL_RESULT_MARKER: &str = "[Tool result] ";
const ELLIPSIS: &str = "...";

/// The parsed content of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitFile {
    /// The lines above `---`.
    pub header: UnitHeader,
    /// The messages and tool calls, in order.
    pub items: Vec<UnitItem>,
    /// Whether the file was truncated at its limit, so that the last text is incomplete.
    pub is_truncated: bool,
}

/// The fields of the header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitHeader {
    /// The thread's id.
    pub thread_id: String,
    /// The conversation's id; several files share one.
    pub chat_id: String,
    /// When the unit started, as written in the file.
    pub start: String,
    /// When the unit ended.
    pub end: String,
    /// `agent`, `plan`, `duet` or `review`.
    pub agent_mode: String,
    /// Why the model stopped; absent when unknown.
    pub stop_reason: Option<String>,
    /// Number of tool calls in the unit.
    pub tool_calls: u64,
    /// Header lines with other names, verbatim.
    pub other: Vec<String>,
}

/// One message, tool call, tool result or error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitItem {
    /// The user's query.
    User(String),
    /// The agent's reply.
    Assistant(String),
    /// A tool's name and arguments.
    ToolCall(String, String),
    /// A tool's name and result.
    ToolResult(String, String),
    /// An error message.
    Error(String),
    /// Text before the first marker.
    Unmarked(String),
}

impl UnitFile {
    /// Renders the file; at most [`MAX_FILE_BYTES`] bytes, unless it was parsed from a truncated one.
    pub fn to_text(&self) -> String {
        let mut text = self.header.to_text();
        text.push('\n');
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            item.write_to(&mut text);
        }
        if !self.is_truncated {
            return truncate_bytes(text, MAX_FILE_BYTES);
        }
        let end = match self.items.last() {
            Some(UnitItem::User(_)) => QUERY_CLOSE_TAG.len() + 2,
            _ => 1,
        };
        text.truncate(text.len() - end);
        text
    }

    /// Parses a file; `None` if it does not start with a header.
    pub fn parse(text: &str) -> Option<Self> {
        let unix = text.split('\n').next()?.ends_with('\r').then(|| text.replace("\r\n", "\n"));
        let text = unix.as_deref().unwrap_or(text);
        let (header, body) = UnitHeader::parse(text)?;
        let body = body.strip_prefix('\n').unwrap_or(body);
        let cut = !body.is_empty() && !body.ends_with('\n');
        let body = body.strip_suffix('\n').unwrap_or(body);
        let items =
            if body.is_empty() { Vec::new() } else { UnitBody::new(body, cut).parse_items() };
        Some(Self { header, items, is_truncated: cut })
    }

    /// The first query of the user.
    pub fn first_query(&self) -> Option<&str> {
        self.items.iter().find_map(|item| match item {
            UnitItem::User(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Counts the tool calls among the items.
    pub fn count_tool_calls(&self) -> u64 {
        let calls = self.items.iter().filter(|item| matches!(item, UnitItem::ToolCall(..)));
        calls.count() as u64
    }
}

impl UnitHeader {
    fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            text.push_str(&format!("{name}: {}\n", to_one_line(value)));
        };
        line("Thread ID", &self.thread_id);
        line("Chat ID", &self.chat_id);
        line("Time Range", &format!("{} ~ {}", self.start, self.end));
        line("Agent Mode", &self.agent_mode);
        if let Some(reason) = self.stop_reason.as_ref().filter(|reason| !reason.is_empty()) {
            line("Stop Reason", reason);
        }
        line("Tool Calls", &self.tool_calls.to_string());
        for other in &self.other {
            text.push_str(other);
            text.push('\n');
        }
        text.push_str("---\n");
        text
    }

    fn parse(text: &str) -> Option<(Self, &str)> {
        let mut header = UnitHeader::default();
        if !text.starts_with("Thread ID:") {
            return None;
        }
        let mut rest = text;
        loop {
            let (line, after) = rest.split_once('\n')?;
            rest = after;
            if line == "---" {
                return Some((header, rest));
            }
            header.parse_line(line);
        }
    }

    fn parse_line(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "Thread ID" => self.thread_id = value.to_owned(),
            "Chat ID" => self.chat_id = value.to_owned(),
            "Time Range" => {
                let (start, end) = value.split_once(" ~ ").unwrap_or((value, ""));
                (self.start, self.end) = (start.to_owned(), end.to_owned());
            }
            "Agent Mode" => self.agent_mode = value.to_owned(),
            "Stop Reason" => {
                self.stop_reason = Some(value.to_owned()).filter(|reason| !reason.is_empty());
            }
            "Tool Calls" => self.tool_calls = value.trim().parse().unwrap_or(0),
            _ => self.other.push(line.to_owned()),
        }
    }
}

impl UnitItem {
    fn write_to(&self, out: &mut String) {
        match self {
            UnitItem::User(text) => {
                out.push_str(&format!("user:\n{QUERY_OPEN_TAG}\n{text}\n{QUERY_CLOSE_TAG}\n"));
            }
            UnitItem::Assistant(text) => out.push_str(&format!("assistant:\n{text}\n")),
            UnitItem::ToolCall(name, text) => {
                out.push_str(&format!("{TOOL_CALL_MARKER}{}\n{text}\n", to_one_line(name)));
            }
            UnitItem::ToolResult(name, text) => {
                out.push_str(&format!("{TOOL_RESULT_MARKER}{}\n{text}\n", to_one_line(name)));
            }
            UnitItem::Error(text) => out.push_str(&format!("[Error]\n{text}\n")),
            UnitItem::Unmarked(text) => out.push_str(&format!("{text}\n")),
        }
    }
}

/// Returns `text`, truncated to `limit` characters with `...` at the end if it is longer.
pub fn truncate_chars(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let kept = limit.saturating_sub(ELLIPSIS.len());
    text.chars().take(kept).chain(ELLIPSIS.chars()).collect()
}

fn truncate_bytes(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let fits = limit - ELLIPSIS.len();
        let end = (0..=fits).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push_str(ELLIPSIS);
    }
    text
}

fn to_one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(items: Vec<UnitItem>) -> UnitFile {
        let mut file = UnitFile {
            header: UnitHeader {
                thread_id: "t".to_owned(),
                chat_id: "c".to_owned(),
                start: "2026-02-08T14:30:00+08:00".to_owned(),
                end: "2026-02-08T14:31:00+08:00".to_owned(),
                agent_mode: "plan".to_owned(),
                ..UnitHeader::default()
            },
            items,
            is_truncated: false,
        };
        file.header.tool_calls = file.count_tool_calls();
        file
    }

    #[test]
    fn a_file_looks_like_this() {
        let mut file = file(vec![
            UnitItem::User("Why?".to_owned()),
            UnitItem::ToolCall("grep".to_owned(), "{}".to_owned()),
            UnitItem::Error("no\nway".to_owned()),
        ]);
        file.header.stop_reason = Some("end_turn".to_owned());
        assert_eq!(
            file.to_text(),
            "Thread ID: t\nChat ID: c\n\
             Time Range: 2026-02-08T14:30:00+08:00 ~ 2026-02-08T14:31:00+08:00\n\
             Agent Mode: plan\nStop Reason: end_turn\nTool Calls: 1\n---\n\n\
             user:\n<user_query>\nWhy?\n</user_query>\n\n\
             [Tool call] grep\n{}\n\n[Error]\nno\nway\n"
        );
        assert_eq!(UnitFile::parse(&file.to_text()), Some(file));
    }

    #[test]
    fn both_dialects_are_read() {
        let items = vec![
            UnitItem::User("q".to_owned()),
            UnitItem::Assistant("a".to_owned()),
            UnitItem::ToolResult("ls".to_owned(), "x\n\ny".to_owned()),
        ];
        let ours = file(items).to_text();
        let foreign = ours.replace("assistant:", "A:").replace("---\n\n", "---\n");
        let windows = ours.replace('\n', "\r\n");
        let parsed = UnitFile::parse(&ours);
        assert_eq!(UnitFile::parse(&foreign), parsed);
        assert_eq!(UnitFile::parse(&windows), parsed);
    }

    #[test]
    fn markers_inside_a_query_are_its_text() {
        let query = "see\n\nassistant:\nold\n</user_query>\nend";
        let given =
            file(vec![UnitItem::User(query.to_owned()), UnitItem::Assistant("a".to_owned())]);
        assert_eq!(UnitFile::parse(&given.to_text()), Some(given));
    }

    #[test]
    fn text_before_the_first_marker_is_kept() {
        let text = file(vec![]).to_text() + "hello\n\nassistant:\na\n";
        let items = UnitFile::parse(&text).unwrap().items;
        let expected =
            [UnitItem::Unmarked("hello".to_owned()), UnitItem::Assistant("a".to_owned())];
        assert_eq!(items, expected);
    }

    #[test]
    fn a_long_file_is_cut_between_characters() {
        for filler in ["x", "é", "語", "🔧"] {
            let text = file(vec![UnitItem::User(filler.repeat(MAX_FILE_BYTES))]).to_text();
            assert!(text.ends_with(&format!("{filler}...")), "{filler}");
            assert!((MAX_FILE_BYTES - 3..=MAX_FILE_BYTES).contains(&text.len()), "{}", text.len());
            let parsed = UnitFile::parse(&text).unwrap();
            assert!(parsed.is_truncated);
            assert_eq!(parsed.to_text(), text);
        }
        let exact = MAX_FILE_BYTES - file(vec![UnitItem::Assistant(String::new())]).to_text().len();
        let text = file(vec![UnitItem::Assistant("x".repeat(exact))]).to_text();
        assert_eq!((text.len(), text.ends_with("x\n")), (MAX_FILE_BYTES, true));
    }

    #[test]
    fn limits_count_characters() {
        assert_eq!(truncate_chars("ééééé", 4), "é...");
        assert_eq!(truncate_chars("🔧🔧🔧🔧", 4), "🔧🔧🔧🔧");
    }

    #[test]
    fn hostile_nesting_costs_linear_time() {
        let text = "user:\n<user_query>\nx\n</user_query>\n\n".repeat(50_000) + "torn";
        assert!(UnitFile::parse(&(file(vec![]).to_text() + &text)).is_some());
    }

    fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("\n".to_owned()),
            Just("\n\nassistant:\n".to_owned()),
            Just("\nuser:\n<user_query>\n".to_owned()),
            Just("\n</user_query>\n".to_owned()),
            Just("\n[Tool call] x\n".to_owned()),
            Just("[Error]\n".to_owned()),
            "[a-zé]{0,4}",
        ];
        prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    fn item() -> impl Strategy<Value = UnitItem> {
        prop_oneof![
            text().prop_map(UnitItem::User),
            text().prop_map(UnitItem::Assistant),
            ("[a-z\n]{0,5}", text()).prop_map(|(name, text)| UnitItem::ToolCall(name, text)),
            ("[a-z]{0,5}", text()).prop_map(|(name, text)| UnitItem::ToolResult(name, text)),
            text().prop_map(UnitItem::Error),
        ]
    }

    proptest! {
        #[test]
        fn a_printed_file_prints_alike(items in prop::collection::vec(item(), 0..6), long in 0usize..3) {
            let mut given = file(items);
            if long > 0 {
                given.items.push(UnitItem::Assistant("語".repeat(MAX_FILE_BYTES / 3 - 60 * long)));
                given.items.push(UnitItem::User("x".repeat(200)));
            }
            let printed = given.to_text();
            let parsed = UnitFile::parse(&printed).unwrap();
            prop_assert_eq!(parsed.to_text(), printed);
        }

        #[test]
        fn parsing_never_panics(body in "\\PC{0,80}") {
            let _ = UnitFile::parse(&body);
            let _ = UnitFile::parse(&format!("Thread ID: \n---\n{body}"));
        }
    }
}
