//! What readers of formats share whose session is one JSON document: knowing it by its beginning,
//! reading it although a few of its bytes are not JSON, and handing out entries.

mod opening;

use std::path::Path;

pub(super) use self::opening::Opening;
use super::repair;
use crate::durable::FileError;
use crate::entry::{Entry, Numbering};
use crate::format::tree;
use crate::format::{Emit, FormatError, Item};
use crate::json::Value;
use crate::problem::Problem;
use crate::source::{Bundle, Source};
use crate::timestamp::Timestamp;

/// The files at or below `path` whose first bytes `recognises` takes, each as a session.
pub(super) fn find(
    path: &Path,
    recognises: impl Fn(&Source, &Opening) -> bool,
) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree::files(path)? {
        let bundle = Bundle::file(&file);
        let source = &bundle.sources[0];
        if recognises(source, &Opening::of(source)?) {
            bundles.push(bundle);
        }
    }
    Ok(bundles)
}

/// The only file of a session.
pub(super) fn only_source(bundle: &Bundle) -> Result<&Source, FormatError> {
    let missing = || FormatError::Invalid(Problem::of(&bundle.root, "no file in it"));
    bundle.sources.first().ok_or_else(missing)
}

/// The whole document.
pub(super) fn parse(source: &Source) -> Result<Value, FormatError> {
    repair::parse(&source.bytes()?)
        .map_err(|reason| FormatError::Invalid(Problem::of(source.path(), reason)))
}

/// Numbers entries and hands them out.
pub(super) struct Output<'a> {
    numbering: Numbering,
    emit: Emit<'a>,
}

impl<'a> Output<'a> {
    pub(super) fn new(numbering: Numbering, emit: Emit<'a>) -> Self {
        Self { numbering, emit }
    }

    pub(super) fn entry(&mut self, mut entry: Entry) {
        self.numbering.assign(&mut entry);
        (self.emit)(Item::Entry(Box::new(entry)));
    }

    pub(super) fn problem(&mut self, problem: Problem) {
        (self.emit)(Item::Problem(problem));
    }
}

/// A count, also where it was written as a float.
pub(super) fn count(value: &Value) -> u64 {
    let float = || value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64);
    value.as_u64().or_else(float).unwrap_or(0)
}

/// The text of a string.
pub(super) fn string(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// The items of a list; of anything else none.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A moment in milliseconds since the Unix epoch.
pub(super) fn from_millis(millis: i64) -> Option<Timestamp> {
    Some(Timestamp::from_instant(jiff::Timestamp::from_millisecond(millis).ok()?, 3))
}

/// JSON that stands in a string where the writer put it there, else the value itself.
pub(super) fn unpacked(value: &Value) -> Value {
    match value.as_str().map(serde_json::from_str) {
        Some(Ok(inner @ (Value::Object(_) | Value::Array(_)))) => inner,
        _ => value.clone(),
    }
}

/// A value as text: strings as they are, all else as JSON, nothing for null.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_may_be_floats() {
        let counts = [json!(3), json!(3.0), json!(-1), json!("3"), json!(null)];
        assert_eq!(counts.map(|value| count(&value)), [3, 3, 0, 0, 0]);
    }

    #[test]
    fn only_structures_are_unpacked() {
        assert_eq!(unpacked(&json!(r#"{"a":1}"#)), json!({"a": 1}));
        assert_eq!(unpacked(&json!("12")), json!("12"));
    }
}
