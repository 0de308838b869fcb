//! What the sections above the entries of a session list: its prompts, the files that it changed, and its quality.
//! The page and exported files share these lists.

use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_model::{Entry, EntryKind};
use steno_store::view::amount::format_count;
use steno_store::view::file_changes::FileChange;
use steno_store::view::pictures::{TextSegment, names_picture, split_pictures};
use steno_store::view::quality::{RepeatedEntry, SessionQuality};
use steno_store::view::turns::is_prompt;

use crate::render::diff;
use crate::render::plain::{clean_text, first_line};
use crate::render::tool::call_summary;
use crate::units::{count_of, exact_count};

/// How many prompts, files and entries are listed.
const MAX_PROMPTS: usize = 2000;
const MAX_FILES: usize = 300;
const MAX_LISTED_ENTRIES: usize = 200;

/// How many characters of an entry are shown in a list.
const PREVIEW_CHARS: usize = 100;

/// A table of contents: the prompts, each with its time.
pub(crate) fn prompt_list(entries: &[Entry], zone: &TimeZone) -> Markup {
    let prompts =
        entries.iter().enumerate().filter(|(_, entry)| is_prompt(entry) && !is_picture(entry));
    html! {
        ol.contents-list {
            @for (number, entry) in prompts.take(MAX_PROMPTS) {
                li {
                    a href={ "#e" (number) } {
                        span { (first_line(&entry.content, PREVIEW_CHARS)) }
                        @if let Some(at) = entry.created_at { small { (at.in_zone(zone).wall().strftime("%H:%M").to_string()) } }
                    }
                }
            }
        }
    }
}

/// Whether an entry is only a picture, which was sent with the prompt above it.
fn is_picture(entry: &Entry) -> bool {
    split_pictures(entry.content.trim())
        .iter()
        .all(|segment| matches!(segment, TextSegment::Picture { .. }))
        && names_picture(&entry.content)
}

/// The net changes of files.
pub(crate) fn file_change_list(changes: &[FileChange]) -> Markup {
    html! {
        @if changes.is_empty() { p.hint { "No tool of this session wrote a file in a way that Steno understands." } }
        @else { p.hint { (count_of(changes.len() as u64, "file")) " changed. Each diff is the net change of all edits of the file." } }
        @for change in changes.iter().take(MAX_FILES) {
            @let lines = change.lines();
            details.diff {
                summary {
                    code { (clean_text(&change.path)) }
                    (diff::lines_amount(&lines))
                    small { (count_of(change.entries.len() as u64, "edit")) }
                }
                p.hint { "Edited in " @for number in change.entries.iter().take(40) { (entry_link(*number)) " " } }
                @if lines.is_empty() { p.hint { "All edits of this file were undone." } } @else { (diff::change_lines(change)) }
            }
        }
        @if changes.len() > MAX_FILES { p.hint { (changes.len() - MAX_FILES) " more files are not shown." } }
    }
}

fn entry_link(number: usize) -> Markup {
    html! { a href={ "#e" (number) } { "entry " (number) } }
}

/// What went wrong, each with the entries that show it.
pub(crate) fn quality_report(quality: &SessionQuality, entries: &[Entry]) -> Markup {
    let pairs = |all: &[RepeatedEntry]| {
        all.iter().flat_map(|one| [one.earlier, one.later]).collect::<Vec<_>>()
    };
    let lists = [
        ("Errors and failed tool calls", quality.failures.len(), quality.failures.clone()),
        (
            "Retries: the same call again after it failed",
            quality.retries.len(),
            pairs(&quality.retries),
        ),
        ("Edits that a later edit undid", quality.undone_edits.len(), pairs(&quality.undone_edits)),
        ("Compactions of the context", quality.compactions.len(), quality.compactions.clone()),
    ];
    html! {
        @if let Some(peak) = quality.largest_context {
            p.hint {
                "The largest context had "
                b title={ (exact_count(peak.tokens)) " tokens" } { (format_count(peak.tokens)) " tokens" }
                ", at " (entry_link(peak.number)) "."
            }
        }
        @if quality.is_clean() { p.hint { "No failures, no retries, no undone edits and no compactions." } }
        @for (name, count, numbers) in lists.iter().filter(|(_, count, _)| *count > 0) {
            details.quality {
                summary { b { (exact_count(*count as u64)) } span { (name) } }
                ul { @for number in numbers.iter().take(MAX_LISTED_ENTRIES) { li { (entry_link(*number)) " " code { (entry_preview(&entries[*number])) } } } }
                @if numbers.len() > MAX_LISTED_ENTRIES { p.hint { (numbers.len() - MAX_LISTED_ENTRIES) " more are not shown." } }
            }
        }
    }
}

/// An entry in one line.
fn entry_preview(entry: &Entry) -> String {
    let tool = entry.tool_name.as_deref().unwrap_or_default();
    match entry.kind {
        EntryKind::ToolCall => format!("{tool} {}", call_summary(entry)),
        _ => format!("{tool} {}", first_line(&entry.content, PREVIEW_CHARS)),
    }
}

#[cfg(test)]
mod tests {
    use steno_model::Role;

    use super::*;

    #[test]
    fn pictures_are_no_prompts() {
        let prompt = |text: &str| Entry::new(Role::User, EntryKind::Text, text);
        let picture = format!("[image/png, 70 bytes, blake3 {}]", "0123456789abcdef".repeat(4));
        let entries =
            [prompt("What is this?"), prompt(&picture), prompt(&format!("And {picture}?"))];
        let list = prompt_list(&entries, &TimeZone::UTC).0;
        assert!(list.contains("#e0") && !list.contains("#e1") && list.contains("#e2"), "{list}");
    }
}
