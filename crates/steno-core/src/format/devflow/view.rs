//! Renders a run for a terminal, as devflow's viewer does.
//!
//! Previews are truncated at characters; upstream truncates at bytes and may split a character.

use std::fmt::Write;

use super::encode::sorted;
use super::go_time::rounded;
use super::run::{Run, ToolCall, Turn};
use crate::json::{Object, Style};
use crate::timestamp::Timestamp;

/// Which of the two published layouts is rendered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// The layout that devflow prints: rules of `=` and `-`, plain numbers.
    #[default]
    Shipped,
    /// The layout of ADR-013: box-drawing rules and thousands separators.
    Adr013,
}

/// A run to render.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The run.
    pub run: &'a Run,
    /// The end of a run that has none, for its duration.
    pub now: Timestamp,
    /// The layout.
    pub look: Look,
}

impl View<'_> {
    /// Renders the header and all turns.
    pub fn full(&self) -> String {
        let mut out = self.header();
        for turn in &self.run.turns {
            out += &self.look.turn(turn);
        }
        out
    }

    /// Renders the header and the assistant's turns.
    pub fn assistant_only(&self) -> String {
        let mut out = self.header();
        let turns = self.run.turns.iter();
        for turn in turns.filter(|turn| turn.role == "assistant") {
            out += &self.look.turn(turn);
        }
        out
    }

    /// Renders the header and one line per turn.
    pub fn summary(&self) -> String {
        let mut out = self.header() + "\nTurn Summary:\n";
        for turn in &self.run.turns {
            let preview = preview(&turn.content, 100).replace('\n', " ");
            line(&mut out, format_args!("  [{}] {}: {preview}", turn.id, turn.role));
        }
        out
    }

    /// Renders the metadata.
    pub fn header(&self) -> String {
        let meta = &self.run.metadata;
        let rule = self.look.rule("=", "═");
        let mut out = rule.clone();
        line(&mut out, format_args!("Run: {}", self.run.run_id));
        line(&mut out, format_args!("Flow: {} | Status: {}", meta.flow_id, meta.status));
        line(
            &mut out,
            format_args!(
                "Started: {} | Duration: {}",
                started(meta.started_at),
                rounded(meta.duration(self.now))
            ),
        );
        line(
            &mut out,
            format_args!(
                "Tokens: {} in / {} out | Cost: ${:.2}",
                self.look.number(meta.total_tokens_in),
                self.look.number(meta.total_tokens_out),
                meta.total_cost
            ),
        );
        if !meta.error.is_empty() {
            line(&mut out, format_args!("Error: {}", meta.error));
        }
        out + &rule
    }
}

impl Look {
    /// Renders one turn with its tool calls.
    pub fn turn(self, turn: &Turn) -> String {
        let time = turn.timestamp.map_or_else(midnight, |at| at.clock());
        let mut out = format!("\n[{}] {} ({time})", turn.id, turn.role.to_uppercase());
        for (count, what) in [(turn.tokens_in, "in"), (turn.tokens_out, "out")] {
            if count > 0 {
                out += &match self {
                    Look::Shipped => format!(" [{count} tokens {what}]"),
                    Look::Adr013 => format!(" [{} tokens]", thousands(count)),
                };
            }
        }
        if turn.duration_ms > 0 {
            out += &format!(" [{}ms]", turn.duration_ms);
        }
        out.push('\n');
        out += &self.rule("-", "─");
        line(&mut out, &turn.content);
        for call in &turn.tool_calls {
            out += &self.tool_call(call);
        }
        out
    }

    /// Renders one tool call with its result.
    pub fn tool_call(self, call: &ToolCall) -> String {
        let mark = match self {
            Look::Shipped => "",
            Look::Adr013 => "📎 ",
        };
        let mut out = format!("\n  {mark}Tool: {}\n", call.name);
        if let Some(input) = &call.input {
            let json = input_json(input).replace('\n', "\n     ");
            line(&mut out, format_args!("     Input: {json}"));
        }
        if !call.output.is_empty() {
            let output = preview(&call.output, 200);
            line(&mut out, format_args!("     Output: {output}"));
        }
        if !call.error.is_empty() {
            line(&mut out, format_args!("     Error: {}", call.error));
        }
        out
    }

    fn rule(self, shipped: &str, adr_013: &str) -> String {
        match self {
            Look::Shipped => shipped.repeat(60) + "\n",
            Look::Adr013 => adr_013.repeat(60) + "\n",
        }
    }

    fn number(self, count: u64) -> String {
        match self {
            Look::Shipped => count.to_string(),
            Look::Adr013 => thousands(count),
        }
    }
}

/// Formats a number with a comma between groups of three digits: `523,400`.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Renders the arguments of a call as Go does, indented.
pub(super) fn input_json(input: &Object) -> String {
    Style::GO_INDENT.print(&sorted(input))
}

/// Truncates a text to `limit` bytes, with `...` at the end if it was longer.
pub(super) fn preview(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    head(text, limit).to_owned() + "..."
}

/// The longest prefix with whole characters in at most `limit` bytes.
pub(super) fn head(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Formats a time as `YYYY-MM-DD HH:MM:SS`; Go's zero time if there is none.
pub(super) fn started(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "0001-01-01 00:00:00".to_owned(), |at| at.date_and_clock())
}

fn midnight() -> String {
    "00:00:00".to_owned()
}

fn line(out: &mut String, text: impl std::fmt::Display) {
    writeln!(out, "{text}").expect("a String takes all text");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previews_never_cut_a_character() {
        assert_eq!(preview("aé", 3), "aé");
        assert_eq!(preview("aéb", 2), "a...");
        assert_eq!(preview(&"é".repeat(60), 100), "é".repeat(50) + "...");
        assert_eq!(preview(&"x".repeat(101), 100), "x".repeat(100) + "...");
    }

    #[test]
    fn the_other_look_has_boxes_and_thousands() {
        let mut run = Run::default();
        run.push(Turn::new("user", "Hi", 1_234_567));
        run.turns[0].tool_calls.push(ToolCall::answered("ls", None, "x"));
        let view =
            View { run: &run, now: "2025-01-15T10:30:00Z".parse().unwrap(), look: Look::Adr013 };
        let text = view.full();
        assert!(text.starts_with(&"═".repeat(60)));
        assert!(text.contains("Tokens: 1,234,567 in / 0 out"));
        assert!(text.contains("[1] USER (00:00:00) [1,234,567 tokens]\n────"));
        assert!(text.contains("\n  📎 Tool: ls\n     Output: x\n"));
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(0), "0");
    }
}
