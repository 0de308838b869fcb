//! Decodes the content blocks of messages into entries. Ids, times and sources are filled in by the record decoder.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::lenient_value::LenientValue;
use super::prompt::{block_text, is_added_context};
use super::record::{ClaudeBlock, ClaudeMedia, ClaudeToolUseResult};
use crate::decoding::shared_texts::SharedTexts;
use crate::decoding::{entries, json_repair};
use steno_model::entry::{Entry, EntryKind, Role};

/// The tool calls seen so far.
#[derive(Debug, Default)]
pub(super) struct ClaudeToolCalls {
    /// Tool names by call id.
    names: SharedTexts,
    /// Whether the inputs of calls are left out.
    pub(super) is_input_omitted: bool,
}

/// Decodes an assistant message: one entry per block.
pub(super) fn decode_assistant_blocks(
    content: LenientValue<'_, ClaudeBlock<'_>>,
    tools: &mut ClaudeToolCalls,
) -> Vec<Entry> {
    match content {
        LenientValue::Text(text) => vec![text_entry(text)],
        LenientValue::List(blocks) => {
            blocks.into_iter().map(|block| decode_assistant_block(block, tools)).collect()
        }
        _ => Vec::new(),
    }
}

fn decode_assistant_block(
    block: LenientValue<'_, ClaudeBlock<'_>>,
    tools: &mut ClaudeToolCalls,
) -> Entry {
    let mut block = match block {
        LenientValue::Text(text) => return text_entry(text),
        LenientValue::Object(block) => *block,
        _ => return Entry::new(Role::Assistant, EntryKind::Other, ""),
    };
    match block.kind() {
        "text" => text_entry(block.text.into_text().unwrap_or_default()),
        "thinking" => thinking_entry(block.thinking.into_text().unwrap_or_default()),
        "redacted_thinking" => thinking_entry(""),
        "tool_use" => {
            if let (Some(id), Some(name)) = (block.id.text(), block.name.text()) {
                tools.names.set(id, name);
            }
            block.input.take_if(|_| tools.is_input_omitted);
            tool_call_entry(block, EntryKind::ToolCall)
        }
        "server_tool_use" => tool_call_entry(block, EntryKind::Other),
        _ => Entry::new(Role::Assistant, EntryKind::Other, describe_block(block)),
    }
}

fn text_entry(text: impl Into<String>) -> Entry {
    Entry::new(Role::Assistant, EntryKind::Text, text)
}

fn thinking_entry(text: impl Into<String>) -> Entry {
    Entry::new(Role::Assistant, EntryKind::Thinking, text)
}

fn tool_call_entry(block: ClaudeBlock<'_>, kind: EntryKind) -> Entry {
    let mut entry = Entry::new(Role::Assistant, kind, "");
    entry.tool_name = block.name.into_text();
    entry.tool_call_id = block.id.into_text();
    match block.input.map(|input| (input.0, json_repair::parse_lenient(input.0.as_bytes()))) {
        Some((_, Ok(input))) => entry.tool_input = Some(input),
        Some((malformed, Err(_))) => entry.content = malformed.to_owned(),
        None => {}
    }
    entry
}

/// Decodes a user message: one entry per block. Text, images and documents become entries of `kind`.
pub(super) fn decode_user_blocks(
    content: LenientValue<'_, ClaudeBlock<'_>>,
    kind: EntryKind,
    tools: &ClaudeToolCalls,
) -> Vec<Entry> {
    match content {
        LenientValue::Text(text) => vec![Entry::new(Role::User, kind, text)],
        LenientValue::List(blocks) => {
            blocks.into_iter().map(|block| decode_user_block(block, kind, tools)).collect()
        }
        _ => Vec::new(),
    }
}

fn decode_user_block(
    block: LenientValue<'_, ClaudeBlock<'_>>,
    kind: EntryKind,
    tools: &ClaudeToolCalls,
) -> Entry {
    let is_text = block_text(&block).is_some();
    let block = match block {
        LenientValue::Object(block) => *block,
        other => return Entry::new(Role::User, EntryKind::Notice, flatten_content(other)),
    };
    match block.kind() {
        "text" if is_text => {
            let text = block.text.into_text().unwrap_or_default();
            let kind = if is_added_context(&text) { EntryKind::Notice } else { kind };
            Entry::new(Role::User, kind, text)
        }
        "tool_result" => tool_result_entry(block, tools),
        "image" | "document" => Entry::new(Role::User, kind, describe_block(block)),
        _ => Entry::new(Role::User, EntryKind::Other, describe_block(block)),
    }
}

fn tool_result_entry(block: ClaudeBlock<'_>, tools: &ClaudeToolCalls) -> Entry {
    let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, flatten_content(block.content));
    entry.tool_name =
        block.tool_use_id.text().and_then(|id| tools.names.get(id)).map(str::to_owned);
    entry.tool_call_id = block.tool_use_id.into_text();
    if block.is_error.is_true() {
        entry.metadata = Some(entries::failure_metadata());
    }
    entry
}

/// Adds to a tool result the id of the subagent that produced it, and the path of the full output if the model
/// saw only a part.
pub(super) fn add_result_details(entry: &mut Entry, details: &ClaudeToolUseResult<'_>) {
    let details_by_name = [
        ("agentId", details.agent_id.text()),
        ("persistedOutputPath", details.persisted_output_path.text()),
    ];
    for (name, value) in details_by_name {
        if let Some(value) = value {
            entry.metadata.get_or_insert_default().insert(name.to_owned(), value.into());
        }
    }
}

/// The content as text, with a newline between blocks.
pub(super) fn flatten_content(content: LenientValue<'_, ClaudeBlock<'_>>) -> String {
    match content {
        LenientValue::Text(text) => text.into_owned(),
        LenientValue::List(mut blocks) if blocks.len() == 1 => flatten_content(blocks.remove(0)),
        LenientValue::List(blocks) => {
            blocks.into_iter().map(flatten_content).collect::<Vec<_>>().join("\n")
        }
        LenientValue::Object(block) => describe_block(*block),
        LenientValue::Absent | LenientValue::Flag(_) => String::new(),
    }
}

fn describe_block(block: ClaudeBlock<'_>) -> String {
    match block.kind() {
        "tool_reference" => format!("[tool {}]", block.tool_name.text().unwrap_or_default()),
        kind => match block.source.object() {
            Some(media) => describe_media(kind, media),
            None if !block.content.is_absent() => flatten_content(block.content),
            None => block.text.into_text().unwrap_or_default(),
        },
    }
}

/// Describes binary data by media type, size and hash, without the data.
fn describe_media(kind: &str, media: &ClaudeMedia<'_>) -> String {
    let name = media.media_type.text().unwrap_or(kind);
    let Some(data) = media.data.text() else {
        return format!("[{}]", media.url.text().unwrap_or(name));
    };
    match STANDARD.decode(data) {
        Ok(bytes) => {
            format!("[{name}, {} bytes, blake3 {}]", bytes.len(), blake3::hash(&bytes).to_hex())
        }
        Err(_) if name.starts_with("text/") => data.to_owned(),
        Err(_) => format!("[{name}]"),
    }
}
