//! The longest common subsequence of two sequences.

use std::collections::HashSet;

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// Positions of the items that both sequences share, ascending in both.
pub(super) fn common_items(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    // Items of only one sequence cannot match, and would only cost time.
    let left = shared_positions(a, b);
    let right = shared_positions(b, a);
    let items = |all: &[u64], positions: &[usize]| -> Vec<u64> {
        positions.iter().map(|position| all[*position]).collect()
    };
    let ops = capture_diff_slices(Algorithm::Patience, &items(a, &left), &items(b, &right));
    let equal = ops.into_iter().filter(|op| op.tag() == DiffTag::Equal);
    equal
        .flat_map(|op| op.old_range().zip(op.new_range()))
        .map(|(old, new)| (left[old], right[new]))
        .collect()
}

/// Positions of the items of `all` that are also in `other`.
fn shared_positions(all: &[u64], other: &[u64]) -> Vec<usize> {
    let known: HashSet<u64> = other.iter().copied().collect();
    (0..all.len()).filter(|position| known.contains(&all[*position])).collect()
}
