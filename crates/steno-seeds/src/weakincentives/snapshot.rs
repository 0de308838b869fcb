//! A snapshot: the slices of a session at one time, as one line of JSON with sorted keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use super::line;
use super::session::SliceSession;
use super::slice::{SliceChange, SliceError, SlicePolicy};
use steno_model::entry::{Entry, EntryError};
use steno_model::json::{JsonStyle, Object, Value};
use steno_model::timestamp::Timestamp;

/// The only version of the format.
const SNAPSHOT_VERSION: &str = "1";

/// Suffix of the type name of transcript entries, after any module name.
const ENTRY_TYPE_SUFFIX: &str = ":TranscriptEntry";

/// The slices of a session at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionSnapshot {
    /// Sessions that this one spawned.
    #[serde(default)]
    pub children_ids: Vec<String>,
    /// When it was taken.
    #[serde(serialize_with = "isoformat")]
    pub created_at: Timestamp,
    /// The session that spawned this one.
    #[serde(default)]
    pub parent_id: Option<String>,
    /// The policy of every registered type; some versions do not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<BTreeMap<String, SlicePolicy>>,
    /// The non-empty slices, sorted by type.
    pub slices: Vec<SnapshotSlice>,
    /// Tags of the session, `session_id` among them.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// The version of the format.
    pub version: String,
}

/// The items of one slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotSlice {
    /// The type of the items.
    pub item_type: String,
    /// The items, oldest first.
    pub items: Vec<Object>,
    /// The type of the slice.
    pub slice_type: String,
}

/// A text that is not a snapshot of a known version.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The text is not JSON, or has the wrong shape.
    #[error("not a snapshot")]
    Shape(#[from] serde_json::Error),
    /// The snapshot has an unknown version.
    #[error("snapshot version is not {SNAPSHOT_VERSION}: {0}")]
    Version(String),
}

impl SessionSnapshot {
    /// Renders the snapshot as Python's `json.dumps(v, sort_keys=True)` does.
    pub fn to_json(&self) -> String {
        let value = serde_json::to_value(self).expect("a snapshot has string keys only");
        JsonStyle::PYTHON.print(&sort_keys(value))
    }

    /// Parses the output of [`SessionSnapshot::to_json`].
    pub fn from_json(text: &str) -> Result<Self, SnapshotError> {
        let snapshot: SessionSnapshot = serde_json::from_str(text)?;
        if snapshot.version != SNAPSHOT_VERSION {
            return Err(SnapshotError::Version(snapshot.version));
        }
        Ok(snapshot)
    }
}

/// Whether an object is a snapshot.
pub(super) fn is_snapshot(object: &Object) -> bool {
    let holds = |field: &str, test: fn(&Value) -> bool| object.get(field).is_some_and(test);
    let is_slice = |slice: &Value| {
        slice.get("item_type").is_some_and(Value::is_string)
            && slice.get("items").is_some_and(Value::is_array)
    };
    let slices = object.get("slices").and_then(Value::as_array);
    let is_known = slices.is_some_and(|slices| slices.first().is_some_and(is_slice));
    is_known || (slices.is_some() && holds("policies", Value::is_object))
}

/// The session id in a snapshot.
pub(super) fn session_id(object: &Object) -> Option<String> {
    Some(object.get("tags")?.get("session_id")?.as_str()?.to_owned())
}

/// Decodes the transcript in a snapshot.
pub(super) fn entries_from_snapshot(object: &Object) -> Result<Vec<Entry>, EntryError> {
    let slices = object.get("slices").and_then(Value::as_array).into_iter().flatten();
    let of_entries = |slice: &&Value| {
        slice
            .get("item_type")
            .and_then(Value::as_str)
            .is_some_and(|name| name.ends_with(ENTRY_TYPE_SUFFIX))
    };
    let items = slices.filter(of_entries).filter_map(|slice| slice.get("items")?.as_array());
    items
        .flatten()
        .filter_map(Value::as_object)
        .map(|item| line::entry_from_object(item.clone()))
        .collect()
}

