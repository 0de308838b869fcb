//! Renders edits of files: removed lines, added lines, and some context.

use maud::{Markup, html};
use std::ops::Range;
use steno_store::compare::text_diff::changed_words;
use steno_store::view::edits::{EditLine, FileEdit};
use steno_store::view::file_changes::FileChange;

use super::plain::clean_text;
use crate::addresses::path_in_project;

/// How many unchanged lines are shown around a change.
const CONTEXT_LINES: usize = 3;

/// The longest unfolded edit.
const MAX_UNFOLDED_LINES: usize = 60;

/// A line's sign, its text, and the parts of it that changed.
type DiffLine<'a> = (char, &'a str, Vec<Range<usize>>);

/// Whether edits are short enough to be shown unfolded.
pub(crate) fn is_short_edit(edits: &[FileEdit<'_>]) -> bool {
    let lines: usize = edits.iter().map(|edit| edit.lines.len()).sum();
    (1..=MAX_UNFOLDED_LINES).contains(&lines)
}

/// The edit of one file: its path, its size and its lines.
pub(crate) fn edit_details(edit: &FileEdit<'_>, project: Option<&str>) -> Markup {
    html! {
        details.diff open[edit.lines.len() <= MAX_UNFOLDED_LINES] {
            summary { code title=(clean_text(edit.path)) { (clean_text(path_in_project(edit.path, project))) } (edit_amount(edit)) }
            (edit_lines(&edit.lines))
        }
    }
}

/// How many lines an edit adds and removes.
pub(crate) fn edit_amount(edit: &FileEdit<'_>) -> Markup {
    lines_amount(&edit.lines)
}

/// How many lines are added and removed.
pub(crate) fn lines_amount(lines: &[EditLine<'_>]) -> Markup {
    let (removed, added) = count_changes(lines);
    html! {
        @if added > 0 { small.plus title="Lines added" { "+" (added) } }
        @if removed > 0 { small.minus title="Lines removed" { "−" (removed) } }
    }
}

/// How many lines are removed and added.
pub(crate) fn count_changes(lines: &[EditLine<'_>]) -> (usize, usize) {
    let count = |is: fn(&EditLine<'_>) -> bool| lines.iter().filter(|line| is(line)).count();
    (
        count(|line| matches!(line, EditLine::Removed(_))),
        count(|line| matches!(line, EditLine::Added(_))),
    )
}

/// The lines of an edit.
pub(crate) fn edit_lines(lines: &[EditLine<'_>]) -> Markup {
    linked_lines(lines, &|_| None)
}

/// The lines of a file's net change, each added line with a link to the entry that wrote it.
pub(crate) fn change_lines(change: &FileChange) -> Markup {
    linked_lines(&change.lines(), &|line| change.entry_of_line(line))
}

fn linked_lines(lines: &[EditLine<'_>], entry_of: &dyn Fn(&str) -> Option<usize>) -> Markup {
    html! {
        pre.lines tabindex=[needs_scrolling(lines).then_some("0")] {
            @for (sign, text, marks) in shown_lines(lines) {
                @match sign {
                    '+' => ins { (marked_line(text, &marks)) (writer_link(entry_of(text))) "\n" },
                    '-' => del { (marked_line(text, &marks)) "\n" },
                    ' ' => span { (clean_text(text)) "\n" },
                    _ => i { (text) "\n" },
                }
            }
        }
    }
}

fn writer_link(entry: Option<usize>) -> Markup {
    html! {
        @if let Some(number) = entry {
            a.writer href={ "#e" (number) } title={ "Entry " (number) " wrote this line" } { (number) }
        }
    }
}

/// Whether the lines may need scrolling, and so must be reachable by keyboard.
fn needs_scrolling(lines: &[EditLine<'_>]) -> bool {
    let is_long = |line: &EditLine<'_>| match line {
        EditLine::Same(text) | EditLine::Removed(text) | EditLine::Added(text) => text.len() > 60,
        EditLine::Gap => false,
    };
    lines.len() > 20 || lines.iter().any(is_long)
}

/// A line with some parts marked.
pub(crate) fn marked_line(text: &str, marks: &[Range<usize>]) -> Markup {
    let begins = std::iter::once(0).chain(marks.iter().map(|mark| mark.end));
    html! {
        @for (begin, mark) in begins.zip(marks) {
            (clean_text(&text[begin..mark.start])) mark { (clean_text(&text[mark.clone()])) }
        }
        (clean_text(&text[marks.last().map_or(0, |mark| mark.end)..]))
    }
}

fn shown_lines<'a>(lines: &[EditLine<'a>]) -> Vec<DiffLine<'a>> {
    let is_near = |at: usize| {
        let from = at.saturating_sub(CONTEXT_LINES);
        let near = &lines[from..lines.len().min(at + CONTEXT_LINES + 1)];
        near.iter().any(|line| matches!(line, EditLine::Removed(_) | EditLine::Added(_)))
    };
    let mut shown: Vec<DiffLine<'a>> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match line {
            EditLine::Removed(text) => shown.push(('-', text, Vec::new())),
            EditLine::Added(text) => shown.push(('+', text, Vec::new())),
            EditLine::Same(text) if is_near(at) => shown.push((' ', text, Vec::new())),
            _ if shown.last().is_some_and(|last| last.0 == '…') => {}
            _ => shown.push(('…', "⋯", Vec::new())),
        }
    }
    mark_words(&mut shown);
    shown
}

/// Marks changed words where a run of removed lines is followed by as many added ones.
fn mark_words(shown: &mut [DiffLine<'_>]) {
    let mut at = 0;
    while at < shown.len() {
        let gone = shown[at..].iter().take_while(|line| line.0 == '-').count();
        let come = shown[at + gone..].iter().take_while(|line| line.0 == '+').count();
        if gone > 0 && gone == come {
            for pair in at..at + gone {
                let [old, new] = changed_words(shown[pair].1, shown[pair + gone].1);
                if is_useful_marking(shown[pair].1, &old)
                    && is_useful_marking(shown[pair + gone].1, &new)
                {
                    (shown[pair].2, shown[pair + gone].2) = (old, new);
                }
            }
        }
        at += (gone + come).max(1);
    }
}

/// Whether the marks help: they cover less than half of the line and are few.
fn is_useful_marking(line: &str, marks: &[Range<usize>]) -> bool {
    let marked: usize = marks.iter().map(Range::len).sum();
    marked * 2 < line.len() && marks.len() <= 4
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steno_model::{Entry, EntryKind, Role};
    use steno_store::view::file_changes::find_file_changes;

    use super::*;

    #[test]
    fn changed_words_are_marked() {
        let all = [EditLine::Removed("let a = 1;"), EditLine::Added("let b = 1;")];
        let text = edit_lines(&all).0;
        assert!(text.contains("<del>let <mark>a</mark> = 1;"), "{text}");
        assert!(text.contains("<ins>let <mark>b</mark> = 1;"), "{text}");
    }

    #[test]
    fn lines_of_a_net_change_link_to_their_entries() {
        let call = |old: &str, new: &str| {
            let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
            entry.tool_name = Some("Edit".to_owned());
            entry.tool_input =
                Some(json!({"file_path": "a.rs", "old_string": old, "new_string": new}));
            entry
        };
        let change = &find_file_changes(&[call("a", "one"), call("b", "two")])[0];
        let text = change_lines(change).0;
        assert!(text.contains(r##"<ins>two<a class="writer" href="#e1""##), "{text}");
    }

    #[test]
    fn unchanged_lines_are_context_only() {
        let mut all: Vec<_> = (0..20).map(|_| EditLine::Same("same")).collect();
        all.push(EditLine::Added("<new>"));
        let text = edit_lines(&all).0;
        assert_eq!(text.matches("<span>same").count(), 3, "{text}");
        assert!(text.contains("<i>⋯\n</i>") && text.contains("<ins>&lt;new&gt;"), "{text}");
    }
}
