//! What the sections above the entries of a session list: its prompts, and the files that it changed.
//! The page and exported files share these lists.

use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_model::Entry;
use steno_store::view::file_changes::{FileChange, find_file_changes};
use steno_store::view::pictures::{TextSegment, names_picture, split_pictures};
use steno_store::view::quality::SessionQuality;
use steno_store::view::turns::is_prompt;

use crate::addresses::{entry_link, path_in_project};
use crate::prompt_branches::find_branches;
use crate::render::diff;
use crate::render::plain::{clean_text, first_line};
use crate::units::{count_of, exact_count};

/// The fewest prompts that need a table of contents.
pub(crate) const MIN_CONTENTS: usize = 3;

/// How many prompts and files are listed.
const MAX_PROMPTS: usize = 5000;
const MAX_FILES: usize = 300;

/// How many characters of an entry are shown in a list.
const PREVIEW_CHARS: usize = 100;

/// How much each section above the entries of a session lists.
pub(crate) struct SectionCounts {
    pub(crate) prompts: usize,
    pub(crate) files: usize,
    /// The lines that the net changes of all files add and remove.
    pub(crate) lines_added: usize,
    pub(crate) lines_removed: usize,
    pub(crate) quality: SessionQuality,
}

impl SectionCounts {
    /// Counts what the sections of a session list.
    pub(crate) fn from_entries(entries: &[Entry]) -> Self {
        let changes = find_file_changes(entries);
        let lines = changes.iter().map(|change| diff::count_changes(&change.lines()));
        let (lines_removed, lines_added) =
            lines.fold((0, 0), |(removed, added), (minus, plus)| (removed + minus, added + plus));
        Self {
            prompts: listed_prompts(entries).count(),
            files: changes.len(),
            lines_added,
            lines_removed,
            quality: SessionQuality::from_entries(entries),
        }
    }
}

/// A table of contents: the prompts, each with its time.
pub(crate) fn prompt_list(entries: &[Entry], zone: &TimeZone) -> Markup {
    let branches = find_branches(entries);
    let branch_at = |number: usize| branches.iter().find(|branch| branch.prompt == number);
    let left_out = listed_prompts(entries).skip(MAX_PROMPTS).count();
    html! {
        ol.contents-list {
            @for (number, entry) in listed_prompts(entries).take(MAX_PROMPTS) {
                li {
                    a href={ "#e" (number) } {
                        span {
                            @if let Some(branch) = branch_at(number) { b title={ "Went back: instead of entry " (branch.left) } { "↶ " } }
                            (first_line(&entry.content, PREVIEW_CHARS))
                        }
                        @if let Some(at) = entry.created_at { small { (at.in_zone(zone).wall().strftime("%H:%M").to_string()) } }
                    }
                }
            }
        }
        @if left_out > 0 { p.hint { (count_of(left_out as u64, "later prompt")) @if left_out == 1 { " is" } @else { " are" } " not listed." } }
    }
}

/// The prompts of a session and their numbers. A picture belongs to the prompt above it.
pub(crate) fn listed_prompts(entries: &[Entry]) -> impl Iterator<Item = (usize, &Entry)> {
    entries.iter().enumerate().filter(|(_, entry)| is_listed_prompt(entry))
}

/// Whether an entry is a prompt with words of its own.
pub(crate) fn is_listed_prompt(entry: &Entry) -> bool {
    is_prompt(entry) && !is_picture(entry)
}

/// The heading of the section with the files that were changed: how many, and their lines.
pub(crate) fn changes_heading(counts: &SectionCounts) -> Markup {
    let SectionCounts { files, lines_added, lines_removed, .. } = counts;
    html! {
        b { "Files changed" }
        span { (exact_count(*files as u64)) }
        @if *lines_added > 0 { small.plus title="Lines added" { "+" (exact_count(*lines_added as u64)) } }
        @if *lines_removed > 0 { small.minus title="Lines removed" { "−" (exact_count(*lines_removed as u64)) } }
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
pub(crate) fn file_change_list(changes: &[FileChange], project: Option<&str>) -> Markup {
    html! {
        @if changes.is_empty() { p.hint { "No tool of this session wrote a file in a way that Steno understands." } }
        @else { p.hint { (count_of(changes.len() as u64, "file")) " changed. Each diff is the net change of all edits of the file." } }
        @for change in changes.iter().take(MAX_FILES) {
            @let lines = change.lines();
            details.diff {
                summary {
                    code title=(clean_text(&change.path)) { (clean_text(path_in_project(&change.path, project))) }
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

#[cfg(test)]
mod tests {
    use steno_model::{EntryKind, Role};

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

    #[test]
    fn prompts_that_are_not_listed_are_counted() {
        let entries = |count: usize| vec![Entry::new(Role::User, EntryKind::Text, "Go on"); count];
        let list = |count: usize| prompt_list(&entries(count), &TimeZone::UTC).0;
        assert!(!list(MAX_PROMPTS).contains("not listed"));
        assert!(list(MAX_PROMPTS + 3).contains("3 later prompts are not listed."));
    }
}
