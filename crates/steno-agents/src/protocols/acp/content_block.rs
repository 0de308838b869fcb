//! Renders content of messages and tools as text. Binary content is described by its type, size and hash.

use similar::{Algorithm, ChangeTag, DiffOp, capture_diff_slices, group_diff_ops};

use crate::decoding::{attachment, json_fields};
use steno_model::json::{Object, Value};

/// Texts above this size, in bytes, are not compared line by line.
const MAX_DIFF_BYTES: usize = 1 << 20;

/// Diff steps allowed per byte of input.
const MAX_STEPS_PER_BYTE: usize = 64;

/// Unchanged lines shown before and after a change.
const CONTEXT_LINES: usize = 3;

/// The text of one content block.
pub(super) fn block_text(block: &Value) -> String {
    let Some(object) = block.as_object() else { return json_fields::plain_text(block) };
    let field = |name| json_fields::text_field(object, name);
    match field("type") {
        Some("text") => field("text").unwrap_or_default().to_owned(),
        Some("image" | "audio") => describe_media(object),
        Some("resource_link") => field("uri").unwrap_or_default().to_owned(),
        Some("resource") => json_fields::object_field(object, "resource")
            .map_or_else(String::new, describe_resource),
        _ => block.to_string(),
    }
}

/// The text of a list of blocks, or of a single block. Text blocks are concatenated. Other blocks get their own
/// lines.
pub fn blocks_text(content: &Value) -> String {
    let mut all = String::new();
    match content {
        Value::Array(blocks) => blocks.iter().for_each(|block| push_block(&mut all, block)),
        Value::Null => {}
        block => push_block(&mut all, block),
    }
    all
}

/// Appends the text of a block.
pub(super) fn push_block(all: &mut String, block: &Value) {
    let is_text = |block: &Value| block.get("type").and_then(Value::as_str) == Some("text");
    if !is_text(block) && !all.is_empty() && !all.ends_with('\n') {
        all.push('\n');
    }
    all.push_str(&block_text(block));
    if !is_text(block) {
        all.push('\n');
    }
}

/// Whether content has more than plain text, so that its blocks are kept in the metadata too.
pub(super) fn has_rich_content(content: &Value) -> bool {
    let is_plain = |block: &Value| {
        block.as_object().is_some_and(|block| {
            block.keys().all(|key| key == "type" || key == "text") && block.contains_key("text")
        })
    };
    !json_fields::list_items(content).iter().all(is_plain)
}

/// The blocks with binary data replaced by its description. The log keeps the bytes.
pub(super) fn without_media_bytes(content: &Value) -> Value {
    let mut content = content.clone();
    let blocks = content.as_array_mut().into_iter().flatten();
    for block in blocks.filter_map(Value::as_object_mut) {
        if block.contains_key("data") {
            let description = describe_media(block);
            block.insert("data".to_owned(), description.into());
        }
        if let Some(Value::Object(resource)) = block.get_mut("resource")
            && resource.contains_key("blob")
        {
            let description = self::describe_resource(resource);
            resource.insert("blob".to_owned(), description.into());
        }
    }
    content
}

fn describe_media(block: &Object) -> String {
    let data = json_fields::text_field(block, "data").unwrap_or_default();
    attachment::describe_base64(json_fields::text_field(block, "mimeType"), data)
}

fn describe_resource(resource: &Object) -> String {
    match (json_fields::text_field(resource, "text"), json_fields::text_field(resource, "blob")) {
        (Some(text), _) => text.to_owned(),
        (_, Some(blob)) => {
            attachment::describe_base64(json_fields::text_field(resource, "mimeType"), blob)
        }
        _ => json_fields::text_field(resource, "uri").unwrap_or_default().to_owned(),
    }
}

/// A change to a file, as a diff with `+` and `-` lines.
pub fn diff_text(change: &Object) -> String {
    if let Some(patch) = json_fields::object_field(change, "patch") {
        return json_fields::text_field(patch, "text").unwrap_or_default().to_owned();
    }
    if change.contains_key("changes") {
        let changes =
            json_fields::list_field(change, "changes").iter().filter_map(Value::as_object);
        return changes.map(change_summary).collect();
    }
    let field = |name| json_fields::text_field(change, name).unwrap_or_default();
    let (path, old, new) = (field("path"), field("oldText"), field("newText"));
    if old.len() + new.len() > MAX_DIFF_BYTES {
        return format!("{path}\n{new}");
    }
    let most_steps = MAX_STEPS_PER_BYTE * (old.len() + new.len());
    let [old, new] = [old, new].map(|text| text.lines().collect::<Vec<_>>());
    if !can_diff_within(&old, &new, most_steps) {
        let [removed, added] = [("-", &old), ("+", &new)].map(|(mark, lines)| {
            lines.iter().map(|line| format!("{mark}{line}\n")).collect::<String>()
        });
        return format!("{path}\n{removed}{added}");
    }
    let groups = group_diff_ops(capture_diff_slices(Algorithm::Myers, &old, &new), CONTEXT_LINES);
    let changes = groups.iter().map(|group| hunk_text(group, &old, &new));
    format!("{path}\n{}", changes.collect::<Vec<_>>().join("...\n"))
}

/// Whether a line diff of two texts takes at most `most_steps` steps. The number of steps grows with the square of
/// the number of differing lines, so texts with little in common are not worth a diff.
fn can_diff_within(old: &[&str], new: &[&str], most_steps: usize) -> bool {
    let most_changes = most_steps.isqrt();
    // For each diagonal of Myers' algorithm, the furthest line reached in `old`. One slot at either end is never
    // reached.
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

/// Describes a file change that comes without its lines, such as a rename.
fn change_summary(change: &Object) -> String {
    let field = |name| json_fields::text_field(change, name);
    let what = field("operation").unwrap_or("change");
    let paths = [field("oldPath"), field("path")].into_iter().flatten();
    format!("{what} {}\n", paths.collect::<Vec<_>>().join(" -> "))
}

fn hunk_text(group: &[DiffOp], old: &[&str], new: &[&str]) -> String {
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
