//! Applies a change to a JSON value: sets, appends to or deletes the value at a path.

use crate::agent::fields;
use crate::json::{Object, Value};

/// Applies a change. `state` is the value at the first `depth` steps of its path.
pub(super) fn apply(
    state: &mut Value,
    mut change: Object,
    depth: usize,
) -> Result<(), &'static str> {
    let value = change.shift_remove("v");
    let path = fields::list(&change, "k").get(depth..).unwrap_or_default();
    match change.get("kind").and_then(Value::as_u64) {
        Some(1) => set(state, path, value.unwrap_or(Value::Null)),
        Some(2) => push(state, path, value, change.get("i").and_then(Value::as_u64)),
        Some(3) => delete(state, path),
        _ => Err(UNKNOWN),
    }
}

/// The reason for a change of an unknown kind.
pub(super) const UNKNOWN: &str = "change of an unknown kind";

/// The reason for an append to a value other than a list.
pub(super) const NO_LIST: &str = "append to a value other than a list";

/// The reason for a path that does not exist.
pub(super) const NOWHERE: &str = "change at a path that does not exist";

/// The value at `path`.
fn at<'a>(state: &'a mut Value, path: &[Value]) -> Result<&'a mut Value, &'static str> {
    path.iter().try_fold(state, |value, step| below(value, step).ok_or(NOWHERE))
}

fn below<'a>(value: &'a mut Value, step: &Value) -> Option<&'a mut Value> {
    match (value, step) {
        (Value::Object(object), Value::String(key)) => object.get_mut(key),
        (Value::Array(items), step) => items.get_mut(usize::try_from(step.as_u64()?).ok()?),
        _ => None,
    }
}

fn set(state: &mut Value, path: &[Value], value: Value) -> Result<(), &'static str> {
    let (last, parents) = path.split_last().ok_or(NOWHERE)?;
    match (at(state, parents)?, last) {
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
            *at(parent, std::slice::from_ref(last))? = value;
            Ok(())
        }
    }
}

/// Truncates a list to `length`, then appends to it.
fn push(
    state: &mut Value,
    path: &[Value],
    items: Option<Value>,
    length: Option<u64>,
) -> Result<(), &'static str> {
    if at(state, path).is_err() {
        set(state, path, Value::Array(Vec::new()))?;
    }
    let Value::Array(list) = at(state, path)? else { return Err(NO_LIST) };
    if let Some(length) = length {
        list.truncate(usize::try_from(length).unwrap_or(usize::MAX));
    }
    if let Some(Value::Array(items)) = items {
        list.extend(items);
    }
    Ok(())
}

fn delete(state: &mut Value, path: &[Value]) -> Result<(), &'static str> {
    let (last, parents) = path.split_last().ok_or(NOWHERE)?;
    match (at(state, parents)?, last) {
        (Value::Object(object), Value::String(key)) => {
            object.shift_remove(key);
        }
        (Value::Array(items), Value::Number(index)) => {
            let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
            let index = index.filter(|index| *index < items.len()).ok_or(NOWHERE)?;
            items.remove(index);
        }
        _ => return Err(NOWHERE),
    }
    Ok(())
}
