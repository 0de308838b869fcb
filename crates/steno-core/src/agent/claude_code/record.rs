//! One line of a session file, as Claude Code writes it.
//!
//! Only what becomes part of an entry or a session is taken out of the line; the rest is skipped.

use std::sync::LazyLock;

use regex::bytes::Regex;
use serde::Deserialize;
use serde_json::de::Read;

use super::loose::{Loose, Plain};
use crate::agent::repair;
use crate::json::Object;
use crate::json::skim::{self, Raw};
use crate::problem::json_reason;

/// A line of any type; the fields of all types side by side.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Record<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Plain<'a>,
    #[serde(borrow)]
    pub(super) subtype: Plain<'a>,
    #[serde(borrow)]
    pub(super) uuid: Plain<'a>,
    #[serde(borrow)]
    pub(super) parent_uuid: Plain<'a>,
    #[serde(borrow)]
    pub(super) logical_parent_uuid: Plain<'a>,
    #[serde(borrow)]
    pub(super) session_id: Plain<'a>,
    #[serde(borrow)]
    pub(super) agent_id: Plain<'a>,
    #[serde(borrow)]
    pub(super) timestamp: Plain<'a>,
    #[serde(borrow)]
    pub(super) cwd: Plain<'a>,
    #[serde(borrow)]
    pub(super) git_branch: Plain<'a>,
    #[serde(borrow)]
    pub(super) version: Plain<'a>,
    #[serde(borrow)]
    pub(super) entrypoint: Plain<'a>,
    #[serde(borrow)]
    pub(super) is_sidechain: Plain<'a>,
    #[serde(borrow)]
    pub(super) is_meta: Plain<'a>,
    #[serde(borrow)]
    pub(super) is_compact_summary: Plain<'a>,
    #[serde(borrow)]
    pub(super) is_api_error_message: Plain<'a>,
    #[serde(borrow)]
    pub(super) request_id: Plain<'a>,
    #[serde(borrow)]
    pub(super) prompt_source: Plain<'a>,
    #[serde(borrow)]
    pub(super) origin: Loose<'a, Origin<'a>>,
    #[serde(borrow)]
    pub(super) forked_from: Loose<'a, Fork<'a>>,
    #[serde(borrow)]
    pub(super) message: Loose<'a, Message<'a>>,
    #[serde(borrow)]
    pub(super) tool_use_result: Loose<'a, ToolUseResult<'a>>,
    #[serde(borrow)]
    pub(super) content: Loose<'a, Block<'a>>,
    #[serde(borrow)]
    pub(super) attachment: Loose<'a, Attachment<'a>>,
    #[serde(borrow)]
    pub(super) operation: Plain<'a>,
    #[serde(borrow)]
    pub(super) summary: Plain<'a>,
    #[serde(borrow)]
    pub(super) leaf_uuid: Plain<'a>,
    #[serde(borrow)]
    pub(super) custom_title: Plain<'a>,
    #[serde(borrow)]
    pub(super) ai_title: Plain<'a>,
    #[serde(borrow)]
    pub(super) tag: Plain<'a>,
    #[serde(borrow)]
    pub(super) pr_url: Plain<'a>,
    #[serde(borrow)]
    pub(super) frame_url: Plain<'a>,
    #[serde(borrow, rename = "totalCostUSD")]
    pub(super) total_cost: Option<Raw<'a>>,
}

/// A message of the API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) id: Plain<'a>,
    #[serde(borrow)]
    pub(super) model: Plain<'a>,
    #[serde(borrow)]
    pub(super) content: Loose<'a, Block<'a>>,
    #[serde(borrow)]
    pub(super) stop_reason: Plain<'a>,
    #[serde(borrow)]
    pub(super) usage: Option<Raw<'a>>,
}

/// A part of a message; the fields of all types side by side.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Plain<'a>,
    #[serde(borrow)]
    pub(super) text: Plain<'a>,
    #[serde(borrow)]
    pub(super) thinking: Plain<'a>,
    #[serde(borrow)]
    pub(super) id: Plain<'a>,
    #[serde(borrow)]
    pub(super) name: Plain<'a>,
    #[serde(borrow)]
    pub(super) input: Option<Raw<'a>>,
    #[serde(borrow)]
    pub(super) tool_use_id: Plain<'a>,
    #[serde(borrow)]
    pub(super) tool_name: Plain<'a>,
    #[serde(borrow)]
    pub(super) is_error: Plain<'a>,
    #[serde(borrow)]
    pub(super) content: Loose<'a, Block<'a>>,
    #[serde(borrow)]
    pub(super) source: Loose<'a, Media<'a>>,
}