impl SliceSession {
    /// Takes a snapshot of the STATE slices; with `include_all`, of the LOG slices too.
    pub fn snapshot(&self, include_all: bool) -> Result<SessionSnapshot, SliceError> {
        let mut slices = Vec::new();
        for (type_id, policy) in &self.policies {
            if !include_all && *policy == SlicePolicy::Log {
                continue;
            }
            let items = self.read_objects(type_id, *policy)?;
            if !items.is_empty() {
                slices.push(SnapshotSlice {
                    item_type: (*type_id).to_owned(),
                    items,
                    slice_type: (*type_id).to_owned(),
                });
            }
        }
        let session_id = self.id().hyphenated().to_string();
        let policies = self.policies.iter();
        Ok(SessionSnapshot {
            children_ids: Vec::new(),
            created_at: self.clock().now(),
            parent_id: None,
            policies: Some(policies.map(|(id, policy)| ((*id).to_owned(), *policy)).collect()),
            slices,
            tags: BTreeMap::from([("session_id".to_owned(), session_id)]),
            version: SNAPSHOT_VERSION.to_owned(),
        })
    }

    /// Rolls the STATE slices back to a snapshot. LOG slices are unchanged.
    pub fn restore(&mut self, snapshot: &SessionSnapshot) -> Result<(), SliceError> {
        let known = |slice: &&SnapshotSlice| self.policies.contains_key(&*slice.slice_type);
        let unknown = snapshot.slices.iter().filter(|slice| !known(slice));
        let mut unknown: Vec<_> = unknown.map(|slice| type_name(&slice.slice_type)).collect();
        if !unknown.is_empty() {
            unknown.sort();
            return Err(SliceError::NotRegistered(unknown));
        }
        let policies: Vec<_> = self.policies.iter().map(|(id, policy)| (*id, *policy)).collect();
        for (type_id, policy) in policies {
            if policy == SlicePolicy::State {
                let saved = snapshot.slices.iter().find(|s| s.slice_type == type_id);
                let items = saved.map(|slice| slice.items.clone()).unwrap_or_default();
                self.slice_mut(type_id, policy).apply_change(SliceChange::Replace(items))?;
            }
        }
        Ok(())
    }
}

/// The name of a type without its module.
fn type_name(type_id: &str) -> String {
    let (_, name) = type_id.split_once(':').unwrap_or(("", type_id));
    name.to_owned()
}

fn sort_keys(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let fields: BTreeMap<String, Value> = object.into_iter().collect();
            Value::Object(fields.into_iter().map(|(k, v)| (k, sort_keys(v))).collect())
        }
        Value::Array(items) => items.into_iter().map(sort_keys).collect(),
        other => other,
    }
}

fn isoformat<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&time.to_isoformat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"children_ids": [], "created_at": "2026-01-05T09:16:00+00:00", "parent_id": null, "policies": {"a:B": "state"}, "slices": [{"item_type": "a:B", "items": [{"a": {"b": 1.0, "z": "\u00e9"}, "c": null}], "slice_type": "a:B"}], "tags": {"session_id": "s"}, "version": "1"}"#;

    #[test]
    fn text_comes_back_with_sorted_keys() {
        assert_eq!(SessionSnapshot::from_json(TEXT).unwrap().to_json(), TEXT);
        let shuffled = TEXT.replace(r#""b": 1.0, "z": "\u00e9""#, r#""z": "\u00e9", "b": 1.0"#);
        assert_eq!(SessionSnapshot::from_json(&shuffled).unwrap().to_json(), TEXT);
    }

    #[test]
    fn snapshots_without_policies_are_read() {
        let without = TEXT.replace(r#""policies": {"a:B": "state"}, "#, "");
        assert_eq!(SessionSnapshot::from_json(&without).unwrap().to_json(), without);
        let entry = r#"{"content": "hi", "created_at": "2026-01-05T09:15:32+00:00", "entry_id": "6f1c3a52-0a5f-4f0e-9d0b-2f8c1f0f5a11", "metadata": null, "role": "user", "sequence": 0, "source": "primary", "tool_call_id": null, "tool_input": null, "tool_name": null}"#;
        let type_id = "weakincentives.runtime.transcript:TranscriptEntry";
        let text = without
            .replace("a:B", type_id)
            .replace(r#"{"a": {"b": 1.0, "z": "\u00e9"}, "c": null}"#, entry);
        let object: Object = serde_json::from_str(&text).unwrap();
        assert!(is_snapshot(&object));
        assert_eq!(entries_from_snapshot(&object).unwrap()[0].content, "hi");
        assert!(!is_snapshot(&serde_json::from_str(r#"{"slices": [1]}"#).unwrap()));
    }

    #[test]
    fn other_versions_and_texts_are_refused() {
        let later = TEXT.replace(r#""version": "1""#, r#""version": "2""#);
        let refusal = |text: &str| SessionSnapshot::from_json(text).unwrap_err().to_string();
        assert_eq!(refusal(&later), "snapshot version is not 1: 2");
        assert_eq!(refusal("{}"), "not a snapshot");
    }
}
