//! A store with arbitrary target paths: `restore` and `resume` do not write everywhere.

use std::fs;
use std::path::PathBuf;

use crate::harness::{Home, Output};

const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
const LINE: &str = r#"{"type":"user","uuid":"u1","parentUuid":null,"isSidechain":false,"cwd":"$P","sessionId":"1b4e28ba-2fa1-41d2-883f-0016d3cca427","version":"2.1.0","timestamp":"2026-01-05T09:15:31.000Z","message":{"role":"user","content":"prompt"}}
"#;

/// A home with a session imported from this file, which no longer exists; its project is the folder `work`.
fn kept_from(file: &str) -> (Home, PathBuf) {
    let home = Home::new();
    let project = home.path().join("work");
    fs::create_dir_all(&project).unwrap();
    let path = home.file(file, LINE.replace("$P", project.to_str().unwrap()));
    home.steno(&["import", path.to_str().unwrap()]).ok();
    fs::remove_file(&path).unwrap();
    (home, path)
}

/// Resumes the session; the fake agent prints its arguments.
fn resume(home: &Home) -> Output {
    use std::os::unix::fs::PermissionsExt;
    let program = home.file("bin/claude", "#!/bin/sh\necho started $*\n");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = home.command(&["resume", ID]);
    let path = format!("{}:/usr/bin:/bin", home.path().join("bin").display());
    command.env("PATH", path).env("STENO_NOW", "2026-01-05T09:15:32.5Z");
    home.finish(command, b"y\n")
}

#[test]
fn what_other_programs_trust_is_never_written() {
    let files = [
        ".ssh/authorized_keys",
        ".ssh/projects/-p/s.jsonl",
        ".config/autostart/s.jsonl",
        ".local/bin/s.jsonl",
        "work/.git/hooks/s.jsonl",
        "work/.envrc",
        ".bashrc",
        ".claude/projects/-p/settings.json",
    ];
    for file in files {
        let (home, path) = kept_from(file);
        for refused in [home.steno(&["restore", ID]), resume(&home)] {
            assert_eq!(refused.code, 1, "{file}: {refused}");
            assert!(refused.stderr.contains("other programs run or trust"), "{refused}");
            assert!(!refused.stdout.contains("started"), "{refused}");
            assert!(!path.exists(), "{file}");
        }
        let folder = path.parent().unwrap().to_str().unwrap();
        let refused = home.steno(&["restore", ID, "--to", folder]);
        assert!(refused.stderr.contains("other programs run or trust"), "{refused}");
        // Confirmation does not allow it either.
        let steno = env!("CARGO_BIN_EXE_steno");
        let mut terminal = crate::terminal::Terminal::run(&home, steno, &["restore", ID], &[]);
        terminal.press("y\n");
        assert_eq!(terminal.ends(), Some(1), "{}", terminal.screen());
        assert!(!path.exists(), "{file}");
    }
}

#[test]
fn files_from_elsewhere_need_a_folder_or_a_yes() {
    let (home, path) = kept_from("mine/s.jsonl");
    insta::assert_snapshot!(home.steno(&["restore", ID]), @"
    --- stderr
    error: not in a session folder of claude-code: $HOME/mine/s.jsonl
    hint: use `steno restore 1b4e28ba-2fa1-41d2-883f-0016d3cca427 --to DIR`, or confirm it at a terminal
    --- exit 1
    ");
    insta::assert_snapshot!(resume(&home), @"
    --- stderr
    error: not in a session folder of claude-code: $HOME/mine/s.jsonl
    hint: use `steno restore 1b4e28ba-2fa1-41d2-883f-0016d3cca427 --to DIR`, or confirm it at a terminal
    --- exit 1
    ");
    assert!(!path.exists());
    home.steno(&["restore", ID, "--to", "copy"]).ok();
    assert!(home.path().join("copy/s.jsonl").is_file());
    for (answer, code) in [("n\n", 1), ("\n", 1), ("y\n", 0)] {
        let steno = env!("CARGO_BIN_EXE_steno");
        let mut terminal = crate::terminal::Terminal::run(&home, steno, &["restore", ID], &[]);
        terminal.shows(&["$HOME/mine/s.jsonl", "[y/N]"]);
        terminal.press(answer);
        assert_eq!(terminal.ends(), Some(code), "{}", terminal.screen());
        assert_eq!(path.exists(), code == 0);
    }
}

#[test]
fn the_agents_own_folders_need_no_question() {
    let (home, path) = kept_from(".claude/projects/-p/s.jsonl");
    home.steno(&["restore", ID]).ok();
    assert!(path.is_file());
    fs::remove_file(&path).unwrap();
    let resumed = resume(&home);
    assert!(resumed.stdout.contains("started --resume"), "{resumed}");
    assert!(path.is_file());
    // The folder may be a link.
    fs::rename(home.path().join(".claude"), home.path().join("claude")).unwrap();
    std::os::unix::fs::symlink("claude", home.path().join(".claude")).unwrap();
    fs::remove_file(&path).unwrap();
    home.steno(&["restore", ID]).ok();
    assert!(path.is_file());
}

#[test]
fn links_in_the_agents_folders_do_not_lead_out() {
    let (home, path) = kept_from(".claude/projects/-p/s.jsonl");
    for (target, reason) in [("elsewhere", "not in a session folder"), (".ssh", "run or trust")] {
        let target = home.path().join(target);
        fs::create_dir(&target).unwrap();
        let _ = fs::remove_file(path.parent().unwrap());
        let _ = fs::remove_dir(path.parent().unwrap());
        std::os::unix::fs::symlink(&target, path.parent().unwrap()).unwrap();
        let refused = home.steno(&["restore", ID]);
        assert!(refused.code == 1 && refused.stderr.contains(reason), "{refused}");
        assert!(!target.join("s.jsonl").exists());
    }
}