/// The bytes of an image or a document, or where they are.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Media<'a> {
    #[serde(borrow)]
    pub(super) media_type: Plain<'a>,
    #[serde(borrow)]
    pub(super) data: Plain<'a>,
    #[serde(borrow)]
    pub(super) url: Plain<'a>,
}

/// Context that Claude Code adds, or a prompt typed while the model worked.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Attachment<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Plain<'a>,
    #[serde(borrow)]
    pub(super) prompt: Loose<'a, Block<'a>>,
    #[serde(borrow)]
    pub(super) command_mode: Plain<'a>,
    #[serde(borrow)]
    pub(super) origin: Loose<'a, Origin<'a>>,
    #[serde(borrow)]
    pub(super) is_meta: Plain<'a>,
    #[serde(borrow)]
    pub(super) content: Loose<'a, Block<'a>>,
    #[serde(borrow)]
    pub(super) text: Plain<'a>,
}

/// Who a prompt came from.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Origin<'a> {
    #[serde(borrow)]
    pub(super) kind: Plain<'a>,
}

/// The session that a record was copied from.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Fork<'a> {
    #[serde(borrow)]
    pub(super) session_id: Plain<'a>,
}

/// What Claude Code knows about a tool's result beyond what the model saw.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolUseResult<'a> {
    #[serde(borrow)]
    pub(super) agent_id: Plain<'a>,
    #[serde(borrow)]
    pub(super) persisted_output_path: Plain<'a>,
}

impl<'a> Record<'a> {
    /// Reads the record that begins `bytes`, and tells how many bytes it has.
    ///
    /// Of a text that is longer than `limit` it may hold the beginning only.
    pub(super) fn first_of(bytes: &'a [u8], limit: usize) -> Result<(Self, usize), String> {
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err("not a JSON object".to_owned());
        }
        // One check of all bytes costs less than one of each string.
        let Ok(text) = simdutf8::basic::from_utf8(bytes) else {
            return first(serde_json::Deserializer::from_slice(bytes));
        };
        match skim::first_of(text, limit) {
            Some(record) => Ok(record),
            None => first(serde_json::Deserializer::from_str(text)),
        }
    }

    /// The record's type, empty where it has none.
    pub(super) fn kind(&self) -> &str {
        self.kind.text().unwrap_or_default()
    }

    /// The record that this one follows; after a compaction the last one before it.
    pub(super) fn parent(&self) -> Option<&str> {
        self.parent_uuid.text().or(self.logical_parent_uuid.text())
    }
}

fn first<'a, R: Read<'a>>(
    json: serde_json::Deserializer<R>,
) -> Result<(Record<'a>, usize), String> {
    let mut records = json.into_iter();
    match records.next() {
        Some(Ok(record)) => Ok((record, records.byte_offset())),
        Some(Err(error)) => Err(json_reason(&error)),
        None => Err("not a JSON object".to_owned()),
    }
}

impl Block<'_> {
    /// The block's type, empty where it has none.
    pub(super) fn kind(&self) -> &str {
        self.kind.text().unwrap_or_default()
    }
}

/// Whether a line may state tokens or a cost.
pub(super) fn has_bill(line: &[u8]) -> bool {
    static BILL: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new("\"usage\"|totalCostUSD").ok());
    BILL.as_ref().is_none_or(|bill| bill.is_match(line))
}

/// The object in `bytes`, repaired, and of a repeated name only the last value: JavaScript takes both.
pub(super) fn mended(bytes: &[u8]) -> Option<Vec<u8>> {
    let object: Object = repair::parse(bytes).ok()?;
    serde_json::to_vec(&object).ok()
}

/// The record as JSON, for what has no place of its own in an entry.
pub(super) fn whole(bytes: &[u8]) -> Object {
    serde_json::from_slice(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn halves_of_pairs_and_repeated_names_are_mended() {
        let mended = super::mended(br#"{"a":"\ud83d x","b":1,"b":2}"#).unwrap();
        assert_eq!(String::from_utf8(mended).unwrap(), "{\"a\":\"\u{fffd} x\",\"b\":2}");
        assert_eq!(super::mended(b"[1]"), None);
    }
}
