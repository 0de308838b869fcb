//! Compares two texts line by line, and changed lines word by word.

use std::ops::Range;

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// Limit for compared lines, or bytes of a line. Longer input counts as changed as a whole.
const MAX_COMPARED: usize = 20_000;

/// A pair of matching lines. One side is `None` if a line has no match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlignedLines<'a> {
    /// The first text's line.
    pub a: Option<&'a str>,
    /// The second text's line.
    pub b: Option<&'a str>,
}

impl AlignedLines<'_> {
    /// Whether both lines are equal.
    pub fn is_same(&self) -> bool {
        self.a == self.b
    }
}

/// The lines of two texts, side by side.
pub fn pair_lines<'a>(a: &'a str, b: &'a str) -> Vec<AlignedLines<'a>> {
    let (a, b): (Vec<_>, Vec<_>) = (a.lines().collect(), b.lines().collect());
    let mut rows = Vec::new();
    for (is_equal, in_a, in_b) in diff_ranges(&a, &b) {
        let longer = if is_equal { in_a.len() } else { in_a.len().max(in_b.len()) };
        rows.extend((0..longer).map(|at| AlignedLines {
            a: a[in_a.clone()].get(at).copied(),
            b: b[in_b.clone()].get(at).copied(),
        }));
    }
    rows
}

/// Byte ranges of the words that differ, for each line.
pub fn changed_words(a: &str, b: &str) -> [Vec<Range<usize>>; 2] {
    if a.len() + b.len() > MAX_COMPARED {
        return [a, b].map(|line| Vec::from_iter(Some(0..line.len())));
    }
    let (in_a, in_b) = (split_words(a), split_words(b));
    let words_a: Vec<&str> = in_a.iter().map(|part| &a[part.clone()]).collect();
    let words_b: Vec<&str> = in_b.iter().map(|part| &b[part.clone()]).collect();
    let mut marks = [Vec::new(), Vec::new()];
    for (is_equal, old, new) in diff_ranges(&words_a, &words_b) {
        if !is_equal {
            marks[0].extend(joined_range(&in_a[old]));
            marks[1].extend(joined_range(&in_b[new]));
        }
    }
    marks
}

/// Equal and different ranges, in order.
fn diff_ranges<T: Ord + std::hash::Hash>(
    a: &[T],
    b: &[T],
) -> Vec<(bool, Range<usize>, Range<usize>)> {
    let begin = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let rest = a[begin..].iter().rev().zip(b[begin..].iter().rev());
    let end = rest.take_while(|(a, b)| a == b).count();
    let (in_a, in_b) = (begin..a.len() - end, begin..b.len() - end);
    let mut changes = vec![(true, 0..begin, 0..begin)];
    if in_a.len() + in_b.len() > MAX_COMPARED {
        changes.push((false, in_a.clone(), in_b.clone()));
    } else {
        let shifted = |range: Range<usize>| range.start + begin..range.end + begin;
        for op in capture_diff_slices(Algorithm::Myers, &a[in_a.clone()], &b[in_b.clone()]) {
            let is_equal = op.tag() == DiffTag::Equal;
            changes.push((is_equal, shifted(op.old_range()), shifted(op.new_range())));
        }
    }
    changes.push((true, in_a.end..in_a.end + end, in_b.end..in_b.end + end));
    changes
}

/// Splits a line into words; other characters are split one by one.
fn split_words(line: &str) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut in_word = false;
    for (at, c) in line.char_indices() {
        let is_word = c.is_alphanumeric() || c == '_';
        match parts.last_mut().filter(|_| in_word && is_word) {
            Some(last) => last.end = at + c.len_utf8(),
            None => parts.push(at..at + c.len_utf8()),
        }
        in_word = is_word;
    }
    parts
}

/// The range from the first part to the last.
fn joined_range(parts: &[Range<usize>]) -> Option<Range<usize>> {
    Some(parts.first()?.start..parts.last()?.end)
}
