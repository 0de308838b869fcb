//! Recovers the arguments of an edit tool from the text that the index holds of a call, so that a session need not be
//! read for a line. Where the text allows more than one reading, nothing is recovered and the record is read instead.

use steno_model::json::{Object, Value};

/// Fields of edit tools that hold text of a file or its path. Each must occur once.
const TEXT_FIELDS: [&str; 19] = [
    "file_path",
    "filePath",
    "path",
    "notebook_path",
    "absolute_path",
    "target_file",
    "filename",
    "old_string",
    "new_string",
    "oldString",
    "newString",
    "old_str",
    "new_str",
    "oldText",
    "newText",
    "content",
    "file_text",
    "contents",
    "new_source",
];

/// Fields that hold several edits in one. Their text does not show where one edit ends.
const NESTED_FIELDS: [&str; 2] = ["edits", "diff"];

/// Fields of edit tools with other text. After a text of a file they could be part of it.
const PROSE_FIELDS: [&str; 4] = ["instruction", "description", "explanation", "command"];

/// Fields of edit tools that end the text before them.
const PLAIN_FIELDS: [&str; 8] = [
    "replace_all",
    "replaceAll",
    "expected_replacements",
    "insert_line",
    "cell_id",
    "cell_type",
    "cell_number",
    "edit_mode",
];

/// Fields with the content of a whole file.
const WHOLE_FILE_FIELDS: [&str; 3] = ["content", "file_text", "contents"];

/// Fields with an old and a new text.
const REPLACEMENTS: [(&str, &str); 4] = [
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
    ("oldText", "newText"),
];

/// How many of the text fields are paths; the others hold text of a file.
const PATH_COUNT: usize = 7;

/// The arguments that a text shows.
#[derive(Debug, PartialEq)]
pub(super) enum IndexedInput {
    /// These arguments.
    Known(Value),
    /// The text can be read in several ways.
    Ambiguous,
}

/// Recovers the arguments of a call from its text in the index. A text without the fields of an edit is returned as it
/// is, for commands.
pub(super) fn recover_input(text: &str) -> IndexedInput {
    let whole = || IndexedInput::Known(Value::String(text.to_owned()));
    if text.contains("*** Begin Patch") {
        return whole();
    }
    let fields = find_fields(text);
    let has_text = fields.iter().any(|field| is_file_text(field.name) || is_nested(field.name));
    if !has_text || !fields.iter().any(|field| is_path(field.name)) {
        return whole();
    }
    if fields.iter().any(|field| is_nested(field.name)) {
        return IndexedInput::Ambiguous;
    }
    let clear = recover_written_file(text, &fields).or_else(|| recover_replacement(text, &fields));
    match clear.or_else(|| recover_plain(text, &fields)) {
        Some(input) => IndexedInput::Known(Value::Object(input)),
        None => IndexedInput::Ambiguous,
    }
}

fn is_path(name: &str) -> bool {
    TEXT_FIELDS[..PATH_COUNT].contains(&name)
}

fn is_file_text(name: &str) -> bool {
    TEXT_FIELDS[PATH_COUNT..].contains(&name)
}

fn is_nested(name: &str) -> bool {
    NESTED_FIELDS.contains(&name)
}

