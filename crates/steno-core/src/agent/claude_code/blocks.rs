//! Decodes the content blocks of messages into entries. Ids, times and sources are filled in by the record decoder.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::loose::Loose;
use super::prompt::{is_added, text_of};
use super::record::{Block, Media, ToolUseResult};
use crate::agent::texts::Texts;
use crate::agent::{entries, repair};
use crate::entry::{Entry, Kind, Role};

/// The tool calls seen so far.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Tool names by call id.
    names: Texts,
    /// Whether the inputs of calls are left out.
    pub(super) without_input: bool,
}

/// Decodes an assistant message: one entry per block.
pub(super) fn answer(content: Loose<'_, Block<'_>>, tools: &mut Tools) -> Vec<Entry> {
    match content {
        Loose::Text(text) => vec![said(text)],
        Loose::List(blocks) => blocks.into_iter().map(|block| answer_block(block, tools)).collect(),
        _ => Vec::new(),
    }
}

fn answer_block(block: Loose<'_, Block<'_>>, tools: &mut Tools) -> Entry {
    let mut block = match block {
        Loose::Text(text) => return said(text),
        Loose::Object(block) => *block,
        _ => return Entry::new(Role::Assistant, Kind::Other, ""),
    };
    match block.kind() {
        "text" => said(block.text.into_text().unwrap_or_default()),
        "thinking" => thought(block.thinking.into_text().unwrap_or_default()),
        "redacted_thinking" => thought(""),
        "tool_use" => {
            if let (Some(id), Some(name)) = (block.id.text(), block.name.text()) {
                tools.names.set(id, name);
            }
            block.input.take_if(|_| tools.without_input);
            call(block, Kind::ToolCall)
        }
        "server_tool_use" => call(block, Kind::Other),
        _ => Entry::new(Role::Assistant, Kind::Other, shown(block)),
    }
}

fn said(text: impl Into<String>) -> Entry {
    Entry::new(Role::Assistant, Kind::Text, text)
}

fn thought(text: impl Into<String>) -> Entry {
    Entry::new(Role::Assistant, Kind::Thinking, text)
}

fn call(block: Block<'_>, kind: Kind) -> Entry {
    let mut entry = Entry::new(Role::Assistant, kind, "");
    entry.tool_name = block.name.into_text();
    entry.tool_call_id = block.id.into_text();
    match block.input.map(|input| (input.0, repair::parse(input.0.as_bytes()))) {
        Some((_, Ok(input))) => entry.tool_input = Some(input),
        Some((malformed, Err(_))) => entry.content = malformed.to_owned(),
        None => {}
    }
    entry
}

/// Decodes a user message: one entry per block. Text, images and documents become entries of `kind`.
pub(super) fn asked(content: Loose<'_, Block<'_>>, kind: Kind, tools: &Tools) -> Vec<Entry> {
    match content {
        Loose::Text(text) => vec![Entry::new(Role::User, kind, text)],
        Loose::List(blocks) => {
            blocks.into_iter().map(|block| asked_block(block, kind, tools)).collect()
        }
        _ => Vec::new(),
    }
}

fn asked_block(block: Loose<'_, Block<'_>>, kind: Kind, tools: &Tools) -> Entry {
    let is_text = text_of(&block).is_some();
    let block = match block {
        Loose::Object(block) => *block,
        other => return Entry::new(Role::User, Kind::Notice, flat(other)),
    };
    match block.kind() {
        "text" if is_text => {
            let text = block.text.into_text().unwrap_or_default();
            let kind = if is_added(&text) { Kind::Notice } else { kind };
            Entry::new(Role::User, kind, text)
        }
        "tool_result" => result(block, tools),
        "image" | "document" => Entry::new(Role::User, kind, shown(block)),
        _ => Entry::new(Role::User, Kind::Other, shown(block)),
    }
}

fn result(block: Block<'_>, tools: &Tools) -> Entry {
    let mut entry = Entry::new(Role::Tool, Kind::ToolResult, flat(block.content));
    entry.tool_name =
        block.tool_use_id.text().and_then(|id| tools.names.get(id)).map(str::to_owned);
    entry.tool_call_id = block.tool_use_id.into_text();
    if block.is_error.is_true() {
        entry.metadata = Some(entries::failure());
    }
    entry
}

/// Adds to a tool result the id of the subagent that produced it, and the path of the full output if the model
/// saw only a part.
pub(super) fn add_details(entry: &mut Entry, details: &ToolUseResult<'_>) {
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
pub(super) fn flat(content: Loose<'_, Block<'_>>) -> String {
    match content {
        Loose::Text(text) => text.into_owned(),
        Loose::List(mut blocks) if blocks.len() == 1 => flat(blocks.remove(0)),
        Loose::List(blocks) => blocks.into_iter().map(flat).collect::<Vec<_>>().join("\n"),
        Loose::Object(block) => shown(*block),
        Loose::Absent | Loose::Flag(_) => String::new(),
    }
}

fn shown(block: Block<'_>) -> String {
    match block.kind() {
        "tool_reference" => format!("[tool {}]", block.tool_name.text().unwrap_or_default()),
        kind => match block.source.object() {
            Some(media) => described(kind, media),
            None if !block.content.is_absent() => flat(block.content),
            None => block.text.into_text().unwrap_or_default(),
        },
    }
}

/// Describes binary data by media type, size and hash, without the data.
fn described(kind: &str, media: &Media<'_>) -> String {
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
