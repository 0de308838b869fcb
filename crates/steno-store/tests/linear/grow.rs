//! Makes large inputs of small samples: lines, elements of lists, rows and files are repeated, with ids of their own or
//! all with the same ones.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{GrowingInput, InputFiles, database};

/// How copies of a record differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyIds {
    /// Each copy has ids of its own.
    Own,
    /// All have the same.
    Same,
    /// Each copy has ids of its own, and the record before it is its parent.
    Chained,
}

/// Keys with names of the whole session, which stay the same.
const SESSION_KEYS: [&str; 8] = [
    "sessionid",
    "session_id",
    "traceid",
    "trace_id",
    "projectid",
    "runid",
    "thread_id",
    "conversationid",
];

/// Keys with the id of the previous record.
const PARENT_KEYS: [&str; 6] =
    ["parentUuid", "parentId", "parent_id", "parentSpanId", "parentID", "logicalParentUuid"];

/// All the ways in which a sample grows.
pub(crate) fn inputs(name: &str, files: &InputFiles) -> Vec<GrowingInput> {
    let mut inputs = Vec::new();
    for (at, (path, bytes)) in files.iter().enumerate() {
        let of_file = |shape: String, make: Box<dyn Fn(usize) -> Vec<u8>>| {
            let files = files.clone();
            let name = format!("{name} {} {shape}", path.display());
            let make = move |count: usize| {
                let mut files = files.clone();
                files[at].1 = make(count);
                files
            };
            GrowingInput { name, make: Box::new(make) }
        };
        let shapes = match kind_of(path, bytes) {
            FileKind::Lines(lines) => line_shapes(&lines),
            FileKind::Document(document) => list_shapes(&document, |value| value.to_string()),
            FileKind::Database => database::shapes(bytes),
            FileKind::Text(text) => text_shapes(&text),
            FileKind::Binary => Vec::new(),
        };
        inputs.extend(shapes.into_iter().map(|(shape, make)| of_file(shape, make)));
        inputs.push(copied_file(name, files, at));
    }
    inputs
}

/// A way to grow a file, and what it is called.
pub(crate) type FileShape = (String, Box<dyn Fn(usize) -> Vec<u8>>);

enum FileKind {
    Lines(Vec<Value>),
    Document(Value),
    Database,
    Text(String),
    Binary,
}

fn kind_of(path: &Path, bytes: &[u8]) -> FileKind {
    if bytes.starts_with(b"SQLite format 3\0") {
        return FileKind::Database;
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return FileKind::Binary };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines: Result<Vec<Value>, _> = lines.map(serde_json::from_str).collect();
    match (lines, serde_json::from_str(text)) {
        (Ok(lines), _) if path.extension().is_some_and(|end| end == "jsonl") => {
            FileKind::Lines(lines)
        }
        (_, Ok(document)) => FileKind::Document(document),
        (Ok(lines), _) => FileKind::Lines(lines),
        _ => FileKind::Text(text.to_owned()),
    }
}

