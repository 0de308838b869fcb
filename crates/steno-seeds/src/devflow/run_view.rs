//! Renders a run for a terminal, as devflow's viewer does.
//!
//! Previews are truncated at characters; upstream truncates at bytes and may split a character.

use std::fmt::Write;

use super::encode::sort_keys;
use super::go_time::format_rounded;
use super::run::{DevflowRun, RunTurn, TurnToolCall};
use steno_model::json::{JsonStyle, Object};
use steno_model::timestamp::Timestamp;

/// Which of the two published layouts is rendered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunViewStyle {
    /// The layout that devflow prints: rules of `=` and `-`, plain numbers.
    #[default]
    Shipped,
    /// The layout of ADR-013: box-drawing rules and thousands separators.
    Adr013,
}

/// A run to render.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    /// The run.
    pub run: &'a DevflowRun,
    /// The end of a run that has none, for its duration.
    pub now: Timestamp,
    /// The layout.
    pub style: RunViewStyle,
}

impl RunView<'_> {
    /// Renders the header and all turns.
    pub fn render_full(&self) -> String {
        let mut out = self.render_header();
        for turn in &self.run.turns {
            out += &self.style.render_turn(turn);
        }
        out
    }

    /// Renders the header and the assistant's turns.
    pub fn render_assistant_only(&self) -> String {
        let mut out = self.render_header();
        let turns = self.run.turns.iter();
        for turn in turns.filter(|turn| turn.role == "assistant") {
            out += &self.style.render_turn(turn);
        }
        out
    }

    /// Renders the header and one line per turn.
    pub fn render_summary(&self) -> String {
        let mut out = self.render_header() + "\nTurn Summary:\n";
        for turn in &self.run.turns {
            let preview = preview_text(&turn.content, 100).replace('\n', " ");
            push_line(&mut out, format_args!("  [{}] {}: {preview}", turn.id, turn.role));
        }
        out
    }

    /// Renders the metadata.
    pub fn render_header(&self) -> String {
        let meta = &self.run.metadata;
        let rule = self.style.choose_rule("=", "═");
        let mut out = rule.clone();
        push_line(&mut out, format_args!("Run: {}", self.run.run_id));
        push_line(&mut out, format_args!("Flow: {} | Status: {}", meta.flow_id, meta.status));
        push_line(
            &mut out,
            format_args!(
                "Started: {} | Duration: {}",
                format_start(meta.started_at),
                format_rounded(meta.duration(self.now))
            ),
        );
        push_line(
            &mut out,
            format_args!(
                "Tokens: {} in / {} out | Cost: ${:.2}",
                self.style.format_number(meta.total_tokens_in),
                self.style.format_number(meta.total_tokens_out),
                meta.total_cost
            ),
        );
        if !meta.error.is_empty() {
            push_line(&mut out, format_args!("Error: {}", meta.error));
        }
        out + &rule
    }
}

impl RunViewStyle {
    /// Renders one turn with its tool calls.
    pub fn render_turn(self, turn: &RunTurn) -> String {
        let time = turn.timestamp.map_or_else(go_zero_time, |at| at.clock_text());
        let mut out = format!("\n[{}] {} ({time})", turn.id, turn.role.to_uppercase());
        for (count, what) in [(turn.tokens_in, "in"), (turn.tokens_out, "out")] {
            if count > 0 {
                out += &match self {
                    RunViewStyle::Shipped => format!(" [{count} tokens {what}]"),
                    RunViewStyle::Adr013 => format!(" [{} tokens]", format_thousands(count)),
                };
            }
        }
        if turn.duration_ms > 0 {
            out += &format!(" [{}ms]", turn.duration_ms);
        }
        out.push('\n');
        out += &self.choose_rule("-", "─");
        push_line(&mut out, &turn.content);
        for call in &turn.tool_calls {
            out += &self.render_tool_call(call);
        }
        out
    }

    /// Renders one tool call with its result.
    pub fn render_tool_call(self, call: &TurnToolCall) -> String {
        let mark = match self {
            RunViewStyle::Shipped => "",
            RunViewStyle::Adr013 => "📎 ",
        };
        let mut out = format!("\n  {mark}Tool: {}\n", call.name);
        if let Some(input) = &call.input {
            let json = format_input(input).replace('\n', "\n     ");
            push_line(&mut out, format_args!("     Input: {json}"));
        }
        if !call.output.is_empty() {
            let output = preview_text(&call.output, 200);
            push_line(&mut out, format_args!("     Output: {output}"));
        }
        if !call.error.is_empty() {
            push_line(&mut out, format_args!("     Error: {}", call.error));
        }
        out
    }

    fn choose_rule(self, shipped: &str, adr_013: &str) -> String {
        match self {
            RunViewStyle::Shipped => shipped.repeat(60) + "\n",
            RunViewStyle::Adr013 => adr_013.repeat(60) + "\n",
        }
    }

    fn format_number(self, count: u64) -> String {
        match self {
            RunViewStyle::Shipped => count.to_string(),
            RunViewStyle::Adr013 => format_thousands(count),
        }
    }
}

/// Formats a number with a comma between groups of three digits: `523,400`.
pub fn format_thousands(count: u64) -> String {
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
pub(super) fn format_input(input: &Object) -> String {
    JsonStyle::GO_INDENT.print(&sort_keys(input))
}

/// Truncates a text to `limit` bytes, with `...` at the end if it was longer.
pub(super) fn preview_text(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    byte_prefix(text, limit).to_owned() + "..."
}

/// The longest prefix with whole characters in at most `limit` bytes.
pub(super) fn byte_prefix(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Formats a time as `YYYY-MM-DD HH:MM:SS`; Go's zero time if there is none.
pub(super) fn format_start(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "0001-01-01 00:00:00".to_owned(), |at| at.date_and_clock())
}

fn go_zero_time() -> String {
    "00:00:00".to_owned()
}

fn push_line(out: &mut String, text: impl std::fmt::Display) {
    writeln!(out, "{text}").expect("a String takes all text");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previews_never_cut_a_character() {
        assert_eq!(preview_text("aé", 3), "aé");
        assert_eq!(preview_text("aéb", 2), "a...");
        assert_eq!(preview_text(&"é".repeat(60), 100), "é".repeat(50) + "...");
        assert_eq!(preview_text(&"x".repeat(101), 100), "x".repeat(100) + "...");
    }

    #[test]
    fn the_other_look_has_boxes_and_thousands() {
        let mut run = DevflowRun::default();
        run.push_turn(RunTurn::new("user", "Hi", 1_234_567));
        run.turns[0].tool_calls.push(TurnToolCall::with_output("ls", None, "x"));
        let view = RunView {
            run: &run,
            now: "2025-01-15T10:30:00Z".parse().unwrap(),
            style: RunViewStyle::Adr013,
        };
        let text = view.render_full();
        assert!(text.starts_with(&"═".repeat(60)));
        assert!(text.contains("Tokens: 1,234,567 in / 0 out"));
        assert!(text.contains("[1] USER (00:00:00) [1,234,567 tokens]\n────"));
        assert!(text.contains("\n  📎 Tool: ls\n     Output: x\n"));
        assert_eq!(format_thousands(999), "999");
        assert_eq!(format_thousands(0), "0");
    }
}
