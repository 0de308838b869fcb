//! Runs the examples and checks what they print.

use steno_model::Clock;

#[path = "../examples/capture_model_calls.rs"]
#[expect(dead_code, reason = "the tests call `run_example` instead of `main`")]
mod capture_model_calls;
#[path = "../examples/keep_and_search.rs"]
#[expect(dead_code, reason = "the tests call `run_example` instead of `main`")]
mod keep_and_search;
#[path = "../examples/record_a_program.rs"]
#[expect(dead_code, reason = "the tests call `run_example` instead of `main`")]
mod record_a_program;

/// Runs an example in an empty folder at a fixed time, and returns what it printed.
macro_rules! output_of {
    ($example:ident) => {{
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::fixed("2026-01-05T09:15:32Z".parse().unwrap());
        let mut output = Vec::new();
        $example::run_example(folder.path(), &clock, &mut output).unwrap();
        String::from_utf8(output).unwrap()
    }};
}

#[test]
fn model_calls_are_captured_into_a_slice() {
    insta::assert_snapshot!(output_of!(capture_model_calls), @r#"
    added: 2
    added: 0
    tokens: 7
    [09:15:32] 👤 USER
    Hello

    [09:15:32] 🤖 ASSISTANT
    Hello, how can I help?
    "#);
}

#[test]
fn a_session_is_kept_found_and_restored() {
    insta::assert_snapshot!(output_of!(keep_and_search), @r#"
    claude-code: 1 session with 2 entries
    s1: 12 tokens in, 4 out
    entry 1 of s1: In the parser.
    # Where is the bug?

    | Field | Value |
    | --- | --- |
    | Session | s1 |
    | Agent | claude-code |
    | Started | 2026-01-05T09:15:32Z |
    | Ended | 2026-01-05T09:15:40Z |
    | Status | completed |
    | Models | claude-sonnet-4 |
    | Tokens | 12 in, 4 out |

    ## User (2026-01-05T09:15:32Z)

    Where is the bug?

    ## Assistant (2026-01-05T09:15:40Z)

    In the parser.
    s1.jsonl is kept verbatim: true
    "#);
}

#[test]
fn a_program_is_recorded() {
    insta::assert_snapshot!(output_of!(record_a_program), @r#"
    kept, but not readable: true
    0 user: Why does the build fail?
    1 assistant: A semicolon is missing.
    2 assistant: Attempt 1
    3 assistant: Attempt 2
    4 assistant: Attempt 3
    problems: 1, status: completed
    found by search: 1
    "#);
}
