//! Tests of the session reader.

use ratatui::crossterm::event::KeyCode;
use steno_model::{EntryKind, Role, SessionStatus, Transcript};

use crate::browser::state::BrowserEffect;
use crate::browser::{SessionGrowth, WorkerRequest, WorkerResponse};

use super::{TestBrowser, entry, sessions, transcript};

#[test]
fn a_session_is_read() {
    insta::assert_snapshot!(TestBrowser::reading(80, 24, transcript()).screen(), @"
     Fix the login bug                                                          1/8
     codex · 2026-01-04 08:00:00 to 08:00:01 · 8 entries · /code/aaa
    ❯ ▾ 08:00:01 user
    │ Fix the login bug

      ▸ 08:00:01 assistant thinking  Where is it?  +1 line
      ▸ 08:00:01 tool call Read  path: login.rs  +1 line
      ▸ 08:00:01 tool result Read  fn login() {  +2 lines

      ▾ 08:00:01 system compaction
      The story so far.

      ▾ 08:00:01 [01234567…] assistant
      I am a helper.

      ▾ 08:00:01 system error
      529 overloaded

      ▾ 08:00:01 assistant
      Done. The bug is gone.



     Enter fold  x error  c compact  n p prompt  r resume  e export  ? help  q back
    ");
}

#[test]
fn what_is_folded_can_be_unfolded_one_by_one_or_all() {
    let mut browser = TestBrowser::reading(60, 30, transcript());
    browser.press(KeyCode::Tab);
    assert_eq!(browser.at(), "❯ ▸ 08:00:01 assistant thinking  Where is it?  +1 line");
    browser.press(KeyCode::Enter);
    assert!(browser.screen().contains("│ In login.rs."));
    browser.keys("t");
    assert!(browser.screen().contains("│ In login.rs."), "all thoughts are unfolded now");
    browser.keys("to");
    let screen = browser.screen();
    assert!(!screen.contains("│ In login.rs."));
    assert!(screen.contains("  path: login.rs\n  limit: 20"));
    assert!(screen.contains("      bug();"));
}

#[test]
fn jumps_go_to_errors_compactions_subagents_and_prompts() {
    let mut browser = TestBrowser::reading(60, 12, transcript());
    browser.keys("x");
    assert_eq!(browser.at(), "❯ ▾ 08:00:01 system error");
    browser.keys("x");
    assert!(browser.screen().ends_with(" no further error"));
    browser.keys("C");
    assert_eq!(browser.at(), "❯ ▾ 08:00:01 system compaction");
    browser.keys("s");
    assert_eq!(browser.at(), "❯ ▾ 08:00:01 [01234567…] assistant");
    browser.keys("p");
    assert_eq!(browser.at(), "❯ ▾ 08:00:01 user");
    browser.keys("p");
    assert!(browser.screen().ends_with(" no earlier prompt"));
}

#[test]
fn a_text_is_found_in_the_session_and_again() {
    let mut browser = TestBrowser::reading(60, 12, transcript());
    browser.keys("/buggy");
    assert!(browser.screen().ends_with(" Find (no match): buggy"));
    browser.press(KeyCode::Backspace);
    browser.press(KeyCode::Backspace);
    assert_eq!(browser.at(), "❯ Fix the login bug");
    browser.press(KeyCode::Enter);
    browser.keys("m");
    assert_eq!(browser.at(), "❯     bug();", "what is folded is unfolded");
    browser.keys("m");
    assert_eq!(browser.at(), "❯ Done. The bug is gone.");
    browser.keys("MM");
    assert_eq!(browser.at(), "❯ Fix the login bug");
    assert_eq!(browser.keys("q"), None);
    assert!(browser.state.reader.is_none());
}

#[test]
fn a_long_session_is_walked_from_end_to_end() {
    let mut long = Transcript::new(sessions()[0].session.clone());
    for number in 0..20_000 {
        long.push(entry(Role::User, EntryKind::Text, &format!("Prompt {number}\nmore")));
    }
    let mut browser = TestBrowser::reading(30, 10, long);
    browser.keys("G");
    assert_eq!(browser.at(), "❯ more");
    assert!(browser.screen().lines().next().unwrap().ends_with(" 20000/20000"));
    assert!(
        browser.screen().contains("  Prompt 19999") || browser.screen().contains("│ Prompt 19999")
    );
    browser.press(KeyCode::PageUp);
    browser.keys("k");
    let screen = browser.screen();
    assert!(screen.contains("Prompt 19997") && !screen.contains("Prompt 19999"), "{screen}");
    browser.keys("g");
    assert_eq!(browser.at(), "❯ ▾ 08:00:01 user");
    for _ in 0..101 {
        browser.press(KeyCode::Down);
    }
    assert_eq!(browser.at(), "❯ Prompt 25");
}

#[test]
fn a_session_without_entries_can_be_opened() {
    let mut browser = TestBrowser::reading(60, 12, Transcript::new(sessions()[0].session.clone()));
    browser.keys("Gxjkot n");
    browser.press(KeyCode::PageDown);
    assert!(browser.screen().contains(" no entries"));
}

#[test]
fn the_help_lists_every_key() {
    let mut browser = TestBrowser::reading(72, 24, transcript());
    browser.keys("?");
    insta::assert_snapshot!(browser.screen(), @"
     Fix the login bug                                                  1/8
     codex · 2026-01-04 08:00:00 to 08:00:01 · 8 entries · /code/aaa
    ❯ ▾ 08:00:01 user
    │┌ Keys ──────────────────────────────────────────────────────────────┐
     │ ↑ ↓  j k         by line                                           │
     │ PgUp PgDn  ^U ^D by page, by half a page                           │
     │ g G              first, last                                       │
     │ Tab  Shift-Tab   next, previous entry                              │
     │ Enter  Space     fold or unfold                                    │
     │ o  t             fold or unfold all tools, all thoughts            │
     │ x X              next, previous error                              │
     │ c C              next, previous compaction                         │
     │ s S              next, previous subagent                           │
     │ n p              next, previous prompt                             │
     │ /  m M           find; next, previous match                        │
     │ a                add a note to the entry                           │
     │ r                resume the session in its agent                   │
     │ e                export it as Markdown into this folder            │
     │ q  Esc           back to the list                                  │
     │ Ctrl-C           quit                                              │
     └ any key closes this ───────────────────────────────────────────────┘


     Enter fold  x error  c compact  r resume  e export  ? help  q back
    ");
    browser.keys("q");
    assert!(browser.state.reader.is_some(), "the key only closes the help");
}

#[test]
fn the_keys_for_prompts_go_both_ways() {
    let mut long = Transcript::new(sessions()[0].session.clone());
    for number in 0..3 {
        long.push(entry(Role::User, EntryKind::Text, &format!("Prompt {number}")));
        long.push(entry(Role::Assistant, EntryKind::Text, "Answer"));
    }
    let mut browser = TestBrowser::reading(40, 20, long);
    let position = |browser: &TestBrowser| browser.state.reader.as_ref().unwrap().cursor().entry;
    browser.keys("nn");
    assert_eq!(position(&browser), 4);
    browser.keys("p");
    assert_eq!(position(&browser), 2);
}

#[test]
fn a_note_is_added_to_the_entry_at_the_cursor() {
    let mut browser = TestBrowser::reading(60, 12, transcript());
    browser.keys("aroot cause");
    assert!(browser.screen().ends_with(" Note: root cause"));
    let Some(BrowserEffect::Request(WorkerRequest::AddNote(name, entry, text))) =
        browser.press(KeyCode::Enter)
    else {
        panic!("Enter adds the note")
    };
    assert_eq!((name.id.as_str(), text.as_str()), ("aaa", "root cause"));
    assert_eq!(entry, browser.state.reader.as_ref().unwrap().transcript.entries[0].entry_id);
    browser.state.apply_response(WorkerResponse::Noted(Err("the store is full".to_owned())));
    assert!(browser.screen().ends_with(" the store is full"));
    browser.keys("anothing");
    assert_eq!(browser.press(KeyCode::Esc), None);
    assert!(!browser.state.is_typing && browser.state.reader.is_some());
    browser.keys("a ");
    assert_eq!(browser.press(KeyCode::Enter), None, "a blank note is none");
}

/// Answers a request for new entries with a session that has `entries` more texts.
fn answer_growth(browser: &mut TestBrowser, entries: &[&str]) {
    let Some(WorkerRequest::Follow(name, _)) = browser.state.request_growth() else {
        panic!("a running session is followed")
    };
    let mut transcript = running_transcript();
    for text in entries {
        transcript.push(entry(Role::Assistant, EntryKind::Text, text));
    }
    let growth = SessionGrowth { size: 10, transcript: Some(transcript) };
    browser.state.apply_response(WorkerResponse::Followed(name, Box::new(Ok(growth))));
}

fn running_transcript() -> Transcript {
    let mut transcript = transcript();
    transcript.session.status = SessionStatus::Running;
    transcript
}

#[test]
fn a_running_session_grows_and_the_cursor_stays() {
    let mut browser = TestBrowser::reading(80, 24, running_transcript());
    let before = browser.at();
    answer_growth(&mut browser, &["One more thing."]);
    assert_eq!(browser.at(), before);
    let screen = browser.screen();
    assert!(screen.lines().next().unwrap().ends_with("1/9"), "{screen}");
    assert!(screen.contains("1 new entry; G goes to the end"), "{screen}");
    browser.keys("G");
    answer_growth(&mut browser, &["One more thing.", "And another."]);
    assert_eq!(browser.at(), "❯ And another.", "a cursor at the end follows");
    assert!(!browser.screen().contains("new entr"));
}

#[test]
fn only_a_running_session_is_followed_and_only_once_at_a_time() {
    let mut browser = TestBrowser::reading(80, 24, transcript());
    assert_eq!(browser.state.request_growth(), None);
    let mut browser = TestBrowser::reading(80, 24, running_transcript());
    let Some(WorkerRequest::Follow(name, None)) = browser.state.request_growth() else { panic!() };
    assert_eq!(browser.state.request_growth(), None, "a request is pending");
    let unchanged = SessionGrowth { size: 7, transcript: None };
    browser.state.apply_response(WorkerResponse::Followed(name.clone(), Box::new(Ok(unchanged))));
    assert_eq!(
        browser.state.request_growth(),
        Some(WorkerRequest::Follow(name.clone(), Some(7))),
        "a session of this size is not read again"
    );
    let error = Err("cannot read the session".to_owned());
    browser.state.apply_response(WorkerResponse::Followed(name, Box::new(error)));
    assert!(browser.screen().ends_with("cannot read the session"));
    assert_eq!(browser.state.request_growth(), None, "an error ends it");
}
