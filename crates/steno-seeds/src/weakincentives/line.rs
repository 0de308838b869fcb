//! One line: a `TranscriptEntry` with its ten fields, all of them always present.
//!
//! Parsing is as lenient as upstream's, except that an empty text stays empty and unknown keys are kept.

use uuid::Uuid;

use super::line_extension::{self, LineExtension};
use steno_model::entry::{ENTRY_FIELD_NAMES, Entry, EntryError, Role};
use steno_model::json::{Object, Value};
use steno_model::timestamp::Timestamp;

/// The type name of an entry, which the oldest versions write in every line.
pub const TYPE_ID: &str = "weakincentives.transcript:TranscriptEntry";

/// The key of a line's type.
const TYPE_KEY: &str = "__type__";

/// The key of a line's sequence number within its source.
const SEQUENCE_KEY: &str = "sequence";

/// Field of [`Entry::extra`] with the keys of a line besides the ten.
const LINE_KEY: &str = super::AGENT_NAME;

/// Whether an object has a combination of fields that no other format has.
pub fn is_transcript_entry(object: &Object) -> bool {
    let has = |key: &&str| object.contains_key(*key);
    ["role", "content", "created_at"].iter().all(has)
        && [TYPE_KEY, "entry_id", "source", "sequence"].iter().any(has)
        && !object.contains_key("kind")
}

/// Parses one line. A missing `entry_id` stays nil.
pub fn entry_from_object(mut object: Object) -> Result<Entry, EntryError> {
    check_role(&object)?;
    if object.get("created_at").is_none_or(Value::is_null) {
        return Err(EntryError::MissingField("created_at"));
    }
    coerce_fields(&mut object);
    let negative = take_negative_sequence(&mut object);
    let mut entry = Entry::from_object(object)?;
    let mut others = std::mem::take(&mut entry.extra);
    others.extend(negative.map(|sequence| (SEQUENCE_KEY.to_owned(), sequence)));
    entry.model = entry.model.or_else(|| line_extension::model_in_metadata(&entry.metadata));
    line_extension::apply_extension(&mut entry);
    if !others.is_empty() {
        let others = Value::Object(others);
        entry.extra.entry(LINE_KEY).or_insert(others);
    }
    Ok(entry)
}

/// Converts an entry to a line. `__type__` is included if the line was read with it or `with_type` is set.
///
/// `moment` replaces a missing time.
pub fn object_from_entry(entry: &Entry, with_type: bool, moment: Timestamp) -> Object {
    let empty = Object::new();
    let others = other_line_keys(entry).unwrap_or(&empty);
    let mut object = Object::new();
    if let Some(type_id) = others.get(TYPE_KEY) {
        object.insert(TYPE_KEY.to_owned(), type_id.clone());
    } else if with_type {
        object.insert(TYPE_KEY.to_owned(), TYPE_ID.into());
    }
    insert_fields(&mut object, entry, moment);
    for (key, value) in others.iter().filter(|(key, _)| *key != TYPE_KEY) {
        object.insert(key.clone(), value.clone());
    }
    object
}

/// Fields of [`Entry::extra`] that did not come from a line of this format.
pub(super) fn foreign_extra(entry: &Entry) -> Object {
    let mut extra = entry.extra.clone();
    if other_line_keys(entry).is_some() {
        extra.shift_remove(LINE_KEY);
    }
    extra
}

/// The role to write: upstream has only four.
pub(super) fn written_role(role: &Role) -> Role {
    match role {
        Role::Other(name) if name == "developer" => Role::System,
        Role::Other(_) => Role::User,
        known => known.clone(),
    }
}

/// Formats a scalar as text; `null` is empty.
pub(super) fn scalar_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn insert_fields(object: &mut Object, entry: &Entry, moment: Timestamp) {
    let fold = LineExtension::from_entry(entry);
    let created_at = entry.created_at.unwrap_or(moment).to_isoformat();
    let tool_input = entry.tool_input.clone().filter(Value::is_object);
    let metadata = line_extension::with_extension(&entry.metadata, fold).map(Value::Object);
    let fields: [Value; 10] = [
        written_role(&entry.role).as_str().into(),
        entry.content.as_str().into(),
        created_at.into(),
        entry.tool_name.clone().into(),
        entry.tool_call_id.clone().into(),
        tool_input.into(),
        metadata.into(),
        entry.entry_id.hyphenated().to_string().into(),
        entry.source.as_str().into(),
        entry.sequence.into(),
    ];
    for (key, value) in ENTRY_FIELD_NAMES.iter().zip(fields) {
        object.insert((*key).to_owned(), value);
    }
}

