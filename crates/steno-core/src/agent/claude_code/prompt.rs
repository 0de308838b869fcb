//! Distinguishes prompts that a person typed from other text with the role `user`.

use super::loose::Loose;
use super::record::{Attachment, Block, Origin, Record};

/// Prefixes of texts that no person wrote, and of commands to Claude Code.
const NOT_PROMPTS: [&str; 13] = [
    "<local-command-stdout",
    "<local-command-stderr",
    "<local-command-caveat",
    "Caveat: The messages below",
    "<bash-stdout",
    "<bash-stderr",
    "<bash-input",
    "<task-notification",
    "<teammate-message",
    "<tick>",
    "<goal>",
    "[Request interrupted by user",
    "<user-memory-input",
];

/// Tags around context that an editor or Claude Code adds to a prompt.
const ADDED: [&str; 3] = ["system-reminder", "ide_opened_file", "ide_selection"];

/// Whether a person typed the message of a `user` record.
pub(super) fn is_typed(record: &Record<'_>, content: &Loose<'_, Block<'_>>) -> bool {
    let is_marked = [&record.is_meta, &record.is_compact_summary].iter().any(|flag| flag.is_true());
    let is_from_elsewhere = !record.origin.is_absent() && !is_human(&record.origin);
    let is_from_system = record.prompt_source.text() == Some("system");
    !is_marked && !is_from_elsewhere && !is_from_system && says_something(content)
}

/// Whether a person typed a prompt that Claude Code queued while the model worked. Versions before 2.1.173 write no
/// origin.
pub(super) fn is_queued(attachment: &Attachment<'_>) -> bool {
    attachment.command_mode.text() == Some("prompt")
        && (attachment.origin.is_absent() || is_human(&attachment.origin))
        && !attachment.is_meta.is_true()
        && says_something(&attachment.prompt)
}

/// Whether a text block is added context, not part of the prompt.
pub(super) fn is_added(text: &str) -> bool {
    let text = text.trim();
    ADDED
        .iter()
        .any(|name| text.starts_with(&format!("<{name}>")) && text.ends_with(&format!("</{name}>")))
}

fn is_human(origin: &Loose<'_, Origin<'_>>) -> bool {
    origin.object().and_then(|origin| origin.kind.text()) == Some("human")
}

fn says_something(content: &Loose<'_, Block<'_>>) -> bool {
    match content {
        Loose::Text(text) => is_prompt(text),
        Loose::List(blocks) => {
            let kinds = || blocks.iter().filter_map(|block| Some(block.object()?.kind()));
            if kinds().any(|kind| kind == "tool_result") {
                return false;
            }
            let texts = blocks.iter().filter_map(text_of);
            let first = texts.filter(|text| !is_added(text)).find(|text| !text.trim().is_empty());
            match first {
                Some(text) => is_prompt(text),
                None => kinds().any(|kind| matches!(kind, "image" | "document")),
            }
        }
        _ => false,
    }
}

/// The text of a text block.
pub(super) fn text_of<'b>(block: &'b Loose<'_, Block<'_>>) -> Option<&'b str> {
    block.object().filter(|block| block.kind() == "text")?.text.text()
}

fn is_prompt(text: &str) -> bool {
    let text = text.trim();
    let is_command = text.starts_with("<command-") && text.contains("<command-name>");
    !text.is_empty()
        && !is_added(text)
        && !is_command
        && !NOT_PROMPTS.iter().any(|start| text.starts_with(start))
}
