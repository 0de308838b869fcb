//! What commands print on a terminal, small and large: short ids, colours, the pager.

use crate::harness::Home;
use crate::listing::home_with_sessions;
use crate::terminal::Terminal;

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (200, 60);

/// Runs a command on a terminal to its end. Returns the screen without the empty lines at its end.
pub(crate) fn screen(
    home: &Home,
    size: (u16, u16),
    line: &str,
    variables: &[(&str, &str)],
) -> String {
    let mut words = vec![env!("CARGO_BIN_EXE_steno")];
    words.extend(line.split(' '));
    let mut terminal = Terminal::run_sized(home, size, &words, variables);
    terminal.ends();
    let screen = terminal.screen();
    let lines: Vec<&str> = screen.lines().collect();
    let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    lines[..end].join("\n")
}

#[test]
fn a_list_fits_a_small_and_a_large_terminal() {
    let home = home_with_sessions();
    insta::assert_snapshot!(screen(&home, SMALL, "list", &[]), @r"
    STARTED      AGENT        ENTRIES  ID             TITLE
    01-05 09:15  mine               1  chat-1         Read the file
    01-04 09:00  claude-code        2  3cde           Explain the borrow checker
    01-04 09:00  claude-code        2  4def           Make the page faster than it …
    01-03 09:00  claude-code        2  2bcd           Write the feed
    01-02 09:00  claude-code        2  1a2b3c4d-0002  Add a test for the login
    01-01 09:00  claude-code        2  1a2b3c4d-0001  Fix the login timeout
    ");
    insta::assert_snapshot!(screen(&home, LARGE, "list", &[]), @r"
    STARTED      AGENT        ENTRIES  ID             TITLE
    01-05 09:15  mine               1  chat-1         Read the file
    01-04 09:00  claude-code        2  3cde           Explain the borrow checker
    01-04 09:00  claude-code        2  4def           Make the page faster than it has ever been before, on every phone and in every …
    01-03 09:00  claude-code        2  2bcd           Write the feed
    01-02 09:00  claude-code        2  1a2b3c4d-0002  Add a test for the login
    01-01 09:00  claude-code        2  1a2b3c4d-0001  Fix the login timeout
    ");
}

#[test]
fn every_id_on_the_screen_is_accepted() {
    let home = home_with_sessions();
    let screen = screen(&home, SMALL, "list", &[]);
    for line in screen.lines().skip(1) {
        let id = line.split_whitespace().nth(4).unwrap();
        home.steno(&["show", id]).ok();
    }
}

#[test]
fn search_and_cost_fit_a_small_terminal() {
    let home = home_with_sessions();
    insta::assert_snapshot!(screen(&home, SMALL, "search login", &[]), @r"
    1a2b3c4d-0001:0 2026-01-01 09:00 claude-code user · Fix the login timeout
      Fix the login timeout

    1a2b3c4d-0002:0 2026-01-02 09:00 claude-code user · Add a test for the login
      Add a test for the login
    ");
    insta::assert_snapshot!(screen(&home, SMALL, "cost --by session", &[]), @r"
    1 of 6 sessions state no usage and have no row
    SESSION                   INPUT  CACHE WRITE  CACHE READ  OUTPUT    COST
    3cde Explain the borrow…  1.23M            0           0      89  $18.53  ██████
    4def Make the page fast…  1.23M            0           0      89  $18.53  ██████
    1a2b3c4d-0001 Fix the l…  1.23M            0           0      89   $1.24  ▍
    1a2b3c4d-0002 Add a tes…  1.23M            0           0      89   $1.24  ▍
    2bcd Write the feed       1.23M            0           0      89   $1.24  ▍
    total                     6.17M            0           0     445  $40.76
    ");
    insta::assert_snapshot!(screen(&home, LARGE, "cost --by model", &[]), @r"
    MODEL             INPUT  CACHE WRITE  CACHE READ  OUTPUT    COST
    claude-opus-4-1   2.47M            0           0     178  $37.05  ████████████████████████
    claude-haiku-4-5  3.70M            0           0     267   $3.71  ██▍
    total             6.17M            0           0     445  $40.76
    ");
}

#[test]
fn the_sums_of_a_sync_are_readable() {
    let home = Home::new();
    let text = "word ".repeat(300_000);
    home.file(".claude/projects/-w/a.jsonl", crate::listing::line("a", 1, "/w", &text));
    let screen = screen(&home, SMALL, "sync", &[]);
    assert!(screen.contains("claude-code  1         2        1.5 MB"), "{screen}");
}

#[test]
fn show_is_coloured_on_a_terminal_and_plain_in_a_pipe() {
    let home = home_with_sessions();
    let words = [env!("CARGO_BIN_EXE_steno"), "show", "2bcd", "--no-pager"];
    let mut terminal = Terminal::run_sized(&home, SMALL, &words, &[]);
    terminal.ends();
    insta::assert_snapshot!(terminal.screen().trim_end(), @r"
    Write the feed
    claude-code · 2bcd · completed
    2026-01-03 09:00:00 to 09:00:05 · 2 entries · 1,234,567 tokens in, 89 out ·
    $1.24 · claude-haiku-4-5
    /code/blog

    09:00:00 user
    Write the feed

    09:00:05 assistant
    Done with 03.
    ");
    let is_coloured = |screen: &vt100::Screen| {
        (0..24).any(|row| {
            screen.cell(row, 9).is_some_and(|cell| cell.fgcolor() == vt100::Color::Idx(6))
        })
    };
    assert!(terminal.look(is_coloured));
    let mut plain = Terminal::run_sized(&home, SMALL, &words, &[("NO_COLOR", "1")]);
    plain.ends();
    assert_eq!(plain.screen(), terminal.screen());
    assert!(!plain.look(is_coloured));
    assert!(!home.steno(&["show", "2bcd"]).ok().contains('\u{1b}'));
}

/// The pager is a script that marks what passes through it.
#[test]
fn show_goes_through_the_pager_on_a_terminal_only() {
    let home = home_with_sessions();
    let pager = "sed -e 's/^/> /'";
    let paged = screen(&home, SMALL, "show 2bcd", &[("PAGER", pager)]);
    assert!(paged.starts_with("> ") && paged.contains("Write the feed"), "{paged}");
    let direct = screen(&home, SMALL, "show 2bcd --no-pager", &[("PAGER", pager)]);
    assert!(direct.starts_with("Write the feed"), "{direct}");
    for variables in [
        &[("PAGER", pager), ("STENO_PAGER", "")][..],
        &[("PAGER", pager), ("TERM", "dumb")],
        &[("PAGER", "cat")],
        &[("PAGER", "no-such-pager --at-all")],
        &[("PAGER", "'unclosed")],
    ] {
        assert_eq!(screen(&home, SMALL, "show 2bcd", variables), direct, "{variables:?}");
    }
    let mut piped = home.command(&["show", "2bcd"]);
    piped.env("PAGER", pager).env("TERM", "xterm");
    assert!(home.finish(piped, b"").ok().starts_with("Write the feed"));
}

#[test]
fn a_pager_that_is_left_early_is_no_error() {
    let home = Home::new();
    let text = "long line of text ".repeat(40_000);
    home.steno_with(
        &["record", "--session", "long"],
        format!("{{\"role\":\"user\",\"content\":\"{text}\"}}\n").as_bytes(),
    )
    .ok();
    let words = [env!("CARGO_BIN_EXE_steno"), "show", "long"];
    let mut terminal = Terminal::run_sized(&home, SMALL, &words, &[("PAGER", "head -c 10")]);
    assert_eq!(terminal.ends(), Some(0));
    assert!(!terminal.screen().contains("error"), "{}", terminal.screen());
}

#[test]
fn doctor_fits_a_small_terminal() {
    let home = Home::new();
    home.file(".claude/projects/-w/a.jsonl", crate::listing::line("a", 1, "/w", "Hello"));
    home.file(".codex/sessions/2026/01/01/x.jsonl", "");
    let screen = screen(&home, SMALL, "doctor", &[]);
    let sizes = regex::Regex::new(r"\d+(\.\d+)? [KMGT]?B\b").unwrap();
    insta::assert_snapshot!(sizes.replace_all(&screen, "SIZE"), @r"
    store: ~/store: not created yet, SIZE free
    last sync: never
    index: not built yet

    AGENT        KEPT  LAST MESSAGE  NEW FILES  HOOKS          FOLDER
    claude-code  0     -             1          not installed  ~/.claude/projects
    codex        0     -             1          not installed  ~/.codex/sessions

    Claude Code deletes session files after 30 days (cleanupPeriodDays):
    the next one in 29 days

    next: run `steno sync` to copy 2 new or changed files into the store
    next: run `steno hooks install` to record claude-code, codex as they work
    ");
}

#[test]
fn a_large_browser_shows_the_selected_session() {
    let home = home_with_sessions();
    let words = [env!("CARGO_BIN_EXE_steno")];
    let mut terminal = Terminal::run_sized(&home, (160, 30), &words, &[]);
    terminal.press("/blog");
    terminal.shows(&["2 of 6 sessions", "Done with 04."]);
    terminal.press("\x1b[B");
    let screen = terminal.rests_at(&["Done with 03."]);
    insta::assert_snapshot!(screen, @r"
     steno  2 of 6 sessions
     Filter: blog
      01-04 09:00  claude-code       2  Explain the borrow checker        │  Write the feed
      01-03 09:00  claude-code       2  Write the feed                    │  claude-code · 2026-01-03 09:00:00 to 09:00:05 · 2 entries · 1,234,567 tokens in, 89 o…
                                                                          │
                                                                          │ ▾ 09:00:00 user
                                                                          │ Write the feed
                                                                          │
                                                                          │ ▾ 09:00:05 assistant
                                                                          │ Done with 03.
                                                                          │
                                                                          │
                                                                          │
                                                                          │
                                                                          │
                                                                          │
                                                                          │
                                                                          │
                                                                          │
                                                                          │
                                                                          │
    ──────────────────────────────────────────────────────────────────────│
     Write the feed                                                       │
     claude-code · 2bcd · completed                                       │
     2026-01-03 09:00:00 to 09:00:05 · 2 entries · 1,234,567 tokens in, … │
     /code/blog                                                           │
                                                                          │
                                                                          │
                                                                          │
     Enter open  ↑↓ choose  Tab search all text  Esc done
    ");
    terminal.press("\r");
    terminal.shows(&["❯ ▾ 09:00:00 user"]);
    terminal.press("aroot cause #bug\r");
    terminal.shows(&["note added"]);
    terminal.press("qqq");
    terminal.press("\x1b\x1bq");
    terminal.ends();
    let notes = home.steno(&["annotate", "--tag", "bug"]).ok();
    assert!(notes.contains("root cause #bug"), "{notes}");
}
