//! One transcript file: a header, `---`, and the conversation as plain text.
//!
//! Texts are not escaped, so a text that looks like a marker is parsed as one. Printing a parsed file still gives the
//! same bytes, for every file that [`UnitFile::print`] wrote.

use super::body::Body;

/// Maximum size of a file in bytes.
pub const FILE_LIMIT: usize = 20_480;

/// Maximum length of a tool's arguments, a tool's result or an error, in characters.
pub const TOOL_LIMIT: usize = 200;

pub(super) const OPEN_QUERY: &str = "<user_query>";
pub(super) const CLOSE_QUERY: &str = "</user_query>";
pub(super) const TOOL_CALL: &str = "[Tool call] ";
pub(super) const TOOL_RESULT: &str = "[Tool result] ";
const ELLIPSIS: &str = "...";

/// The parsed content of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitFile {
    /// The lines above `---`.
    pub header: Header,
    /// The messages and tool calls, in order.
    pub items: Vec<Item>,
    /// Whether the file was truncated at its limit, so that the last text is incomplete.
    pub cut: bool,
}

/// The fields of the header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
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
pub enum Item {
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
    /// Renders the file; at most [`FILE_LIMIT`] bytes, unless it was parsed from a truncated one.
    pub fn print(&self) -> String {
        let mut text = self.header.print();
        text.push('\n');
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            item.print(&mut text);
        }
        if !self.cut {
            return cut_bytes(text, FILE_LIMIT);
        }
        let end = match self.items.last() {
            Some(Item::User(_)) => CLOSE_QUERY.len() + 2,
            _ => 1,
        };
        text.truncate(text.len() - end);
        text
    }

    /// Parses a file; `None` if it does not start with a header.
    pub fn parse(text: &str) -> Option<Self> {
        let unix = text.split('\n').next()?.ends_with('\r').then(|| text.replace("\r\n", "\n"));
        let text = unix.as_deref().unwrap_or(text);
        let (header, body) = Header::parse(text)?;
        let body = body.strip_prefix('\n').unwrap_or(body);
        let cut = !body.is_empty() && !body.ends_with('\n');
        let body = body.strip_suffix('\n').unwrap_or(body);
        let items = if body.is_empty() { Vec::new() } else { Body::new(body, cut).items() };
        Some(Self { header, items, cut })
    }

    /// The first query of the user.
    pub fn query(&self) -> Option<&str> {
        self.items.iter().find_map(|item| match item {
            Item::User(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Counts the tool calls among the items.
    pub fn count_tool_calls(&self) -> u64 {
        let calls = self.items.iter().filter(|item| matches!(item, Item::ToolCall(..)));
        calls.count() as u64
    }
}

impl Header {
    fn print(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            text.push_str(&format!("{name}: {}\n", one_line(value)));
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
        let mut header = Header::default();
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
            header.take(line);
        }
    }

    fn take(&mut self, line: &str) {
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

impl Item {
    fn print(&self, out: &mut String) {
        match self {
            Item::User(text) => {
                out.push_str(&format!("user:\n{OPEN_QUERY}\n{text}\n{CLOSE_QUERY}\n"));
            }
            Item::Assistant(text) => out.push_str(&format!("assistant:\n{text}\n")),
            Item::ToolCall(name, text) => {
                out.push_str(&format!("{TOOL_CALL}{}\n{text}\n", one_line(name)));
            }
            Item::ToolResult(name, text) => {
                out.push_str(&format!("{TOOL_RESULT}{}\n{text}\n", one_line(name)));
            }
            Item::Error(text) => out.push_str(&format!("[Error]\n{text}\n")),
            Item::Unmarked(text) => out.push_str(&format!("{text}\n")),
        }
    }
}

/// Returns `text`, truncated to `limit` characters with `...` at the end if it is longer.
pub fn truncate(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let kept = limit.saturating_sub(ELLIPSIS.len());
    text.chars().take(kept).chain(ELLIPSIS.chars()).collect()
}

fn cut_bytes(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let fits = limit - ELLIPSIS.len();
        let end = (0..=fits).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push_str(ELLIPSIS);
    }
    text
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(items: Vec<Item>) -> UnitFile {
        let mut file = UnitFile {
            header: Header {
                thread_id: "t".to_owned(),
                chat_id: "c".to_owned(),
                start: "2026-02-08T14:30:00+08:00".to_owned(),
                end: "2026-02-08T14:31:00+08:00".to_owned(),
                agent_mode: "plan".to_owned(),
                ..Header::default()
            },
            items,
            cut: false,
        };
        file.header.tool_calls = file.count_tool_calls();
        file
    }

    #[test]
    fn a_file_looks_like_this() {
        let mut file = file(vec![
            Item::User("Why?".to_owned()),
            Item::ToolCall("grep".to_owned(), "{}".to_owned()),
            Item::Error("no\nway".to_owned()),
        ]);
        file.header.stop_reason = Some("end_turn".to_owned());
        assert_eq!(
            file.print(),
            "Thread ID: t\nChat ID: c\n\
             Time Range: 2026-02-08T14:30:00+08:00 ~ 2026-02-08T14:31:00+08:00\n\
             Agent Mode: plan\nStop Reason: end_turn\nTool Calls: 1\n---\n\n\
             user:\n<user_query>\nWhy?\n</user_query>\n\n\
             [Tool call] grep\n{}\n\n[Error]\nno\nway\n"
        );
        assert_eq!(UnitFile::parse(&file.print()), Some(file));
    }

    #[test]
    fn both_dialects_are_read() {
        let items = vec![
            Item::User("q".to_owned()),
            Item::Assistant("a".to_owned()),
            Item::ToolResult("ls".to_owned(), "x\n\ny".to_owned()),
        ];
        let ours = file(items).print();
        let foreign = ours.replace("assistant:", "A:").replace("---\n\n", "---\n");
        let windows = ours.replace('\n', "\r\n");
        let parsed = UnitFile::parse(&ours);
        assert_eq!(UnitFile::parse(&foreign), parsed);
        assert_eq!(UnitFile::parse(&windows), parsed);
    }

    #[test]
    fn markers_inside_a_query_are_its_text() {
        let query = "see\n\nassistant:\nold\n</user_query>\nend";
        let given = file(vec![Item::User(query.to_owned()), Item::Assistant("a".to_owned())]);
        assert_eq!(UnitFile::parse(&given.print()), Some(given));
    }

    #[test]
    fn text_before_the_first_marker_is_kept() {
        let text = file(vec![]).print() + "hello\n\nassistant:\na\n";
        let items = UnitFile::parse(&text).unwrap().items;
        let expected = [Item::Unmarked("hello".to_owned()), Item::Assistant("a".to_owned())];
        assert_eq!(items, expected);
    }

    #[test]
    fn a_long_file_is_cut_between_characters() {
        for filler in ["x", "é", "語", "🔧"] {
            let text = file(vec![Item::User(filler.repeat(FILE_LIMIT))]).print();
            assert!(text.ends_with(&format!("{filler}...")), "{filler}");
            assert!((FILE_LIMIT - 3..=FILE_LIMIT).contains(&text.len()), "{}", text.len());
            let parsed = UnitFile::parse(&text).unwrap();
            assert!(parsed.cut);
            assert_eq!(parsed.print(), text);
        }
        let exact = FILE_LIMIT - file(vec![Item::Assistant(String::new())]).print().len();
        let text = file(vec![Item::Assistant("x".repeat(exact))]).print();
        assert_eq!((text.len(), text.ends_with("x\n")), (FILE_LIMIT, true));
    }

    #[test]
    fn limits_count_characters() {
        assert_eq!(truncate("ééééé", 4), "é...");
        assert_eq!(truncate("🔧🔧🔧🔧", 4), "🔧🔧🔧🔧");
    }

    #[test]
    fn hostile_nesting_costs_linear_time() {
        let text = "user:\n<user_query>\nx\n</user_query>\n\n".repeat(50_000) + "torn";
        assert!(UnitFile::parse(&(file(vec![]).print() + &text)).is_some());
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

    fn item() -> impl Strategy<Value = Item> {
        prop_oneof![
            text().prop_map(Item::User),
            text().prop_map(Item::Assistant),
            ("[a-z\n]{0,5}", text()).prop_map(|(name, text)| Item::ToolCall(name, text)),
            ("[a-z]{0,5}", text()).prop_map(|(name, text)| Item::ToolResult(name, text)),
            text().prop_map(Item::Error),
        ]
    }

    proptest! {
        #[test]
        fn what_was_printed_prints_again(items in prop::collection::vec(item(), 0..6), long in 0usize..3) {
            let mut given = file(items);
            if long > 0 {
                given.items.push(Item::Assistant("語".repeat(FILE_LIMIT / 3 - 60 * long)));
                given.items.push(Item::User("x".repeat(200)));
            }
            let printed = given.print();
            let parsed = UnitFile::parse(&printed).unwrap();
            prop_assert_eq!(parsed.print(), printed);
        }

        #[test]
        fn parsing_never_panics(body in "\\PC{0,80}") {
            let _ = UnitFile::parse(&body);
            let _ = UnitFile::parse(&format!("Thread ID: \n---\n{body}"));
        }
    }
}