/// The same file under many names.
fn copied_file(name: &str, files: &InputFiles, at: usize) -> GrowingInput {
    let files = files.clone();
    let name = format!("{name} many files like {}", files[at].0.display());
    let make = move |count: usize| {
        let mut all = files.clone();
        let (path, bytes) = &files[at];
        let end =
            path.extension().map(|end| end.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let copies = (0..count).map(|number| {
            (path.with_file_name(format!("{stem}-{number}")).with_extension(&end), bytes.clone())
        });
        all.extend(copies.collect::<Vec<(PathBuf, Vec<u8>)>>());
        all
    };
    GrowingInput { name, make: Box::new(make) }
}

fn text_shapes(text: &str) -> Vec<FileShape> {
    let (first, rest) = text.split_once("\n\n").unwrap_or((text, text));
    let (first, rest) = (first.to_owned(), rest.to_owned());
    let whole = text.to_owned();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut shapes: Vec<FileShape> = vec![
        ("repeated".to_owned(), Box::new(move |count| whole.repeat(count).into_bytes())),
        (
            "repeated after its head".to_owned(),
            Box::new(move |count| format!("{first}\n\n{}", rest.repeat(count)).into_bytes()),
        ),
    ];
    for at in 0..lines.len() {
        let lines = lines.clone();
        let make = move |count: usize| {
            let mut lines = lines.clone();
            lines[at] = format!("{}\n", lines[at]).repeat(count);
            lines.join("\n").into_bytes()
        };
        shapes.push((format!("line {at} repeated"), Box::new(make)));
    }
    shapes
}

fn line_shapes(lines: &[Value]) -> Vec<FileShape> {
    let mut shapes: Vec<FileShape> = Vec::new();
    for ids in [CopyIds::Own, CopyIds::Same, CopyIds::Chained] {
        let lines = lines.to_vec();
        let make = move |count: usize| {
            let body = copies(&lines, count.div_ceil(lines.len()), ids);
            print_lines([&lines[..1], &body].concat())
        };
        shapes.push((format!("lines with {ids:?} ids"), Box::new(make)));
    }
    let reversed = lines.to_vec();
    shapes.push((
        "lines in reverse order".to_owned(),
        Box::new(move |count| {
            let mut body = copies(&reversed, count.div_ceil(reversed.len()), CopyIds::Chained);
            body.reverse();
            print_lines([&reversed[..1], &body].concat())
        }),
    ));
    let mut seen = HashSet::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| seen.insert(form_of(line))) {
        let (all, one) = (lines.to_vec(), line.clone());
        let make = move |count: usize| {
            let body = copies(std::slice::from_ref(&one), count, CopyIds::Own);
            print_lines([&all[..at], &body, &all[at..]].concat())
        };
        shapes.push((format!("line {at} alone"), Box::new(make)));
        let all = lines.to_vec();
        for (shape, make) in list_shapes(line, |value| value.to_string()) {
            let all = all.clone();
            let make = move |count: usize| {
                let (before, after) =
                    (print_lines(all[..at].to_vec()), print_lines(all[at + 1..].to_vec()));
                [before, make(count), b"\n".to_vec(), after].concat()
            };
            shapes.push((format!("line {at} {shape}"), Box::new(make)));
        }
    }
    for (shape, stray) in [
        ("lines that are no JSON", "stray"),
        ("lines of nothing", ""),
        ("lines of an unknown kind", r#"{"type":"never-heard-of","kind":"x","value":{"a":[1]}}"#),
    ] {
        let lines = lines.to_vec();
        let make = move |count: usize| {
            let stray = format!("{stray}\n").repeat(count).into_bytes();
            [print_lines(lines.clone()), stray, print_lines(lines.clone())].concat()
        };
        shapes.push((shape.to_owned(), Box::new(make)));
    }
    shapes
}

/// For every list in a value, the value with that list grown.
fn list_shapes(value: &Value, print: fn(&Value) -> String) -> Vec<FileShape> {
    let mut lists = Vec::new();
    find_lists(value, String::new(), &mut lists);
    let mut shapes: Vec<FileShape> = Vec::new();
    // The elements of a list have lists of the same form.
    let mut seen = HashSet::new();
    lists.retain(|pointer| seen.insert(pointer.replace(|c: char| c.is_ascii_digit(), "")));
    for pointer in lists {
        let is_outer = pointer.matches('/').count() <= 1;
        for ids in [CopyIds::Own, CopyIds::Same].into_iter().take(if is_outer { 2 } else { 1 }) {
            let (value, place) = (value.clone(), pointer.clone());
            let make = move |count: usize| {
                let mut value = value.clone();
                if let Some(Value::Array(list)) = value.pointer_mut(&place) {
                    *list = copies(list, count.div_ceil(list.len()), ids);
                }
                print(&value).into_bytes()
            };
            shapes.push((format!("list {pointer} with {ids:?} ids"), Box::new(make)));
        }
    }
    shapes
}

fn find_lists(value: &Value, pointer: String, lists: &mut Vec<String>) {
    match value {
        Value::Array(list) => {
            if !list.is_empty() {
                lists.push(pointer.clone());
            }
            for (at, item) in list.iter().enumerate() {
                find_lists(item, format!("{pointer}/{at}"), lists);
            }
        }
        Value::Object(object) => {
            for (key, value) in object {
                find_lists(value, format!("{pointer}/{}", key.replace('/', "~1")), lists);
            }
        }
        _ => {}
    }
}

/// What records of one kind have in common: their keys, and the words that say what they are.
fn form_of(record: &Value) -> String {
    let Value::Object(object) = record else { return String::new() };
    let words = ["type", "traffic", "role", "event", "kind", "method"];
    let parts = object.iter().map(|(key, value)| match value {
        Value::String(word) if words.contains(&key.as_str()) => format!("{key}={word} "),
        Value::Object(_) => format!("{key}({})", form_of(value)),
        _ => format!("{key} "),
    });
    parts.collect()
}

fn print_lines(lines: Vec<Value>) -> Vec<u8> {
    lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes()
}

/// Repeats records.
fn copies(records: &[Value], count: usize, ids: CopyIds) -> Vec<Value> {
    let mut copies = Vec::new();
    let mut last_id = Value::Null;
    for number in 0..count {
        for record in records {
            let mut record = record.clone();
            if ids != CopyIds::Same {
                number_ids(&mut record, number);
            }
            if ids == CopyIds::Chained {
                chain(&mut record, &mut last_id);
            }
            copies.push(record);
        }
    }
    copies
}

/// Makes the record before the parent of a record.
fn chain(record: &mut Value, last_id: &mut Value) {
    let Value::Object(object) = record else { return };
    for key in PARENT_KEYS {
        if let Some(parent) = object.get_mut(key) {
            *parent = last_id.clone();
        }
    }
    if let Some(id) = ["uuid", "id", "spanId"].iter().find_map(|key| object.get(*key)) {
        *last_id = id.clone();
    }
}

/// Adds a number to all ids in a value.
fn number_ids(value: &mut Value, number: usize) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|item| number_ids(item, number)),
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                let name = key.to_ascii_lowercase();
                let is_id = name.ends_with("id") || name == "exchange" || name == "ts";
                match value {
                    Value::String(id) if is_id && !SESSION_KEYS.contains(&name.as_str()) => {
                        id.push_str(&format!("-{number}"));
                    }
                    Value::Number(id) if is_id => {
                        *value = json!(id.as_u64().unwrap_or_default() + 1000 * number as u64);
                    }
                    other => number_ids(other, number),
                }
            }
        }
        _ => {}
    }
}
