//! Runs the examples and checks what they print.

use steno_model::Clock;

#[path = "../examples/chibi_context.rs"]
#[expect(dead_code, reason = "the tests call `run_example` instead of `main`")]
mod chibi_context;
#[path = "../examples/devflow_store.rs"]
#[expect(dead_code, reason = "the tests call `run_example` instead of `main`")]
mod devflow_store;
#[path = "../examples/leslie_threads.rs"]
#[expect(dead_code, reason = "the tests call `run_example` instead of `main`")]
mod leslie_threads;
#[path = "../examples/weakincentives_sessions.rs"]
#[expect(dead_code, reason = "the tests call `run_example` instead of `main`")]
mod weakincentives_sessions;

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
fn a_chibi_context_is_compacted_and_locked() {
    insta::assert_snapshot!(output_of!(chibi_context), @r#"
    waiting messages: 1
    waiting messages: 0
    4 lines, 0 problems
    [USER]: --- INBOX MESSAGES ---
    [From: main] Please look up quantum computing basics
    --- END INBOX ---

    Start with the inbox

    [TOOL: web_search] {"query":"qubit"}
      → 30b
    [RESEARCH]: A qubit has two states.

    archived lines: 1, active lines: 4
    entries of the session: 5
    lock: Some(Active)
    refused: chibi is writing
    active lines: 5
    "#);
}

#[test]
fn a_devflow_store_records_searches_and_archives() {
    insta::assert_snapshot!(output_of!(devflow_store), @r#"
    ============================================================
    Run: 2026-01-05-ticket-to-pr-TK421
    Flow: ticket-to-pr | Status: completed
    Started: 2026-01-05 09:15:32 | Duration: 0s
    Tokens: 1700 in / 2500 out | Cost: $0.12
    ============================================================

    Turn Summary:
      [1] system: You are an expert software architect.
      [2] user: Generate a spec for TK-421.
      [3] assistant: # Technical Specification

    turn 3 (assistant): api/handler.go
    artifact spec.md (specification, 26 bytes)
    failed review: no such branch
    Run Statistics:
    ----------------------------------------
    Total Runs:      2
      Completed:     1
      Failed:        1
      Canceled:      0
      Active:        0

    Total Tokens:    1740 in / 2500 out
    Avg Tokens/Run:  870 in / 1250 out

    Total Cost:      $0.12
    Avg Cost/Run:    $0.06

    archived 1, kept 1
    restored 3 turns
    "#);
}

#[test]
fn leslie_threads_are_merged() {
    insta::assert_snapshot!(output_of!(leslie_threads), @r#"
    Write the server: plan
    transcript of 14 lines
    refused: Merge conflict detected: plan.md
    merged, conflicts in ["plan.md"], plan: 1. Requests
    Write the client is completed
    thread: Write the server (active)
    thread: Write the client (completed)
    thread: Release (active)
    "#);
}

#[test]
fn a_weakincentives_session_captures_and_restores() {
    insta::assert_snapshot!(output_of!(weakincentives_sessions), @r#"
    plan: [PlanStep { name: "read", is_done: true }]
    plan after a restore: [PlanStep { name: "read", is_done: false }]
    entries: 6, of the assistant: 3
    refused: cannot clear a log slice: weakincentives.transcript:TranscriptEntry
    lines in weakincentives.transcript.TranscriptEntry.jsonl: 6
    [09:15:32] ⚙️ SYSTEM
    You are a helpful coding assistant.

    [09:15:32] 👤 USER
    Please review src/main.py

    [09:15:32] 🤖 ASSISTANT
    Let me read the file first.

    [09:15:32] 🤖 ASSISTANT
    {
      "path": "src/main.py"
    }

    [09:15:32] 🔧 Read
    print('hello')

    [09:15:32] 🤖 ASSISTANT
    It prints a greeting.
    "#);
}
