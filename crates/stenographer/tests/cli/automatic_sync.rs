//! Commands that read sync by themselves, and show something at once.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::{Home, Output};

/// Returns a home with one session of Claude Code, which nothing has copied yet.
fn home_with_session() -> Home {
    let home = Home::new();
    write_session(&home, "aaaa1111", "fix the login");
    home
}

fn write_session(home: &Home, id: &str, prompt: &str) {
    let line = r#"{"type":"user","uuid":"UUID","sessionId":"ID","timestamp":"2026-01-01T00:00:00Z","cwd":"/w","version":"2.1.0","message":{"role":"user","content":"PROMPT"}}"#;
    let line = line.replace("ID", id).replace("UU", "u").replace("PROMPT", prompt);
    home.file(&format!(".claude/projects/-w/{id}.jsonl"), line + "\n");
}

/// Returns a command that may sync by itself.
fn automatic(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(args);
    command.env_remove("STENO_SYNC_AUTOMATIC").env("STENO_NOW", "2026-01-05T09:15:32.5Z");
    command
}

fn steno(home: &Home, args: &[&str]) -> Output {
    home.finish(automatic(home, args), b"")
}

#[test]
fn a_session_that_has_just_begun_is_shown() {
    let home = home_with_session();
    steno(&home, &["sync"]).ok();
    age_last_sync(&home);
    write_session(&home, "bbbb2222", "rotate the logs");
    let shown = steno(&home, &["show", "bbbb2222"]);
    assert!(shown.code == 0 && shown.stdout.contains("rotate the logs"), "{shown}");
}

