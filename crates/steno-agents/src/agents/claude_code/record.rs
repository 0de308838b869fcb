//! Parses one line of a session file.
//!
//! Only fields that become part of an entry or a session are parsed; the others are skipped.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::de::Read;

use super::lenient_value::{LenientScalar, LenientValue};
use crate::decoding::json_repair;
use steno_model::json::Object;
use steno_model::json::scanner::{self, RawJson};
use steno_model::problem::json_error_reason;

/// A record of any type, with the fields of all types.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClaudeRecord<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) subtype: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) uuid: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) parent_uuid: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) logical_parent_uuid: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) session_id: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) agent_id: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) timestamp: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) cwd: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) git_branch: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) version: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) entrypoint: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) is_sidechain: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) is_meta: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) is_compact_summary: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) is_api_error_message: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) request_id: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) prompt_source: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) origin: LenientValue<'a, ClaudePromptOrigin<'a>>,
    #[serde(borrow)]
    pub(super) forked_from: LenientValue<'a, ClaudeForkOrigin<'a>>,
    #[serde(borrow)]
    pub(super) message: LenientValue<'a, ClaudeMessage<'a>>,
    #[serde(borrow)]
    pub(super) tool_use_result: LenientValue<'a, ClaudeToolUseResult<'a>>,
    #[serde(borrow)]
    pub(super) content: LenientValue<'a, ClaudeBlock<'a>>,
    #[serde(borrow)]
    pub(super) attachment: LenientValue<'a, ClaudeAttachment<'a>>,
    #[serde(borrow)]
    pub(super) operation: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) summary: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) leaf_uuid: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) custom_title: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) ai_title: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) tag: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) pr_url: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) frame_url: LenientScalar<'a>,
    #[serde(borrow, rename = "totalCostUSD")]
    pub(super) total_cost: Option<RawJson<'a>>,
}

/// A message of the API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ClaudeMessage<'a> {
    #[serde(borrow)]
    pub(super) id: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) model: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) content: LenientValue<'a, ClaudeBlock<'a>>,
    #[serde(borrow)]
    pub(super) stop_reason: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) usage: Option<RawJson<'a>>,
}

/// A content block of any type, with the fields of all types.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ClaudeBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) text: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) thinking: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) id: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) name: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) input: Option<RawJson<'a>>,
    #[serde(borrow)]
    pub(super) tool_use_id: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) tool_name: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) is_error: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) content: LenientValue<'a, ClaudeBlock<'a>>,
    #[serde(borrow)]
    pub(super) source: LenientValue<'a, ClaudeMedia<'a>>,
}

/// The data or URL of an image or document.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ClaudeMedia<'a> {
    #[serde(borrow)]
    pub(super) media_type: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) data: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) url: LenientScalar<'a>,
}

/// Context that Claude Code adds, or a prompt queued while the model worked.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClaudeAttachment<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) prompt: LenientValue<'a, ClaudeBlock<'a>>,
    #[serde(borrow)]
    pub(super) command_mode: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) origin: LenientValue<'a, ClaudePromptOrigin<'a>>,
    #[serde(borrow)]
    pub(super) is_meta: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) content: LenientValue<'a, ClaudeBlock<'a>>,
    #[serde(borrow)]
    pub(super) text: LenientScalar<'a>,
}

/// Where a prompt came from.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ClaudePromptOrigin<'a> {
    #[serde(borrow)]
    pub(super) kind: LenientScalar<'a>,
}

/// The session that a record was copied from.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClaudeForkOrigin<'a> {
    #[serde(borrow)]
    pub(super) session_id: LenientScalar<'a>,
}

/// Details of a tool result that the model did not see.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClaudeToolUseResult<'a> {
    #[serde(borrow)]
    pub(super) agent_id: LenientScalar<'a>,
    #[serde(borrow)]
    pub(super) persisted_output_path: LenientScalar<'a>,
}

impl<'a> ClaudeRecord<'a> {
    /// Parses the record at the start of `bytes`, and returns it with its length in bytes.
    ///
    /// Texts longer than `limit` may be cut off.
    pub(super) fn parse_first(bytes: &'a [u8], limit: usize) -> Result<(Self, usize), String> {
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err("not a JSON object".to_owned());
        }
        // Validating UTF-8 once is cheaper than validating each string.
        let Ok(text) = simdutf8::basic::from_utf8(bytes) else {
            return deserialize_first(serde_json::Deserializer::from_slice(bytes));
        };
        match scanner::parse_first_object(text, limit) {
            Some(record) => Ok(record),
            None => deserialize_first(serde_json::Deserializer::from_str(text)),
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

fn deserialize_first<'a, R: Read<'a>>(
    json: serde_json::Deserializer<R>,
) -> Result<(ClaudeRecord<'a>, usize), String> {
    let mut records = json.into_iter();
    match records.next() {
        Some(Ok(record)) => Ok((record, records.byte_offset())),
        Some(Err(error)) => Err(json_error_reason(&error)),
        None => Err("not a JSON object".to_owned()),
    }
}

impl ClaudeBlock<'_> {
    /// The block's type, or an empty string.
    pub(super) fn kind(&self) -> &str {
        self.kind.text().unwrap_or_default()
    }
}

/// Whether a line may contain usage or a cost.
pub(super) fn mentions_usage(line: &[u8]) -> bool {
    static FIELDS: [LazyLock<Finder<'static>>; 2] =
        [LazyLock::new(|| Finder::new("\"usage\"")), LazyLock::new(|| Finder::new("totalCostUSD"))];
    FIELDS.iter().any(|field| field.find(line).is_some())
}

/// Repairs the object in `bytes`: replaces lone surrogates, and keeps the last value of a repeated field, as
/// JavaScript does.
pub(super) fn repair_record(bytes: &[u8]) -> Option<Vec<u8>> {
    let object: Object = json_repair::parse_lenient(bytes).ok()?;
    serde_json::to_vec(&object).ok()
}

/// The whole record as JSON, for an entry's metadata.
pub(super) fn parse_object(bytes: &[u8]) -> Object {
    serde_json::from_slice(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn halves_of_pairs_and_repeated_names_are_mended() {
        let mended = super::repair_record(br#"{"a":"\ud83d x","b":1,"b":2}"#).unwrap();
        assert_eq!(String::from_utf8(mended).unwrap(), "{\"a\":\"\u{fffd} x\",\"b\":2}");
        assert_eq!(super::repair_record(b"[1]"), None);
    }
}
