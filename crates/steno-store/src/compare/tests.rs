//! Matches entries, lines and words.

use proptest::prelude::*;

use super::text_diff::{self, AlignedLines};
use super::*;
use steno_model::entry::{EntryKind, Role};

fn answer(text: &str) -> Entry {
    Entry::new(Role::Assistant, EntryKind::Text, text)
}

fn asked(text: &str) -> Entry {
    Entry::new(Role::User, EntryKind::Text, text)
}

#[test]
fn aligns_entries_by_content() {
    let a = [asked("fix it"), answer("looking at the login code"), answer("done, all tests pass")];
    let b = [
        asked("fix  it\n"),
        answer("first a plan"),
        answer("looking at the logout code"),
        answer("done, all tests pass"),
    ];
    assert_eq!(
        compare_entries(&a, &b),
        [
            EntryChange::Changed(0, 0),
            EntryChange::Added(1),
            EntryChange::Changed(1, 2),
            EntryChange::Same(2, 3)
        ]
    );
    assert_eq!(
        compare_entries(&a, &a),
        [EntryChange::Same(0, 0), EntryChange::Same(1, 1), EntryChange::Same(2, 2)]
    );
    assert_eq!(compare_entries(&a[..1], &[]), [EntryChange::Removed(0)]);
}

#[test]
fn never_pairs_different_speakers_or_tools() {
    let mut call = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
    call.tool_name = Some("Read".to_owned());
    call.tool_input = Some(serde_json::json!({"path": "a.rs"}));
    let mut other = call.clone();
    other.tool_name = Some("Write".to_owned());
    assert_eq!(
        compare_entries(&[call.clone()], &[other]),
        [EntryChange::Removed(0), EntryChange::Added(0)]
    );
    assert_eq!(
        compare_entries(&[answer("hi")], &[asked("hi")]),
        [EntryChange::Removed(0), EntryChange::Added(0)]
    );
    let mut again = call.clone();
    again.source = "subagent:1".to_owned();
    let mut renamed = again.clone();
    renamed.source = "subagent:2".to_owned();
    assert_eq!(compare_entries(&[again], &[renamed]), [EntryChange::Same(0, 0)]);
}

#[test]
fn a_call_with_another_structure_has_changed() {
    let call = |input: serde_json::Value| {
        let mut call = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        call.tool_input = Some(input);
        call
    };
    let (a, b) = (call(serde_json::json!({"x": ["1"]})), call(serde_json::json!({"x": "1"})));
    assert_eq!(compare_entries(&[a], &[b]), [EntryChange::Changed(0, 0)]);
}

#[test]
fn long_and_repetitive_sessions_are_compared() {
    // Shuffled, repeated and changed: the worst case for a comparison.
    let entry = |number: usize, salt: usize| match number % 3 {
        0 => answer(&format!("word{} and more", (number * 7919 + salt) % 50)),
        1 => answer(&format!("{number} {salt} something else every time")),
        _ => asked("ok"),
    };
    let a: Vec<Entry> = (0..10_000).map(|number| entry(number, 0)).collect();
    let b: Vec<Entry> = (0..10_000).map(|number| entry(number, 31)).collect();
    let steps = compare_entries(&a, &b);
    assert!(steps.iter().any(|step| matches!(step, EntryChange::Same(..))));
}

#[test]
fn shows_lines_side_by_side() {
    let row = |a, b| AlignedLines { a, b };
    assert_eq!(
        text_diff::pair_lines("one\ntwo\nthree", "one\n2\n2.5\nthree"),
        [
            row(Some("one"), Some("one")),
            row(Some("two"), Some("2")),
            row(None, Some("2.5")),
            row(Some("three"), Some("three")),
        ]
    );
    assert_eq!(text_diff::pair_lines("", ""), []);
    let (long, other) = ("x\n".repeat(15_000), "y\n".repeat(15_001));
    assert_eq!(text_diff::pair_lines(&long, &other).len(), 15_001);
}

#[test]
fn words_that_changed_are_marked() {
    let marked = |a: &str, b: &str| {
        let [old, new] = text_diff::changed_words(a, b);
        let texts = |line: &str, marks: Vec<std::ops::Range<usize>>| -> Vec<String> {
            marks.into_iter().map(|mark| line[mark].to_owned()).collect()
        };
        (texts(a, old), texts(b, new))
    };
    assert_eq!(
        marked("the login bug", "the logout bug"),
        (vec!["login".into()], vec!["logout".into()])
    );
    assert_eq!(marked("日本語", "日本"), (vec!["日本語".into()], vec!["日本".into()]));
    assert_eq!(marked("same", "same"), (vec![], vec![]));
}

proptest! {
    #[test]
    fn every_entry_comes_once_and_in_its_order(
        a in prop::collection::vec("[ab] [cd]{0,3}", 0..30),
        b in prop::collection::vec("[ab] [cd]{0,3}", 0..30),
    ) {
        let entries = |texts: &[String]| texts.iter().map(|text| answer(text)).collect::<Vec<_>>();
        let (a, b) = (entries(&a), entries(&b));
        let (mut in_a, mut in_b) = (Vec::new(), Vec::new());
        for step in compare_entries(&a, &b) {
            match step {
                EntryChange::Same(x, y) | EntryChange::Changed(x, y) => {
                    prop_assert_eq!(a[x].content == b[y].content, matches!(step, EntryChange::Same(..)));
                    in_a.push(x);
                    in_b.push(y);
                }
                EntryChange::Removed(x) => in_a.push(x),
                EntryChange::Added(y) => in_b.push(y),
            }
        }
        prop_assert_eq!(in_a, (0..a.len()).collect::<Vec<_>>());
        prop_assert_eq!(in_b, (0..b.len()).collect::<Vec<_>>());
    }

    #[test]
    fn rows_and_marks_lose_nothing(a in "([ab x日]{0,6}\n){0,8}", b in "([ab x日]{0,6}\n){0,8}") {
        let rows = text_diff::pair_lines(&a, &b);
        let left: Vec<&str> = rows.iter().filter_map(|row| row.a).collect();
        let right: Vec<&str> = rows.iter().filter_map(|row| row.b).collect();
        prop_assert_eq!(left, a.lines().collect::<Vec<_>>());
        prop_assert_eq!(right, b.lines().collect::<Vec<_>>());
        for row in rows {
            let (Some(a), Some(b)) = (row.a, row.b) else { continue };
            let [old, new] = text_diff::changed_words(a, b);
            let unmarked = |line: &str, marks: &[std::ops::Range<usize>]| -> String {
                let is_marked = |at: &usize| marks.iter().any(|mark| mark.contains(at));
                line.char_indices().filter(|(at, _)| !is_marked(at)).map(|(_, c)| c).collect()
            };
            prop_assert_eq!(unmarked(a, &old), unmarked(b, &new));
        }
    }
}
