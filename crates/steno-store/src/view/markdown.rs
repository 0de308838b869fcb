//! Renders a transcript as Markdown.

use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE};
use steno_model::json::JsonStyle;
use steno_model::session::{Session, Transcript};
use steno_vault::notes::Note;

/// Renders the whole transcript.
pub fn render_markdown(transcript: &Transcript) -> String {
    let session = &transcript.session;
    let mut text = format!("# {}\n\n", session.title.as_deref().unwrap_or(session.id.as_str()));
    text.push_str(&render_facts(session));
    let Transcript { entries, notes, .. } = transcript;
    Note::for_session(notes, entries)
        .into_iter()
        .for_each(|note| text.push_str(&render_note(note)));
    for entry in entries {
        text.push_str(&format!("\n## {}\n\n{}", entry_caption(entry), render_body(entry)));
        Note::for_entry(notes, entry).for_each(|note| text.push_str(&render_note(note)));
    }
    text
}

/// A note, set apart from the entries.
fn render_note(note: &Note) -> String {
    format!("\n> [!NOTE]\n{}", block_quote(&note.text))
}

fn render_facts(session: &Session) -> String {
    let mut rows = vec![("Session", session.id.to_string()), ("Agent", session.agent.clone())];
    let mut row = |name, value: Option<String>| rows.extend(value.map(|value| (name, value)));
    row("Project", session.project.clone());
    row("Branch", session.branch.clone());
    row("Thread", session.thread.clone());
    row("Started", session.started.map(|at| at.to_string()));
    row("Ended", session.ended.map(|at| at.to_string()));
    row("Status", Some(session.status.to_string()));
    row("Stop reason", session.stop_reason.clone());
    row("Models", (!session.models.is_empty()).then(|| session.models.join(", ")));
    let usage = &session.totals.usage;
    row(
        "Tokens",
        (!usage.is_empty()).then(|| format!("{} in, {} out", usage.prompt_tokens(), usage.output)),
    );
    row("Cost", session.totals.cost.map(|cost| format!("${cost:.2}")));
    let mut text = "| Field | Value |\n| --- | --- |\n".to_owned();
    for (name, value) in rows {
        text.push_str(&format!("| {name} | {} |\n", value.replace('|', "\\|").replace('\n', " ")));
    }
    text
}

fn entry_caption(entry: &Entry) -> String {
    let mut words = vec![capitalize_first(&entry.heading())];
    if entry.source != PRIMARY_SOURCE {
        words.push(format!("[{}]", entry.source));
    }
    words.extend(entry.created_at.map(|at| format!("({at})")));
    words.join(" ")
}

fn render_body(entry: &Entry) -> String {
    match (entry.kind, &entry.tool_input) {
        (EntryKind::ToolCall, Some(input)) => code_block(&JsonStyle::PRETTY.print(input), "json"),
        (EntryKind::ToolCall | EntryKind::ToolResult | EntryKind::Other, _) => {
            code_block(&entry.content, "")
        }
        (EntryKind::Thinking, _) => block_quote(&entry.content),
        _ => format!("{}\n", entry.content.trim_end_matches('\n')),
    }
}

/// A code block with a fence longer than any in the text.
fn code_block(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

fn block_quote(text: &str) -> String {
    text.trim_end_matches('\n')
        .split('\n')
        .map(|line| format!("> {line}").trim_end().to_owned() + "\n")
        .collect()
}

/// Capitalizes the first letter.
pub fn capitalize_first(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_hold_any_text() {
        assert_eq!(code_block("a\n````\nb", "json"), "`````json\na\n````\nb\n`````\n");
        assert_eq!(code_block("a", ""), "```\na\n```\n");
    }
}