fn other_line_keys(entry: &Entry) -> Option<&Object> {
    let keys = entry.extra.get(LINE_KEY)?.as_object()?;
    let is_own = |field: &str| field == SEQUENCE_KEY || !keys.contains_key(field);
    let own = !keys.is_empty() && ENTRY_FIELD_NAMES.iter().all(|field| is_own(field));
    own.then_some(keys)
}

fn check_role(object: &Object) -> Result<(), EntryError> {
    match object.get("role") {
        None | Some(Value::Null) => Err(EntryError::MissingField("role")),
        Some(Value::String(name)) if !matches!(Role::from(name.as_str()), Role::Other(_)) => Ok(()),
        Some(_) => Err(EntryError::UnknownRole),
    }
}

/// Converts numbers to texts and texts to numbers where the field needs it, and parses ids in any form that Python
/// accepts.
fn coerce_fields(object: &mut Object) {
    for field in ["content", "tool_name", "tool_call_id", "source"] {
        if let Some(value) = object.get_mut(field)
            && (value.is_number() || value.is_boolean())
        {
            *value = scalar_text(value).into();
        }
    }
    if let Some(value) = object.get_mut("sequence")
        && let Some(number) = value.as_str().and_then(|text| text.trim().parse::<u64>().ok())
    {
        *value = number.into();
    }
    if let Some(value) = object.get_mut("entry_id")
        && let Some(id) = value.as_str().and_then(parse_python_uuid)
    {
        *value = id.hyphenated().to_string().into();
    }
}

/// Takes a negative sequence number, which Steno cannot represent. It stays among the keys of the line.
fn take_negative_sequence(object: &mut Object) -> Option<Value> {
    let is_negative = object.get(SEQUENCE_KEY).and_then(Value::as_i64).is_some_and(|it| it < 0);
    if is_negative { object.insert(SEQUENCE_KEY.to_owned(), 0.into()) } else { None }
}

fn parse_python_uuid(text: &str) -> Option<Uuid> {
    let digits = text.replace("urn:", "").replace("uuid:", "");
    let digits = digits.trim_matches(['{', '}']).replace('-', "");
    Uuid::try_parse(&digits).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Entry, EntryError> {
        entry_from_object(value.as_object().unwrap().clone())
    }

    #[test]
    fn values_are_coerced_as_upstream_does() {
        let entry = read(json!({
            "role": "tool", "content": 5, "created_at": "2026-01-05T09:15:32Z", "tool_name": "",
            "sequence": "7", "entry_id": "urn:uuid:{0000-00000000400080000000000000AB}",
        }))
        .unwrap();
        assert_eq!((entry.content.as_str(), entry.sequence), ("5", 7));
        assert_eq!(entry.tool_name.as_deref(), Some(""));
        assert_eq!(entry.source, "primary");
        assert_eq!(entry.entry_id, Uuid::from_u128(0x4000_8000_0000_0000_00AB));
    }

    #[test]
    fn names_missing_and_invalid_fields() {
        let error = |value| read(value).unwrap_err().to_string();
        let text = "role: expected one of ['system', 'user', 'assistant', 'tool']";
        let time = "2026-01-05T09:15:32";
        assert_eq!(error(json!({"role": "bot", "created_at": time})), text);
        assert_eq!(error(json!({"role": 1})), text);
        assert_eq!(error(json!({"content": ""})), "missing field: role");
        assert_eq!(error(json!({"role": "user", "created_at": time})), "missing field: content");
        assert_eq!(
            error(json!({"role": "user", "content": "", "created_at": time, "sequence": 1.5})),
            "field sequence: expected a whole number"
        );
    }

    #[test]
    fn a_negative_number_comes_back() {
        let line = json!({
            "role": "user", "content": "", "created_at": "2026-01-05T09:15:32", "sequence": -7,
        });
        let entry = read(line).unwrap();
        let written = object_from_entry(&entry, false, entry.created_at.unwrap());
        assert_eq!(written["sequence"], json!(-7));
        assert_eq!(written.keys().next_back().unwrap(), "sequence");
    }

    #[test]
    fn the_model_is_taken_from_the_metadata() {
        let line = json!({
            "role": "assistant", "content": "", "created_at": "2026-01-05T09:15:32",
            "metadata": {"model": "gpt-4o"},
        });
        let entry = read(line).unwrap();
        assert_eq!(entry.model.as_deref(), Some("gpt-4o"));
        let written = object_from_entry(&entry, false, entry.created_at.unwrap());
        assert_eq!(written["metadata"], json!({"model": "gpt-4o"}));
    }
}
