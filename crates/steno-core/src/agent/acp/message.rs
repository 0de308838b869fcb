//! A message of JSON-RPC, as leniently as it can be read.

use crate::json::{Object, Value};

/// What one side says to the other.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// A request, or without an id a notification.
    Call { id: Option<String>, method: &'a str, params: &'a Object },
    /// An answer to a request of the other side.
    Answer { id: String, result: Result<&'a Value, &'a Value> },
}

/// What stands for parameters that are missing or no object.
static NONE: std::sync::LazyLock<Object> = std::sync::LazyLock::new(Object::new);

impl<'a> Message<'a> {
    /// The message in an object; nothing where it is none.
    pub(crate) fn of(object: &'a Object) -> Option<Self> {
        // Each side may count as it likes: 1 and "1" are two ids.
        let id = object.get("id").filter(|id| !id.is_null()).map(Value::to_string);
        if let Some(method) = object.get("method").and_then(Value::as_str) {
            let params = object.get("params").and_then(Value::as_object).unwrap_or(&NONE);
            return Some(Message::Call { id, method, params });
        }
        let result = match (object.get("result"), object.get("error")) {
            (_, Some(error)) if !error.is_null() => Err(error),
            (Some(result), _) => Ok(result),
            _ => return None,
        };
        Some(Message::Answer { id: id?, result })
    }
}
