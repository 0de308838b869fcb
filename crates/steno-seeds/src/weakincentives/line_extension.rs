//! Stores the parts of an entry that have none of the ten fields, under one key in its metadata.
//!
//! An entry that the ten fields can represent is unchanged, so that it is written exactly as upstream writes it.

use serde::{Deserialize, Deserializer, Serialize};

use super::line;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{Object, Value};
use steno_model::timestamp::Timestamp;

/// The key in `metadata`.
const EXTENSION_KEY: &str = "steno";

/// Fields of an entry that would be lost otherwise. A field is present only if the plain line would be decoded
/// differently.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LineExtension {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<EntryKind>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "even_null")]
    created_at: Option<Option<Timestamp>>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "even_null")]
    tool_input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "even_null")]
    model: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "Object::is_empty")]
    extra: Object,
    /// The whole metadata, if it is empty or has the key already.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Object>,
}

impl LineExtension {
    /// Returns what the ten fields cannot represent; `None` if they can represent everything.
    pub(super) fn from_entry(entry: &Entry) -> Option<Self> {
        let role = line::written_role(&entry.role);
        let mut fold = LineExtension {
            role: (role != entry.role).then(|| entry.role.to_string()),
            kind: (entry.kind != entry.implied_kind()).then_some(entry.kind),
            created_at: (!is_exact_in_python(entry.created_at)).then_some(entry.created_at),
            tool_input: entry.tool_input.clone().filter(|input| !input.is_object()),
            model: (entry.model != model_in_metadata(&entry.metadata)).then(|| entry.model.clone()),
            message_id: entry.message_id.clone(),
            parent_id: entry.parent_id.clone(),
            usage: entry.usage,
            extra: line::foreign_extra(entry),
            metadata: None,
        };
        fold.metadata = entry.metadata.clone().filter(|metadata| {
            metadata.contains_key(EXTENSION_KEY)
                || (metadata.is_empty() && fold != LineExtension::default())
        });
        (fold != LineExtension::default()).then_some(fold)
    }

    fn apply_to(self, entry: &mut Entry) {
        if let Some(role) = self.role {
            entry.role = Role::from(role);
        }
        if let Some(created_at) = self.created_at {
            entry.created_at = created_at;
        }
        if let Some(tool_input) = self.tool_input {
            entry.tool_input = Some(tool_input);
        }
        entry.kind = self.kind.unwrap_or_else(|| entry.implied_kind());
        entry.metadata = self.metadata.or(entry.metadata.take());
        entry.model = match self.model {
            Some(model) => model,
            None => model_in_metadata(&entry.metadata),
        };
        entry.message_id = self.message_id;
        entry.parent_id = self.parent_id;
        entry.usage = self.usage;
        entry.extra = self.extra;
    }
}

/// Returns the metadata to write, with the extension added.
pub(super) fn with_extension(
    metadata: &Option<Object>,
    fold: Option<LineExtension>,
) -> Option<Object> {
    let Some(fold) = fold else {
        return metadata.clone();
    };
    let mut written = match (&fold.metadata, metadata) {
        (None, Some(metadata)) => metadata.clone(),
        _ => Object::new(),
    };
    let fold = serde_json::to_value(fold).expect("a fold has string keys only");
    written.insert(EXTENSION_KEY.to_owned(), fold);
    Some(written)
}

/// Restores the fields stored in an entry's metadata. A value that Steno did not write stays there.
pub(super) fn apply_extension(entry: &mut Entry) {
    let Some(metadata) = &mut entry.metadata else {
        return;
    };
    let Some(fold) = metadata.get(EXTENSION_KEY).and_then(|v| LineExtension::deserialize(v).ok())
    else {
        return;
    };
    metadata.shift_remove(EXTENSION_KEY);
    if metadata.is_empty() {
        entry.metadata = None;
    }
    fold.apply_to(entry);
}

/// The model in the metadata.
pub(super) fn model_in_metadata(metadata: &Option<Object>) -> Option<String> {
    let model = metadata.as_ref()?.get("model")?.as_str()?;
    Some(model.to_owned())
}

/// Whether a time survives Python's format, which has microseconds.
fn is_exact_in_python(time: Option<Timestamp>) -> bool {
    time.is_some_and(|time| time.wall().subsec_nanosecond() % 1000 == 0)
}

/// Distinguishes a `null` field from a missing one.
fn even_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
