//! A session that is read.

use ratatui::crossterm::event::KeyCode;
use steno_core::{Kind, Role, Transcript};

use super::{Desk, entry, sessions, transcript};

#[test]
fn a_session_is_read() {
    insta::assert_snapshot!(Desk::reading(80, 24, transcript()).screen(), @"
     Fix the login bug                                                          1/8
     codex · 2026-01-04 08:00:00 to 2026-01-04 08:00:01 · 8 entries · /code/aaa
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



     Enter fold  x error  c compact  a subagent  r resume  e export  ? help  q back
    ");
}

#[test]
fn what_is_folded_can_be_unfolded_one_by_one_or_all() {
    let mut desk = Desk::reading(60, 30, transcript());
    desk.press(KeyCode::Tab);
    assert_eq!(desk.at(), "❯ ▸ 08:00:01 assistant thinking  Where is it?  +1 line");
    desk.press(KeyCode::Enter);
    assert!(desk.screen().contains("│ In login.rs."));
    desk.keys("t");
    assert!(desk.screen().contains("│ In login.rs."), "all thoughts are unfolded now");
    desk.keys("to");
    let screen = desk.screen();
    assert!(!screen.contains("│ In login.rs."));
    assert!(screen.contains("  path: login.rs\n  limit: 20"));
    assert!(screen.contains("      bug();"));
}

#[test]
fn jumps_go_to_errors_compactions_subagents_and_prompts() {
    let mut desk = Desk::reading(60, 12, transcript());
    desk.keys("x");
    assert_eq!(desk.at(), "❯ ▾ 08:00:01 system error");
    desk.keys("x");
    assert!(desk.screen().ends_with(" no further error"));
    desk.keys("C");
    assert_eq!(desk.at(), "❯ ▾ 08:00:01 system compaction");
    desk.keys("a");
    assert_eq!(desk.at(), "❯ ▾ 08:00:01 [01234567…] assistant");
    desk.keys("U");
    assert_eq!(desk.at(), "❯ ▾ 08:00:01 user");
    desk.keys("U");
    assert!(desk.screen().ends_with(" no earlier prompt"));
}

#[test]
fn a_text_is_found_in_the_session_and_again() {
    let mut desk = Desk::reading(60, 12, transcript());
    desk.keys("/buggy");
    assert!(desk.screen().ends_with(" Find (no match): buggy"));
    desk.press(KeyCode::Backspace);
    desk.press(KeyCode::Backspace);
    assert_eq!(desk.at(), "❯ Fix the login bug");
    desk.press(KeyCode::Enter);
    desk.keys("n");
    assert_eq!(desk.at(), "❯     bug();", "what is folded is unfolded");
    desk.keys("n");
    assert_eq!(desk.at(), "❯ Done. The bug is gone.");
    desk.keys("NN");
    assert_eq!(desk.at(), "❯ Fix the login bug");
    assert_eq!(desk.keys("q"), None);
    assert!(desk.state.reader.is_none());
}

#[test]
fn a_long_session_is_walked_from_end_to_end() {
    let mut long = Transcript::new(sessions()[0].session.clone());
    for number in 0..20_000 {
        long.push(entry(Role::User, Kind::Text, &format!("Prompt {number}\nmore")));
    }
    let mut desk = Desk::reading(30, 10, long);
    desk.keys("G");
    assert_eq!(desk.at(), "❯ more");
    assert!(desk.screen().lines().next().unwrap().ends_with(" 20000/20000"));
    assert!(desk.screen().contains("  Prompt 19999") || desk.screen().contains("│ Prompt 19999"));
    desk.press(KeyCode::PageUp);
    desk.keys("k");
    let screen = desk.screen();
    assert!(screen.contains("Prompt 19997") && !screen.contains("Prompt 19999"), "{screen}");
    desk.keys("g");
    assert_eq!(desk.at(), "❯ ▾ 08:00:01 user");
    for _ in 0..101 {
        desk.press(KeyCode::Down);
    }
    assert_eq!(desk.at(), "❯ Prompt 25");
}

#[test]
fn a_session_without_entries_can_be_opened() {
    let mut desk = Desk::reading(60, 12, Transcript::new(sessions()[0].session.clone()));
    desk.keys("Gxjkot n");
    desk.press(KeyCode::PageDown);
    assert!(desk.screen().contains(" nothing was said"));
}

#[test]
fn every_key_is_told() {
    let mut desk = Desk::reading(72, 24, transcript());
    desk.keys("?");
    insta::assert_snapshot!(desk.screen(), @"
     Fix the login bug                                                  1/8
     codex · 2026-01-04 08:00:00 to 2026-01-04 08:00:01 · 8 entries · /code…
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
     │ a A              next, previous subagent                           │
     │ u U              next, previous prompt                             │
     │ /  n N           find; next, previous match                        │
     │ r                go on with the session in its agent               │
     │ e                write it as Markdown into this folder             │
     │ q  Esc           back to the list                                  │
     │ Ctrl-C           quit                                              │
     └ any key closes this ───────────────────────────────────────────────┘



     Enter fold  x error  c compact  r resume  e export  ? help  q back
    ");
    desk.keys("q");
    assert!(desk.state.reader.is_some(), "the key only closes the help");
}
