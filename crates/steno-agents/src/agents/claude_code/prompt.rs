//! Distinguishes prompts that a person typed from other text with the role `user`.

use super::lenient_value::LenientValue;
use super::record::{ClaudeAttachment, ClaudeBlock, ClaudePromptOrigin, ClaudeRecord};

/// Prefixes of texts that no person wrote, and of commands to Claude Code.
const NON_PROMPT_PREFIXES: [&str; 13] = [
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
const ADDED_TAGS: [&str; 3] = ["system-reminder", "ide_opened_file", "ide_selection"];

/// Whether a person typed the message of a `user` record.
pub(super) fn is_typed(
    record: &ClaudeRecord<'_>,
    content: &LenientValue<'_, ClaudeBlock<'_>>,
) -> bool {
    let is_marked = [&record.is_meta, &record.is_compact_summary].iter().any(|flag| flag.is_true());
    let is_from_elsewhere = !record.origin.is_absent() && !is_human(&record.origin);
    let is_from_system = record.prompt_source.text() == Some("system");
    !is_marked && !is_from_elsewhere && !is_from_system && has_prompt_text(content)
}

/// Whether a person typed a prompt that Claude Code queued while the model worked. Versions before 2.1.173 write no
/// origin.
pub(super) fn is_queued_prompt(attachment: &ClaudeAttachment<'_>) -> bool {
    attachment.command_mode.text() == Some("prompt")
        && (attachment.origin.is_absent() || is_human(&attachment.origin))
        && !attachment.is_meta.is_true()
        && has_prompt_text(&attachment.prompt)
}

/// Whether a text block is added context, not part of the prompt.
pub(super) fn is_added_context(text: &str) -> bool {
    let text = text.trim();
    ADDED_TAGS
        .iter()
        .any(|name| text.starts_with(&format!("<{name}>")) && text.ends_with(&format!("</{name}>")))
}

fn is_human(origin: &LenientValue<'_, ClaudePromptOrigin<'_>>) -> bool {
    origin.object().and_then(|origin| origin.kind.text()) == Some("human")
}

fn has_prompt_text(content: &LenientValue<'_, ClaudeBlock<'_>>) -> bool {
    match content {
        LenientValue::Text(text) => is_prompt_text(text),
        LenientValue::List(blocks) => {
            let kinds = || blocks.iter().filter_map(|block| Some(block.object()?.kind()));
            if kinds().any(|kind| kind == "tool_result") {
                return false;
            }
            let texts = blocks.iter().filter_map(block_text);
            let first =
                texts.filter(|text| !is_added_context(text)).find(|text| !text.trim().is_empty());
            match first {
                Some(text) => is_prompt_text(text),
                None => kinds().any(|kind| matches!(kind, "image" | "document")),
            }
        }
        _ => false,
    }
}

/// The text of a text block.
pub(super) fn block_text<'b>(block: &'b LenientValue<'_, ClaudeBlock<'_>>) -> Option<&'b str> {
    block.object().filter(|block| block.kind() == "text")?.text.text()
}

fn is_prompt_text(text: &str) -> bool {
    let text = text.trim();
    let is_command = text.starts_with("<command-") && text.contains("<command-name>");
    !text.is_empty()
        && !is_added_context(text)
        && !is_command
        && !NON_PROMPT_PREFIXES.iter().any(|start| text.starts_with(start))
}
