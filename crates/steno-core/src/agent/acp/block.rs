//! Content of messages and tools as text. What is no text is told by its type, size and sum.

use similar::{Algorithm, ChangeTag, DiffOp, capture_diff_slices, group_diff_ops};

use crate::agent::attachment;
use crate::agent::fields;
use crate::json::{Object, Value};

/// Texts of more bytes are not compared line by line.
const COMPARED: usize = 1 << 20;

/// Steps that comparing two texts may take for each of their bytes.
const STEPS_PER_BYTE: usize = 64;

/// Lines that are shown before and after a change.
const CONTEXT: usize = 3;

/// A content block in words.
pub(super) fn text(block: &Value) -> String {
    let Some(object) = block.as_object() else { return fields::plain(block) };
    let field = |name| fields::text(object, name);
    match field("type") {
        Some("text") => field("text").unwrap_or_default().to_owned(),
        Some("image" | "audio") => media(object),
        Some("resource_link") => field("uri").unwrap_or_default().to_owned(),
        Some("resource") => fields::object(object, "resource").map_or_else(String::new, resource),
        _ => block.to_string(),
    }
}

/// Several blocks, or one, in words. Texts follow each other as they stand; what is no text has a line of its own.
pub fn texts(content: &Value) -> String {
    let mut all = String::new();
    match content {
        Value::Array(blocks) => blocks.iter().for_each(|block| push(&mut all, block)),
        Value::Null => {}
        block => push(&mut all, block),
    }
    all
}

/// Adds a block to what was said before it.
pub(super) fn push(all: &mut String, block: &Value) {
    let is_text = |block: &Value| block.get("type").and_then(Value::as_str) == Some("text");
    if !is_text(block) && !all.is_empty() && !all.ends_with('\n') {
        all.push('\n');
    }
    all.push_str(&text(block));
    if !is_text(block) {
        all.push('\n');
    }
}

/// Whether content is more than plain text, so that it must be kept as it is too.
pub(super) fn is_rich(content: &Value) -> bool {
    let is_plain = |block: &Value| {
        block.as_object().is_some_and(|block| {
            block.keys().all(|key| key == "type" || key == "text") && block.contains_key("text")
        })
    };
    !fields::items(content).iter().all(is_plain)
}

/// The blocks without the bytes of pictures and sounds, which stand in the log.
pub(super) fn without_bytes(content: &Value) -> Value {
    let mut content = content.clone();
    let blocks = content.as_array_mut().into_iter().flatten();
    for block in blocks.filter_map(Value::as_object_mut) {
        if block.contains_key("data") {
            let words = media(block);
            block.insert("data".to_owned(), words.into());
        }
        if let Some(Value::Object(resource)) = block.get_mut("resource")
            && resource.contains_key("blob")
        {
            let words = self::resource(resource);
            resource.insert("blob".to_owned(), words.into());
        }
    }
    content
}

fn media(block: &Object) -> String {
    let data = fields::text(block, "data").unwrap_or_default();
    attachment::media(fields::text(block, "mimeType"), data)
}

fn resource(resource: &Object) -> String {
    match (fields::text(resource, "text"), fields::text(resource, "blob")) {
        (Some(text), _) => text.to_owned(),
        (_, Some(blob)) => attachment::media(fields::text(resource, "mimeType"), blob),
        _ => fields::text(resource, "uri").unwrap_or_default().to_owned(),
    }
}

/// What a tool changed in a file, as lines with `+` and `-`.
pub fn diff(change: &Object) -> String {
    if let Some(patch) = fields::object(change, "patch") {
        return fields::text(patch, "text").unwrap_or_default().to_owned();
    }
    if change.contains_key("changes") {
        let changes = fields::list(change, "changes").iter().filter_map(Value::as_object);
        return changes.map(changed).collect();
    }
    let field = |name| fields::text(change, name).unwrap_or_default();
    let (path, old, new) = (field("path"), field("oldText"), field("newText"));
    if old.len() + new.len() > COMPARED {
        return format!("{path}\n{new}");
    }
    let most_steps = STEPS_PER_BYTE * (old.len() + new.len());
    let [old, new] = [old, new].map(|text| text.lines().collect::<Vec<_>>());
    if !is_alike(&old, &new, most_steps) {
        let [removed, added] = [("-", &old), ("+", &new)].map(|(mark, lines)| {
            lines.iter().map(|line| format!("{mark}{line}\n")).collect::<String>()
        });
        return format!("{path}\n{removed}{added}");
    }
    let groups = group_diff_ops(capture_diff_slices(Algorithm::Myers, &old, &new), CONTEXT);
    let changes = groups.iter().map(|group| hunk(group, &old, &new));
    format!("{path}\n{}", changes.collect::<Vec<_>>().join("...\n"))
}

/// Whether comparing two texts line by line takes no more than so many steps. The steps grow with the square of the
/// number of lines that differ, so texts that have little in common are not worth comparing.
fn is_alike(old: &[&str], new: &[&str], most_steps: usize) -> bool {
    let most_changes = most_steps.isqrt();
    // How far each diagonal reaches in `old`, as in Myers' algorithm; one place on either side is never reached.
    let middle = most_changes + 1;
    let mut reach = vec![0_usize; 2 * middle + 1];
    for changes in 0..=most_changes {
        for at in (middle - changes..=middle + changes).step_by(2) {
            let is_insertion =
                at == middle - changes || (at < middle + changes && reach[at - 1] < reach[at + 1]);
            let mut old_at = if is_insertion { reach[at + 1] } else { reach[at - 1] + 1 };
            let Some(mut new_at) = (old_at + middle).checked_sub(at) else { continue };
            while old_at < old.len() && new_at < new.len() && old[old_at] == new[new_at] {
                (old_at, new_at) = (old_at + 1, new_at + 1);
            }
            reach[at] = old_at;
            if old_at >= old.len() && new_at >= new.len() {
                return true;
            }
        }
    }
    false
}

/// What happened to a file of which no lines are told.
fn changed(change: &Object) -> String {
    let field = |name| fields::text(change, name);
    let what = field("operation").unwrap_or("change");
    let places = [field("oldPath"), field("path")].into_iter().flatten();
    format!("{what} {}\n", places.collect::<Vec<_>>().join(" -> "))
}

fn hunk(group: &[DiffOp], old: &[&str], new: &[&str]) -> String {
    let changes = group.iter().flat_map(|op| op.iter_changes(old, new));
    let lines = changes.map(|change| {
        let mark = match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        format!("{mark}{}\n", change.value())
    });
    lines.collect()
}
