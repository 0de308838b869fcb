//! A log of changes to a chat's document: each line sets, appends or deletes something at a path.

use crate::agent::fields;
use crate::agent::json_lines::{self, JsonLines};
use crate::durable::FileError;
use crate::format::{Emit, Item};
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::source::Source;

/// The document after all changes; a change that does not fit becomes a problem. A log may be as long as a document.
pub(super) fn replay(source: &Source, emit: Emit<'_>) -> Result<Object, FileError> {
    let mut state = Value::Object(Object::new());
    JsonLines::new(source.path(), source.open_document()?).each(|line, bytes| {
        let bad = |reason: String| Problem::at(source.path(), line, reason);
        let change = bytes.and_then(|bytes| json_lines::object(bytes).map_err(bad));
        let applied = change
            .and_then(|change| apply(&mut state, change).map_err(|reason| bad(reason.to_owned())));
        applied.err().into_iter().for_each(|problem| emit(Item::Problem(problem)));
    });
    match state {
        Value::Object(state) => Ok(state),
        _ => Ok(Object::new()),
    }
}

fn apply(state: &mut Value, mut change: Object) -> Result<(), &'static str> {
    let value = change.shift_remove("v");
    let path = fields::list(&change, "k");
    match change.get("kind").and_then(Value::as_u64) {
        Some(0) => {
            *state = value.filter(Value::is_object).ok_or("a first state that is no object")?;
            Ok(())
        }
        Some(1) => set(state, path, value.unwrap_or(Value::Null)),
        Some(2) => push(state, path, value, change.get("i").and_then(Value::as_u64)),
        Some(3) => delete(state, path),
        _ => Err("a change of an unknown kind"),
    }
}

const NOWHERE: &str = "a change at a place that does not exist";

/// What stands at `path`.
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

/// Cuts a list to `length`, then appends to it.
fn push(
    state: &mut Value,
    path: &[Value],
    items: Option<Value>,
    length: Option<u64>,
) -> Result<(), &'static str> {
    if at(state, path).is_err() {
        set(state, path, Value::Array(Vec::new()))?;
    }
    let Value::Array(list) = at(state, path)? else { return Err("an append to what is no list") };
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
