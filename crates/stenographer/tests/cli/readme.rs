//! Runs the examples of the README.

use std::fs;
use std::os::unix::fs::symlink;

use crate::harness::Home;

const README: &str = include_str!("../../../../README.md");

/// Commands that build or test the project itself.
const NOT_RUN: [&str; 2] = ["cargo install", "bash scripts/check"];

#[test]
fn every_example_of_the_readme_prints_its_output() {
    let home = Home::new();
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_steno"), bin.join("steno")).unwrap();
    for name in ["chat.jsonl", "bill.jsonl"] {
        home.file(name, printed_by(&format!("cat {name}")));
    }
    let mut count = 0;
    for (command, expected) in examples() {
        if NOT_RUN.iter().any(|prefix| command.starts_with(prefix)) {
            continue;
        }
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut shell = home.program("sh", &["-c", &format!("{command} 2>&1")]);
        shell.env("PATH", path).env("STENO_NOW", "2026-01-05T09:15:32.5Z");
        let output = home.finish(shell, b"");
        assert!(
            matches(&output.stdout, &expected),
            "$ {command}\n{output}\nREADME says:\n{expected}"
        );
        count += 1;
    }
    assert!(count >= 8, "only {count} examples were found");
}

/// Returns the output of a command in the README.
fn printed_by(wanted: &str) -> String {
    examples().into_iter().find(|(command, _)| command == wanted).unwrap().1
}

/// Returns each command of the README with its output.
fn examples() -> Vec<(String, String)> {
    let mut examples: Vec<(String, String)> = Vec::new();
    for block in README.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            match line.strip_prefix("$ ") {
                Some(command) => examples.push((command.to_owned(), String::new())),
                None => {
                    let output = &mut examples.last_mut().unwrap().1;
                    output.push_str(line);
                    output.push('\n');
                }
            }
        }
    }
    examples
}

/// Returns whether the lines match; `...` matches anything, and byte counts are ignored as they depend on the
/// folder's name.
fn matches(got: &str, expected: &str) -> bool {
    let (got, expected) = (without_sizes(got), without_sizes(expected));
    let same = |(got, expected): (&str, &str)| match expected.split_once("...") {
        Some((begin, end)) => got.starts_with(begin) && got.ends_with(end),
        None => got == expected,
    };
    got.lines().count() == expected.lines().count() && got.lines().zip(expected.lines()).all(same)
}

fn without_sizes(text: &str) -> String {
    let words = text.split_inclusive([' ', '\n']).collect::<Vec<_>>();
    let size = |at: usize| words.get(at + 1).is_some_and(|next| next.starts_with("bytes"));
    words.iter().enumerate().map(|(at, word)| if size(at) { "N " } else { word }).collect()
}
