//! Tests of `steno` without arguments, in a real terminal.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};

use crate::harness::Home;
use crate::search::synced;
use crate::terminal::Terminal;

const ESCAPE: &str = "\x1b";

#[test]
fn sessions_are_listed_and_filtered() {
    let home = synced(3);
    let mut terminal = Terminal::browser(&home);
    terminal.shows(&["3 sessions"]);
    terminal.hides("looking for sessions");
    insta::assert_snapshot!(terminal.rests_at(&["3 sessions"]), @"
     steno  3 sessions
     press / to filter, s to search all text
      01-03 09:15  claude-code       4  please find pneedle2x now
      01-02 09:15  claude-code       4  please find pneedle1x now
      01-01 09:15  claude-code       4  please find pneedle0x now













    ────────────────────────────────────────────────────────────────────────────────
     please find pneedle2x now
     claude-code · 00000002-2fa1-41d2-883f-0016d3cca427 · completed
     2026-01-03 09:15:01 to 09:15:04 · 4 entries · 3 tokens in, 4 out · claude-tes…
     /code/project2
     Enter open  / filter  s search  r resume  e export  ? help  q quit
    ");
    terminal.press("/needle1");
    insta::assert_snapshot!(terminal.rests_at(&["1 of 3 sessions"]), @"
     steno  1 of 3 sessions
     Filter: needle1
      01-02 09:15  claude-code       4  please find pneedle1x now















    ────────────────────────────────────────────────────────────────────────────────
     please find pneedle1x now
     claude-code · 00000001-2fa1-41d2-883f-0016d3cca427 · completed
     2026-01-02 09:15:01 to 09:15:04 · 4 entries · 3 tokens in, 4 out · claude-tes…
     /code/project1
     Enter open  ↑↓ choose  Tab search all text  Esc done
    ");
}

#[test]
fn a_session_is_read_and_unfolded() {
    let home = synced(3);
    let mut terminal = Terminal::browser(&home);
    terminal.press("/needle1");
    terminal.shows(&["1 of 3 sessions"]);
    terminal.press("\r");
    insta::assert_snapshot!(terminal.rests_at(&["1/4"]), @"
     please find pneedle1x now                                                  1/4
     claude-code · 2026-01-02 09:15:01 to 09:15:04 · 4 entries · 3 tokens in, 4 out…
    ❯ ▾ 09:15:01 user
    │ please find pneedle1x now

      ▸ 09:15:02 assistant thinking  maybe tneedle1x helps
      ▸ 09:15:03 tool call Bash  command: grep ineedle1x src/deep_folder/parseLine.…
      ▸ 09:15:04 tool result Bash  one  +2 lines















     Enter fold  x error  c compact  n p prompt  r resume  e export  ? help  q back
    ");
    terminal.press("\t\t\r");
    terminal.shows(&["❯ ▾ 09:15:03 tool call Bash", "│ command: grep ineedle1x src"]);
    terminal.press("\r");
    terminal.shows(&["❯ ▸ 09:15:03 tool call Bash  command: grep ineedle1x src"]);
    terminal.press("?");
    terminal.shows(&["Keys", "next, previous compaction"]);
    terminal.press(" ");
    terminal.hides("Keys");
    terminal.press("q");
    terminal.shows(&["1 of 3 sessions"]);
    terminal.press("q");
    assert_eq!(terminal.ends(), Some(0));
    assert!(!terminal.look(vt100::Screen::alternate_screen));
}

#[test]
fn a_hit_is_opened_at_its_entry_and_errors_are_jumped_to() {
    let home = synced(5);
    let mut terminal = Terminal::browser(&home);
    terminal.press("soneedle4x");
    insta::assert_snapshot!(terminal.rests_at(&["1 hit", "two oneedle4x"]), @"
     steno  1 hit
     Search: oneedle4x
      01-05 09:15 claude-code tool result Bash · please find pneedle4x now
        two oneedle4x














    ────────────────────────────────────────────────────────────────────────────────
     one
     two oneedle4x
     three

     Enter open  ↑↓ choose  Tab sessions  Esc done
    ");
    terminal.press("\r");
    terminal.shows(&["❯ two oneedle4x", "4/4"]);
    terminal.press("gx");
    terminal.shows(&["❯ ▾ 09:15:04 tool result Bash"]);
    terminal.press("x");
    terminal.shows(&["no further error"]);
    terminal.press("c");
    terminal.shows(&["no further compaction"]);
    // Each key goes one step back.
    terminal.press(ESCAPE);
    terminal.shows(&["1 hit"]);
    terminal.press(ESCAPE);
    terminal.shows(&["5 sessions"]);
    terminal.press(ESCAPE);
    assert_eq!(terminal.ends(), Some(0));
}

#[test]
fn a_regular_expression_is_searched_while_it_is_typed() {
    let home = synced(3);
    let mut terminal = Terminal::browser(&home);
    terminal.press("s/tneedle[12]x");
    terminal.shows(&["no match"]);
    terminal.press("/");
    terminal.shows(&["2 hits", "maybe tneedle1x helps", "maybe tneedle2x helps"]);
    terminal.press("\x03");
    assert_eq!(terminal.ends(), Some(0));
}

#[test]
fn the_window_may_change_its_size() {
    let home = synced(3);
    let mut terminal = Terminal::browser(&home);
    terminal.shows(&["3 sessions"]);
    terminal.resize(34, 8);
    terminal.shows(&["please find pneedl…", "? help  q quit"]);
    terminal.press("\r");
    terminal.shows(&["❯ ▾ 09:15:01 user"]);
    terminal.resize(3, 2);
    terminal.resize(120, 30);
    terminal.shows(&["4 entries · 3 tokens in, 4 out", "a note  / find"]);
}

#[test]
fn a_session_is_written_with_one_key() {
    let home = synced(1);
    let mut terminal = Terminal::browser(&home);
    terminal.shows(&["1 session"]);
    terminal.press("e");
    terminal.shows(&["written: $HOME/00000000-2fa1-41d2-883f-0016d3cca427.md"]);
    terminal.press("e");
    terminal.shows(&["written: $HOME/00000000-2fa1-41d2-883f-0016d3cca427-2.md"]);
    let text = fs::read_to_string(home.path().join("00000000-2fa1-41d2-883f-0016d3cca427.md"));
    assert!(text.unwrap().contains("please find pneedle0x now"));
    terminal.press("q");
    assert_eq!(terminal.ends(), Some(0));
    terminal.shows(&["$HOME/00000000-2fa1-41d2-883f-0016d3cca427.md", "427-2.md"]);
}

#[test]
fn a_session_is_resumed_in_its_agent_with_one_key() {
    let home = synced(1);
    let mut terminal = Terminal::browser(&home);
    terminal.shows(&["1 session"]);
    terminal.press("r");
    // Its folder never existed.
    terminal.shows(&["the session's folder no longer exists: /code/project0", "1 session"]);
    terminal.press("q");
    assert_eq!(terminal.ends(), Some(0));

    let project = home.path().join("code").canonicalize().unwrap_or(home.path().join("code"));
    fs::create_dir_all(&project).unwrap();
    let project = project.canonicalize().unwrap();
    let name = project.to_string_lossy().replace(['/', '.'], "-");
    let id = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
    let line = crate::search::session(9)
        .replace("/code/project0", &project.to_string_lossy())
        .replace("00000009-2fa1-41d2-883f-0016d3cca427", id);
    home.file(&format!(".claude/projects/{name}/{id}.jsonl"), line);
    home.steno(&["sync"]).ok();
    let agent = home.file("bin/claude", "#!/bin/sh\necho \"$(pwd): claude $*\"\nexit 7\n");
    fs::set_permissions(agent, fs::Permissions::from_mode(0o755)).unwrap();
    let mut terminal = Terminal::browser(&home);
    terminal.shows(&["2 sessions"]);
    terminal.press("r");
    assert_eq!(terminal.ends(), Some(7), "it became the agent");
    terminal.shows(&[&format!("$HOME/code: claude --resume {id}")]);
}

#[test]
fn the_terminal_is_given_back_as_it_was() {
    let home = synced(1);
    let steno = env!("CARGO_BIN_EXE_steno");
    let script = format!("{steno}; echo ended $?; stty -a");
    let mut terminal = Terminal::run(&home, "sh", &["-c", &script], &[]);
    terminal.shows(&["1 session"]);
    assert!(terminal.look(vt100::Screen::alternate_screen));
    terminal.press("q");
    terminal.shows(&["ended 0", " icanon", " echo "]);
    assert!(!terminal.look(|screen| {
        screen.alternate_screen() || screen.hide_cursor() || screen.bracketed_paste()
    }));
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let home = synced(1);
    let mut terminal = Terminal::browser(&home);
    terminal.shows(&["1 session"]);
    let id = terminal.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(terminal.ends(), Some(130));
    assert!(!terminal.look(vt100::Screen::alternate_screen));
}

#[test]
fn colours_are_the_terminals_own_or_none() {
    let home = synced(2);
    for (variables, coloured) in [(vec![], true), (vec![("NO_COLOR", "1")], false)] {
        let terminal = Terminal::run(&home, env!("CARGO_BIN_EXE_steno"), &[], &variables);
        terminal.rests_at(&["2 sessions", "q quit"]);
        let colours = terminal.look(|screen| {
            let places = (0..24).flat_map(|row| (0..80).map(move |column| (row, column)));
            let cells = places.filter_map(|(row, column)| screen.cell(row, column));
            let colours = cells.flat_map(|cell| [cell.fgcolor(), cell.bgcolor()]);
            colours.filter(|colour| *colour != vt100::Color::Default).collect::<Vec<_>>()
        });
        assert_eq!(!colours.is_empty(), coloured);
        assert!(colours.iter().all(|colour| matches!(colour, vt100::Color::Idx(0..16))));
    }
}

#[test]
fn an_empty_store_names_the_way_to_fill_it() {
    let home = Home::new();
    let mut terminal = Terminal::browser(&home);
    assert_eq!(terminal.ends(), Some(0));
    terminal.shows(&["no sessions yet; run `steno sync`"]);
}

#[test]
fn without_a_terminal_the_help_is_printed() {
    let output = synced(1).steno(&[]);
    assert_eq!(output.code, 2, "{output}");
    assert_eq!(output.stdout, "");
    assert!(output.stderr.starts_with("The court reporter for AI agents\n\nUsage: steno"));
}

#[test]
fn it_ends_when_a_terminal_that_sends_no_signal_is_closed() {
    let home = synced(3);
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let side = || fs::File::options().read(true).write(true).open(&name).unwrap();
    let mut steno = home.command(&[]);
    let mut child = steno.stdin(side()).stdout(side()).spawn().unwrap();
    let mut screen = fs::File::from(terminal);
    // The first output is drawn after the terminal is watched.
    assert_ne!(screen.read(&mut [0; 64]).unwrap(), 0);
    drop(screen);
    assert_eq!(child.wait().unwrap().code(), Some(129));
}
