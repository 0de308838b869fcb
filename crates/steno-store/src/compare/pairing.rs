//! Pairs entries by similarity.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use super::{alignment, entry_class};
use crate::index::entry_text;
use steno_model::entry::Entry;

/// Up to this number of possible pairs, all are compared.
const MAX_TRIED_PAIRS: usize = 40_000;

/// How many words of an entry are compared.
const MAX_COMPARED_WORDS: usize = 128;

/// Minimum similarity of a pair.
const MIN_SIMILARITY: f32 = 0.4;

/// A range of a session's entries.
type SessionRange<'a> = (&'a [Entry], Range<usize>);

/// The best pairs, ascending in both ranges.
pub(super) fn pair_between(a: SessionRange<'_>, b: SessionRange<'_>) -> Vec<(usize, usize)> {
    if a.1.is_empty() || b.1.is_empty() {
        return Vec::new();
    }
    if a.1.len().saturating_mul(b.1.len()) <= MAX_TRIED_PAIRS {
        best_pairs(a, b)
    } else {
        pairs_in_order(a, b)
    }
}

/// The pairs with the highest total similarity.
fn best_pairs((a, in_a): SessionRange<'_>, (b, in_b): SessionRange<'_>) -> Vec<(usize, usize)> {
    let words = |all: &[Entry], part: &Range<usize>| {
        all[part.clone()].iter().map(word_hashes).collect::<Vec<_>>()
    };
    let (words_a, words_b) = (words(a, &in_a), words(b, &in_b));
    let columns = in_b.len() + 1;
    // The highest total from each position to the end of both ranges.
    let mut most = vec![0.0_f32; (in_a.len() + 1) * columns];
    let mut pairs = vec![0.0_f32; most.len()];
    for row in (0..in_a.len()).rev() {
        for column in (0..in_b.len()).rev() {
            let at = row * columns + column;
            if entry_class(&a[in_a.start + row]) == entry_class(&b[in_b.start + column]) {
                pairs[at] = word_similarity(&words_a[row], &words_b[column]);
            }
            let paired =
                if pairs[at] >= MIN_SIMILARITY { pairs[at] + most[at + columns + 1] } else { 0.0 };
            most[at] = paired.max(most[at + columns]).max(most[at + 1]);
        }
    }
    let (mut row, mut column, mut best) = (0, 0, Vec::new());
    while row < in_a.len() && column < in_b.len() {
        let at = row * columns + column;
        if pairs[at] >= MIN_SIMILARITY && most[at] <= pairs[at] + most[at + columns + 1] {
            best.push((in_a.start + row, in_b.start + column));
            (row, column) = (row + 1, column + 1);
        } else if most[at] <= most[at + columns] {
            row += 1;
        } else {
            column += 1;
        }
    }
    best
}

/// Pairs entries of the same class in order, if they are similar enough.
fn pairs_in_order((a, in_a): SessionRange<'_>, (b, in_b): SessionRange<'_>) -> Vec<(usize, usize)> {
    let sorts = |all: &[Entry], part: &Range<usize>| -> Vec<u64> {
        all[part.clone()].iter().map(|entry| hash_item(&entry_class(entry))).collect()
    };
    let common = alignment::common_items(&sorts(a, &in_a), &sorts(b, &in_b));
    let pairs = common.into_iter().map(|(row, column)| (in_a.start + row, in_b.start + column));
    pairs
        .filter(|(row, column)| {
            word_similarity(&word_hashes(&a[*row]), &word_hashes(&b[*column])) >= MIN_SIMILARITY
        })
        .collect()
}

/// Hashes of an entry's first words, sorted.
fn word_hashes(entry: &Entry) -> Vec<u64> {
    let text = entry_text::searchable_text(entry);
    let all = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words: Vec<u64> = all.take(MAX_COMPARED_WORDS).map(|word| hash_item(&word)).collect();
    words.sort_unstable();
    words
}

/// The share of common words, from 0 to 1.
fn word_similarity(a: &[u64], b: &[u64]) -> f32 {
    if a.is_empty() && b.is_empty() {
        return 1.0;
    }
    let (mut at_a, mut at_b, mut common) = (0, 0, 0);
    while let (Some(left), Some(right)) = (a.get(at_a), b.get(at_b)) {
        common += usize::from(left == right);
        at_a += usize::from(left <= right);
        at_b += usize::from(right <= left);
    }
    2.0 * common as f32 / (a.len() + b.len()) as f32
}

fn hash_item(item: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    item.hash(&mut hasher);
    hasher.finish()
}
