//! Renders a run as Markdown.

use super::go_time::format_rounded;
use super::run::{DevflowRun, TurnToolCall};
use super::run_view::format_input;
use steno_model::timestamp::Timestamp;

/// Renders the whole run as Markdown. The duration of a run without an end is up to `now`.
pub fn render_markdown(run: &DevflowRun, now: Timestamp) -> String {
    let mut out = format!("# Transcript: {}\n\n## Metadata\n\n", run.run_id);
    out += "| Field | Value |\n|-------|-------|\n";
    for (field, value) in metadata_rows(run, now) {
        out += &format!("| {field} | {value} |\n");
    }
    out += "\n## Conversation\n\n";
    for turn in &run.turns {
        out += &format!("### {} (Turn {})\n\n", capitalize(&turn.role), turn.id);
        if turn.tokens_in > 0 {
            out += &format!("*{} tokens in*\n\n", turn.tokens_in);
        }
        if turn.tokens_out > 0 {
            out += &format!("*{} tokens out*\n\n", turn.tokens_out);
        }
        out += &format!("{}\n\n", turn.content);
        for call in &turn.tool_calls {
            out += &render_tool_call(call);
        }
    }
    out
}

fn metadata_rows(run: &DevflowRun, now: Timestamp) -> Vec<(&'static str, String)> {
    let meta = &run.metadata;
    let zero = || "0001-01-01T00:00:00Z".to_owned();
    let started = meta.started_at.map(|at| at.to_rfc3339_seconds());
    let mut rows = vec![
        ("Flow", meta.flow_id.clone()),
        ("Status", meta.status.clone()),
        ("Started", started.unwrap_or_else(zero)),
    ];
    if let Some(ended) = meta.ended_at {
        rows.push(("Ended", ended.to_rfc3339_seconds()));
    }
    rows.push(("Duration", format_rounded(meta.duration(now))));
    rows.push(("Tokens In", meta.total_tokens_in.to_string()));
    rows.push(("Tokens Out", meta.total_tokens_out.to_string()));
    rows.push(("Cost", format!("${:.2}", meta.total_cost)));
    if !meta.error.is_empty() {
        rows.push(("Error", meta.error.clone()));
    }
    rows
}

fn render_tool_call(call: &TurnToolCall) -> String {
    let mut out = format!("#### Tool Call: `{}`\n\n", call.name);
    if let Some(input) = &call.input {
        out += &format!("**Input:**\n```json\n{}\n```\n\n", format_input(input));
    }
    if !call.output.is_empty() {
        out += &format!("**Output:**\n```\n{}\n```\n\n", call.output);
    }
    if !call.error.is_empty() {
        out += &format!("**Error:** {}\n\n", call.error);
    }
    out
}

/// Converts the first letter to upper case.
fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_letter_need_not_be_ascii() {
        assert_eq!(capitalize("écran"), "Écran");
        assert_eq!(capitalize("tool_result"), "Tool_result");
        assert_eq!(capitalize(""), "");
    }
}
