//! Parses one line of a session file.
//!
//! Only fields that become part of an entry or a session are parsed; the others are skipped.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::de::Read;

use super::loose::{Loose, Plain};
use crate::agent::repair;
use crate::json::Object;
use crate::json::skim::{self, Raw};
use crate::problem::json_reason;

/// A record of any type, with the fields of all types.
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

/// A content block of any type, with the fields of all types.
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

/// The data or URL of an image or document.
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

/// Context that Claude Code adds, or a prompt queued while the model worked.
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

/// Where a prompt came from.
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

/// Details of a tool result that the model did not see.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolUseResult<'a> {
    #[serde(borrow)]
    pub(super) agent_id: Plain<'a>,
    #[serde(borrow)]
    pub(super) persisted_output_path: Plain<'a>,
}

impl<'a> Record<'a> {
    /// Parses the record at the start of `bytes`, and returns it with its length in bytes.
    ///
    /// Texts longer than `limit` may be cut off.
    pub(super) fn first_of(bytes: &'a [u8], limit: usize) -> Result<(Self, usize), String> {
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err("not a JSON object".to_owned());
        }
        // Validating UTF-8 once is cheaper than validating each string.
        let Ok(text) = simdutf8::basic::from_utf8(bytes) else {
            return first(serde_json::Deserializer::from_slice(bytes));
        };
        match skim::first_of(text, limit) {
            Some(record) => Ok(record),
            None => first(serde_json::Deserializer::from_str(text)),
        }
    }

    /// The record's type, or an empty string.
    pub(super) fn kind(&self) -> &str {
        self.kind.text().unwrap_or_default()
    }

    /// The UUID of the parent record. After a compaction, that of the last record before it.
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
    /// The block's type, or an empty string.
    pub(super) fn kind(&self) -> &str {
        self.kind.text().unwrap_or_default()
    }
}

/// Whether a line may contain usage or a cost.
pub(super) fn has_bill(line: &[u8]) -> bool {
    static FIELDS: [LazyLock<Finder<'static>>; 2] =
        [LazyLock::new(|| Finder::new("\"usage\"")), LazyLock::new(|| Finder::new("totalCostUSD"))];
    FIELDS.iter().any(|field| field.find(line).is_some())
}

/// Repairs the object in `bytes`: replaces lone surrogates, and keeps the last value of a repeated field, as
/// JavaScript does.
pub(super) fn mended(bytes: &[u8]) -> Option<Vec<u8>> {
    let object: Object = repair::parse(bytes).ok()?;
    serde_json::to_vec(&object).ok()
}

/// The whole record as JSON, for an entry's metadata.
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