/// Makes the last sync an old one.
fn age_last_sync(home: &Home) {
    let path = home.path().join("store/last-sync.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut last: serde_json::Value = serde_json::from_str(&text).unwrap();
    last["finished"] = "2026-01-01T00:00:00Z".into();
    std::fs::write(path, last.to_string()).unwrap();
}

/// Makes the last sync a long one, so that the next one is not due for minutes.
fn lengthen_last_sync(home: &Home) {
    let path = home.path().join("store/last-sync.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut last: serde_json::Value = serde_json::from_str(&text).unwrap();
    last["took_ms"] = 60_000.into();
    std::fs::write(path, last.to_string()).unwrap();
}

/// Repeats a command until its output contains `text`.
#[track_caller]
fn until_listed(home: &Home, text: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !home.steno(&["list"]).stdout.contains(text) {
        assert!(Instant::now() < deadline, "{}", home.steno(&["list"]));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn list_on_a_new_machine_lists_the_sessions_of_its_agents() {
    let home = home_with_session();
    let output = steno(&home, &["list"]);
    assert!(output.stdout.contains("fix the login"), "{output}");
    assert!(
        output
            .stderr
            .starts_with("first run: copying the sessions of claude-code into the store\n"),
        "{output}"
    );
    assert_eq!(output.code, 0);
}

#[test]
fn search_and_cost_sync_too_and_their_json_is_pure() {
    for args in
        [["search", "login", "--json"], ["list", "-n1", "--json"], ["cost", "--by=agent", "--json"]]
    {
        let home = home_with_session();
        let output = steno(&home, &args);
        for line in output.stdout.lines() {
            serde_json::from_str::<serde_json::Value>(line).expect(line);
        }
        assert!(output.stderr.starts_with("first run: "), "{output}");
        until_listed(&home, "fix the login");
    }
    let home = home_with_session();
    assert!(steno(&home, &["search", "login", "--json"]).stdout.contains("aaaa1111"));
}

#[test]
fn an_old_sync_is_repeated_and_a_new_one_is_not() {
    let home = home_with_session();
    steno(&home, &["list"]).ok();
    until_finished(&home);
    lengthen_last_sync(&home);
    write_session(&home, "bbbb2222", "second thoughts");
    let output = steno(&home, &["list"]);
    assert!(!output.stdout.contains("second"), "{output}");
    assert_eq!(output.stderr, "");
    age_last_sync(&home);
    steno(&home, &["list"]).ok();
    until_listed(&home, "second thoughts");
}

/// Waits until the sync in the background has ended.
fn until_finished(home: &Home) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !home.path().join("store/last-sync.json").exists() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn flag_setting_and_variable_disable_it() {
    let home = home_with_session();
    let nothing = |output: Output| {
        assert!(output.stderr.starts_with("no sessions yet; "), "{output}");
        assert!(!home.path().join("store/last-sync.json").exists());
    };
    nothing(steno(&home, &["list", "--no-sync"]));
    nothing(steno(&home, &["--no-sync", "list"]));
    nothing(steno(&home, &["stats", "--no-sync"]));
    nothing(steno(&home, &["--no-sync", "stats"]));
    nothing(home.steno(&["list"]));
    home.file("store/config.toml", "[sync]\nautomatic = false\n");
    nothing(steno(&home, &["list"]));
    let mut command = automatic(&home, &["list"]);
    command.env("STENO_SYNC_AUTOMATIC", "true");
    assert!(home.finish(command, b"").ok().contains("fix the login"));
}

#[test]
fn a_wrong_setting_is_named_and_the_command_still_answers() {
    let home = home_with_session();
    home.file("store/config.toml", "[sync]\nautomatic = 3\n");
    let output = steno(&home, &["list"]);
    let warning =
        "warning: could not sync: $HOME/store/config.toml:2: automatic is not true or false\n";
    assert!(output.stderr.starts_with(warning), "{output}");
    assert_eq!(output.code, 0);
    let mut command = automatic(&home, &["list"]);
    command.env("STENO_SYNC_AUTOMATIC", "maybe");
    let output = home.finish(command, b"");
    assert!(output.stderr.contains("STENO_SYNC_AUTOMATIC is not true or false: maybe"), "{output}");
}

#[test]
fn an_empty_home_creates_no_store() {
    let home = Home::new();
    let output = steno(&home, &["list"]);
    assert!(output.stderr.starts_with("no sessions yet; "), "{output}");
    assert!(!home.path().join("store/sync.lock").exists());
}

#[test]
fn the_store_of_another_home_is_left_alone() {
    let home = home_with_session();
    steno(&home, &["list"]).ok();
    until_finished(&home);
    age_last_sync(&home);
    let guest = Home::new();
    write_session(&guest, "cccc3333", "private matters");
    let mut command = automatic(&guest, &["list"]);
    command.env("STENO_HOME", home.path().join("store"));
    let output = guest.finish(command, b"");
    assert!(output.stdout.contains("fix the login") && output.stderr.is_empty(), "{output}");
    assert!(!home.steno(&["list"]).ok().contains("private"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_that_cannot_be_written_is_not_synced_to() {
    let home = home_with_session();
    let mut command = automatic(&home, &["list"]);
    command.env("STENO_HOME", "/proc/steno");
    let output = home.finish(command, b"");
    assert!(!output.stderr.contains("first run"), "{output}");
}

#[test]
fn a_running_sync_is_not_repeated() {
    let home = home_with_session();
    let path = home.file("store/sync.lock", "");
    let lock = std::fs::File::options().append(true).open(path).unwrap();
    lock.lock().unwrap();
    let output = steno(&home, &["list"]);
    assert!(
        output.stderr.starts_with("a sync is running; new sessions may be missing\n"),
        "{output}"
    );
    assert!(!output.stdout.contains("login"), "{output}");
}

/// The importer waits for a lock that the test holds, so the command cannot wait for all sessions.
#[test]
fn the_sync_outlives_the_command() {
    let home = home_with_session();
    let path = home.file("store/keeping.lock", "");
    let lock = std::fs::File::options().append(true).open(path).unwrap();
    lock.lock().unwrap();
    let output = steno(&home, &["list"]);
    assert!(
        output.stderr.contains("still copying sessions in the background; some are missing\n"),
        "{output}"
    );
    assert!(!output.stdout.contains("login"), "{output}");
    drop(lock);
    until_listed(&home, "fix the login");
}

#[test]
fn several_commands_at_once_copy_each_session_once() {
    let home = Home::new();
    for number in 0..20 {
        write_session(&home, &format!("{number:04}aaaa"), &format!("task number {number}"));
    }
    let commands: Vec<_> =
        (0..4).map(|_| automatic(&home, &["list", "--quiet"]).spawn().unwrap()).collect();
    for mut command in commands {
        assert!(command.wait().unwrap().success());
    }
    until_finished(&home);
    let listed = home.steno(&["list", "--json"]).ok();
    assert_eq!(listed.lines().count(), 20, "{listed}");
    home.steno(&["verify"]).ok();
}

#[cfg(unix)]
#[test]
fn the_browser_opens_with_sessions_on_a_new_machine() {
    use crate::terminal::Terminal;
    let home = home_with_session();
    let variables = [("STENO_SYNC_AUTOMATIC", "true")];
    let mut terminal = Terminal::run(&home, env!("CARGO_BIN_EXE_steno"), &[], &variables);
    terminal.shows(&["fix the login"]);
    terminal.press("q");
    assert_eq!(terminal.ends(), Some(0));
}

#[test]
fn a_store_for_given_paths_stays_one() {
    let home = home_with_session();
    home.file("elsewhere/x.jsonl", "{\"role\":\"user\",\"content\":\"another topic\"}\n");
    steno(&home, &["sync", "elsewhere"]).ok();
    let output = steno(&home, &["list"]);
    assert!(!output.stdout.contains("fix the login"), "{output}");
    // Until the user syncs all agents.
    steno(&home, &["sync"]).ok();
    assert!(steno(&home, &["list"]).stdout.contains("fix the login"));
}

#[test]
fn the_overview_counts_the_sessions_of_a_new_machine() {
    let home = home_with_session();
    steno(&home, &["stats"]).ok();
    until_finished(&home);
    let overview = steno(&home, &["stats"]).ok();
    assert!(overview.starts_with("1 session, "), "{overview}");
}

#[test]
fn the_first_sum_is_of_all_sessions() {
    let home = Home::new();
    for number in 0..300 {
        write_session(&home, &format!("{number:08}"), &"fix the login ".repeat(500));
    }
    let overview = steno(&home, &["stats"]).ok();
    assert!(overview.starts_with("300 sessions, "), "{overview}");
}