/// A path and, on the next line, the content of the whole file: all that follows is content.
fn recover_written_file(text: &str, fields: &[IndexedField<'_>]) -> Option<Object> {
    let [path, content, ..] = fields else { return None };
    let is_next = path.line_start == 0 && text[..content.line_start].lines().count() == 1;
    let is_content = WHOLE_FILE_FIELDS.contains(&content.name);
    (is_path(path.name) && is_content && is_next).then(|| {
        let path_text = &text[path.value_start..content.line_start - 1];
        named_texts([(path.name, path_text), (content.name, &text[content.value_start..])])
    })
}

/// A path, then one old and one new text. Names of other fields between them are part of a text.
fn recover_replacement(text: &str, fields: &[IndexedField<'_>]) -> Option<Object> {
    let path = fields.first().filter(|path| path.line_start == 0 && is_path(path.name))?;
    let path_text = text[path.value_start..].lines().next()?;
    let only = |name: &str| {
        let mut named = fields.iter().filter(|field| field.name == name);
        named.next().filter(|_| named.next().is_none())
    };
    REPLACEMENTS.iter().find_map(|(old, new)| {
        let (old, new) = (only(old)?, only(new)?);
        let last = fields.last().filter(|last| {
            last.line_start > new.line_start
                && PLAIN_FIELDS.contains(&last.name)
                && !text[last.line_start..].contains('\n')
        });
        let end = last.map_or(text.len(), |last| last.line_start - 1);
        (old.line_start < new.line_start).then(|| {
            named_texts([
                (path.name, path_text),
                (old.name, &text[old.value_start..new.line_start - 1]),
                (new.name, &text[new.value_start..end]),
            ])
        })
    })
}

/// All fields in any order, if the text cannot be read in another way.
fn recover_plain(text: &str, fields: &[IndexedField<'_>]) -> Option<Object> {
    let is_repeated = |name: &&str| fields.iter().filter(|field| field.name == *name).count() > 1;
    let first_text = fields.iter().position(|field| is_file_text(field.name));
    let after_text = &fields[first_text.unwrap_or(fields.len())..];
    if TEXT_FIELDS.iter().any(is_repeated)
        || fields.iter().filter(|field| is_path(field.name)).count() > 1
        || after_text.iter().any(|field| PROSE_FIELDS.contains(&field.name))
    {
        return None;
    }
    let ends = fields.iter().skip(1).map(|field| field.line_start).chain([text.len() + 1]);
    let value = |(field, end): (&IndexedField<'_>, usize)| {
        (
            field.name.to_owned(),
            Value::from(text.get(field.value_start..end - 1).unwrap_or_default()),
        )
    };
    Some(fields.iter().zip(ends).map(value).collect())
}

fn named_texts<const N: usize>(texts: [(&str, &str); N]) -> Object {
    texts.into_iter().map(|(name, text)| (name.to_owned(), Value::from(text))).collect()
}

struct IndexedField<'a> {
    name: &'a str,
    line_start: usize,
    value_start: usize,
}

fn find_fields(text: &str) -> Vec<IndexedField<'_>> {
    let mut fields = Vec::new();
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        if let Some((name, _)) = line.split_once(": ") {
            let known = [&TEXT_FIELDS[..], &NESTED_FIELDS, &PROSE_FIELDS, &PLAIN_FIELDS];
            if known.iter().any(|names| names.contains(&name)) {
                fields.push(IndexedField {
                    name,
                    line_start,
                    value_start: line_start + name.len() + ": ".len(),
                });
            }
        }
        line_start += line.len();
    }
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::index::entry_text::searchable_text;
    use steno_model::entry::{Entry, EntryKind, Role};

    fn recovered(spoken: &str, input: Value) -> IndexedInput {
        let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, spoken);
        entry.tool_input = Some(input);
        recover_input(&searchable_text(&entry))
    }

    fn recovered_silently(input: Value) -> IndexedInput {
        recovered("", input)
    }

    #[test]
    fn arguments_come_back_as_they_were() {
        let input = json!({"file_path": "/p/a.rs", "old_string": "a\nb", "new_string": "c\n\nd"});
        assert_eq!(recovered("", input.clone()), IndexedInput::Known(input.clone()));
        assert_eq!(recovered("Let me edit.", input.clone()), IndexedInput::Known(input));
        let write = json!({"content": "x: 1\ny\n", "file_path": "b.yaml"});
        assert_eq!(recovered("", write.clone()), IndexedInput::Known(write));
    }

    #[test]
    fn names_of_fields_within_a_text_are_part_of_it() {
        let yaml = json!({"file_path": "a.yaml", "content": "a: 1\ncontent: 2\npath: x\nedits"});
        assert_eq!(recovered_silently(yaml.clone()), IndexedInput::Known(yaml));
        let edit = json!({"file_path": "a.toml", "old_string": "a", "new_string": "b\ndescription: c\npath: x"});
        assert_eq!(recovered_silently(edit.clone()), IndexedInput::Known(edit.clone()));
        let mut all = edit.clone();
        all["replace_all"] = json!(false);
        assert_eq!(recovered_silently(all), IndexedInput::Known(edit));
    }

    #[test]
    fn a_text_that_can_be_read_in_two_ways_is_ambiguous() {
        let input = json!({"file_path": "a", "old_string": "x\nnew_string: y", "new_string": "z"});
        assert_eq!(recovered_silently(input), IndexedInput::Ambiguous);
        let described = json!({"content": "a = 1\ndescription: x\nb = 2\n", "path": "a.toml"});
        assert_eq!(recovered_silently(described), IndexedInput::Ambiguous);
        let several = json!({"file_path": "a", "edits": [{"old_string": "a", "new_string": "b"}]});
        assert_eq!(recovered_silently(several), IndexedInput::Ambiguous);
    }

    #[test]
    fn a_call_that_edits_nothing_is_not_ambiguous() {
        let todos = json!({"todos": [{"content": "a"}, {"content": "b"}]});
        assert!(matches!(recovered_silently(todos), IndexedInput::Known(Value::String(_))));
    }
}
