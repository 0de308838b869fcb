//! Lenient parsing of JSON-RPC messages.

use steno_model::json::{Object, Value};

/// A JSON-RPC message.
#[derive(Debug)]
pub(crate) enum RpcMessage<'a> {
    /// A request, or a notification if it has no id.
    Call { id: Option<String>, method: &'a str, params: &'a Object },
    /// A response to a request of the other side.
    Response { id: String, result: Result<&'a Value, &'a Value> },
}

/// Used when `params` is missing or not an object.
static NO_PARAMS: std::sync::LazyLock<Object> = std::sync::LazyLock::new(Object::new);

impl<'a> RpcMessage<'a> {
    /// Parses a message. `None` if the object is not one.
    pub(crate) fn from_object(object: &'a Object) -> Option<Self> {
        // The id is kept as JSON, because 1 and "1" are different ids.
        let id = object.get("id").filter(|id| !id.is_null()).map(Value::to_string);
        if let Some(method) = object.get("method").and_then(Value::as_str) {
            let params = object.get("params").and_then(Value::as_object).unwrap_or(&NO_PARAMS);
            return Some(RpcMessage::Call { id, method, params });
        }
        let result = match (object.get("result"), object.get("error")) {
            (_, Some(error)) if !error.is_null() => Err(error),
            (Some(result), _) => Ok(result),
            _ => return None,
        };
        Some(RpcMessage::Response { id: id?, result })
    }
}
