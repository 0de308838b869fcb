//! Edits of files as HTML: what goes, what comes, and a little of what stays around it.

use maud::{Markup, html};
use std::ops::Range;
use steno_core::compare::text::words;
use steno_core::view::edits::{Edit, Line};

use super::plain::clean;

/// Lines that stay which are shown around those that change.
const AROUND: usize = 3;

/// The longest edit that is shown unfolded.
const SHORT: usize = 60;

/// A line, its sign, and which parts of it are new in it.
type Shown<'a> = (char, &'a str, Vec<Range<usize>>);

/// Whether edits are short enough to be shown unfolded.
pub(crate) fn is_short(edits: &[Edit<'_>]) -> bool {
    let lines: usize = edits.iter().map(|edit| edit.lines.len()).sum();
    (1..=SHORT).contains(&lines)
}

/// One file's edit, with its path and how much it changes.
pub(crate) fn edit(edit: &Edit<'_>) -> Markup {
    html! {
        details.diff open[edit.lines.len() <= SHORT] {
            summary { code { (clean(edit.path)) } (amount(edit)) }
            (lines(&edit.lines))
        }
    }
}

/// How much an edit changes.
pub(crate) fn amount(edit: &Edit<'_>) -> Markup {
    let (removed, added) = counts(&edit.lines);
    html! {
        @if added > 0 { small.plus { "+" (added) } }
        @if removed > 0 { small.minus { "−" (removed) } }
    }
}

/// How many lines go and how many come.
fn counts(lines: &[Line<'_>]) -> (usize, usize) {
    let count = |is: fn(&Line<'_>) -> bool| lines.iter().filter(|line| is(line)).count();
    (count(|line| matches!(line, Line::Removed(_))), count(|line| matches!(line, Line::Added(_))))
}

/// The lines of an edit.
pub(crate) fn lines(lines: &[Line<'_>]) -> Markup {
    html! {
        pre.lines tabindex=[is_wide(lines).then_some("0")] {
            @for (sign, text, marks) in shown(lines) {
                @match sign {
                    '+' => ins { (marked(text, &marks)) "\n" },
                    '-' => del { (marked(text, &marks)) "\n" },
                    ' ' => span { (clean(text)) "\n" },
                    _ => i { (text) "\n" },
                }
            }
        }
    }
}

/// Whether lines may have to be scrolled, so that keys must reach them.
fn is_wide(lines: &[Line<'_>]) -> bool {
    let is_long = |line: &Line<'_>| match line {
        Line::Same(text) | Line::Removed(text) | Line::Added(text) => text.len() > 60,
        Line::Gap => false,
    };
    lines.len() > 20 || lines.iter().any(is_long)
}

/// A line with some parts of it marked.
pub(crate) fn marked(text: &str, marks: &[Range<usize>]) -> Markup {
    let begins = std::iter::once(0).chain(marks.iter().map(|mark| mark.end));
    html! {
        @for (begin, mark) in begins.zip(marks) {
            (clean(&text[begin..mark.start])) mark { (clean(&text[mark.clone()])) }
        }
        (clean(&text[marks.last().map_or(0, |mark| mark.end)..]))
    }
}

fn shown<'a>(lines: &[Line<'a>]) -> Vec<Shown<'a>> {
    let is_near = |at: usize| {
        let from = at.saturating_sub(AROUND);
        let near = &lines[from..lines.len().min(at + AROUND + 1)];
        near.iter().any(|line| matches!(line, Line::Removed(_) | Line::Added(_)))
    };
    let mut shown: Vec<Shown<'a>> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match line {
            Line::Removed(text) => shown.push(('-', text, Vec::new())),
            Line::Added(text) => shown.push(('+', text, Vec::new())),
            Line::Same(text) if is_near(at) => shown.push((' ', text, Vec::new())),
            _ if shown.last().is_some_and(|last| last.0 == '…') => {}
            _ => shown.push(('…', "⋯", Vec::new())),
        }
    }
    mark_words(&mut shown);
    shown
}

/// Marks what changed in lines that stand for each other: as many that go as come, one after the other.
fn mark_words(shown: &mut [Shown<'_>]) {
    let mut at = 0;
    while at < shown.len() {
        let gone = shown[at..].iter().take_while(|line| line.0 == '-').count();
        let come = shown[at + gone..].iter().take_while(|line| line.0 == '+').count();
        if gone > 0 && gone == come {
            for pair in at..at + gone {
                let [old, new] = words(shown[pair].1, shown[pair + gone].1);
                if is_telling(shown[pair].1, &old) && is_telling(shown[pair + gone].1, &new) {
                    (shown[pair].2, shown[pair + gone].2) = (old, new);
                }
            }
        }
        at += (gone + come).max(1);
    }
}

/// Whether marks say more than that the line is another.
fn is_telling(line: &str, marks: &[Range<usize>]) -> bool {
    let marked: usize = marks.iter().map(Range::len).sum();
    marked * 2 < line.len() && marks.len() <= 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_in_a_line_is_marked() {
        let all = [Line::Removed("let a = 1;"), Line::Added("let b = 1;")];
        let text = lines(&all).0;
        assert!(text.contains("<del>let <mark>a</mark> = 1;"), "{text}");
        assert!(text.contains("<ins>let <mark>b</mark> = 1;"), "{text}");
    }

    #[test]
    fn what_stays_is_shown_around_changes_only() {
        let mut all: Vec<_> = (0..20).map(|_| Line::Same("same")).collect();
        all.push(Line::Added("<new>"));
        let text = lines(&all).0;
        assert_eq!(text.matches("<span>same").count(), 3, "{text}");
        assert!(text.contains("<i>⋯\n</i>") && text.contains("<ins>&lt;new&gt;"), "{text}");
    }
}
