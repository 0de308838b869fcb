//! Applies a change to a JSON value: sets, appends to or deletes the value at a path.

use crate::decoding::json_fields;
use steno_model::json::{Object, Value};

/// Applies a change. `state` is the value at the first `depth` steps of its path.
pub(super) fn apply_mutation(
    state: &mut Value,
    mut change: Object,
    depth: usize,
) -> Result<(), &'static str> {
    let value = change.shift_remove("v");
    let path = json_fields::list_field(&change, "k").get(depth..).unwrap_or_default();
    match change.get("kind").and_then(Value::as_u64) {
        Some(1) => set_value(state, path, value.unwrap_or(Value::Null)),
        Some(2) => push_items(state, path, value, change.get("i").and_then(Value::as_u64)),
        Some(3) => delete_value(state, path),
        _ => Err(UNKNOWN_KIND),
    }
}

/// The reason for a change of an unknown kind.
pub(super) const UNKNOWN_KIND: &str = "change of an unknown kind";

/// The reason for an append to a value other than a list.
pub(super) const NOT_A_LIST: &str = "append to a value other than a list";

/// The reason for a path that does not exist.
pub(super) const NO_SUCH_PATH: &str = "change at a path that does not exist";

/// The value at `path`.
fn value_at<'a>(state: &'a mut Value, path: &[Value]) -> Result<&'a mut Value, &'static str> {
    path.iter().try_fold(state, |value, step| child_at(value, step).ok_or(NO_SUCH_PATH))
}

fn child_at<'a>(value: &'a mut Value, step: &Value) -> Option<&'a mut Value> {
    match (value, step) {
        (Value::Object(object), Value::String(key)) => object.get_mut(key),
        (Value::Array(items), step) => items.get_mut(usize::try_from(step.as_u64()?).ok()?),
        _ => None,
    }
}

fn set_value(state: &mut Value, path: &[Value], value: Value) -> Result<(), &'static str> {
    let (last, parents) = path.split_last().ok_or(NO_SUCH_PATH)?;
    match (value_at(state, parents)?, last) {
        (Value::Object(object), Value::String(key)) => {
            object.insert(key.clone(), value);
            Ok(())
        }
        (Value::Array(items), Value::Number(index))
            if index.as_u64() == Some(items.len() as u64) =>
        {
            items.push(value);
            Ok(())
        }
        (parent, last) => {
            *value_at(parent, std::slice::from_ref(last))? = value;
            Ok(())
        }
    }
}

/// Truncates a list to `length`, then appends to it.
fn push_items(
    state: &mut Value,
    path: &[Value],
    items: Option<Value>,
    length: Option<u64>,
) -> Result<(), &'static str> {
    if value_at(state, path).is_err() {
        set_value(state, path, Value::Array(Vec::new()))?;
    }
    let Value::Array(list) = value_at(state, path)? else { return Err(NOT_A_LIST) };
    if let Some(length) = length {
        list.truncate(usize::try_from(length).unwrap_or(usize::MAX));
    }
    if let Some(Value::Array(items)) = items {
        list.extend(items);
    }
    Ok(())
}

fn delete_value(state: &mut Value, path: &[Value]) -> Result<(), &'static str> {
    let (last, parents) = path.split_last().ok_or(NO_SUCH_PATH)?;
    match (value_at(state, parents)?, last) {
        (Value::Object(object), Value::String(key)) => {
            object.shift_remove(key);
        }
        (Value::Array(items), Value::Number(index)) => {
            let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
            let index = index.filter(|index| *index < items.len()).ok_or(NO_SUCH_PATH)?;
            items.remove(index);
        }
        _ => return Err(NO_SUCH_PATH),
    }
    Ok(())
}
