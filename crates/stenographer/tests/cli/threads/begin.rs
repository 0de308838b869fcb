//! How a project gets threads, how they are found, and the guide for agents.

use super::*;

#[test]
fn init_prints_its_changes_once() {
    let home = Home::new();
    assert_eq!(home.steno(&["init"]).ok(), "created AGENTS.md with guide 2.0.0\n");
    assert_eq!(home.steno(&["init"]).ok(), "guide 2.0.0 in AGENTS.md is up to date\n");
    let row: Value = serde_json::from_str(&home.steno(&["init", "--json"]).ok()).unwrap();
    let expected = json!({
        "status": "updated", "previous_version": "2.0.0", "next_version": "2.0.0", "written": false,
    });
    assert_eq!(row, expected);
    let old = "<leslie_system_guide version=\"1.0.0\">\n</leslie_system_guide>\n";
    home.file("AGENTS.md", old);
    let output = home.steno_with(&["init"], b"n\n");
    assert_eq!(output.stdout, "kept guide 1.0.0 in AGENTS.md\n");
    assert_eq!(output.stderr, "Major guide update detected (1.0.0 -> 2.0.0). Continue? [y/N] ");
    let expected = "updated the guide in AGENTS.md from 1.0.0 to 2.0.0\n";
    assert_eq!(home.steno(&["init", "--yes"]).ok(), expected);
    home.file("other/AGENTS.md", "mine");
    let expected = "added guide 2.0.0 to AGENTS.md\n";
    assert_eq!(home.steno(&["init", "--project", "other"]).ok(), expected);
    assert!(home.path().join("other/.leslie/objectives.json").exists());
}

#[test]
fn without_threads_a_hint_is_printed() {
    let home = Home::new();
    home.file(".leslie/env", "A=b");
    let output = home.steno(&["status"]);
    let expected = "error: no threads in $HOME\nhint: run `steno init` in the project's folder first\n\
         hint: run `steno doctor` for the state of the store\n";
    assert_eq!((output.stderr.as_str(), output.code), (expected, 1));
    assert_eq!(fs::read_dir(home.path().join(".leslie")).unwrap().count(), 1, "nothing was made");
    home.steno(&["init"]).ok();
    let output = home.steno(&["spawn", "x"]);
    let expected =
        "error: no active objective\nhint: create one with `steno objective create TITLE`\n";
    assert_eq!(output.stderr, expected);
    assert_eq!(
        home.steno(&["status"]).stderr,
        "no threads yet; create an objective with `steno objective create TITLE`\n\
         run `steno doctor` for the state of the store\n"
    );
}

#[test]
fn the_project_is_found_from_below_and_by_name() {
    let project = Project::new();
    fs::create_dir_all(project.home.path().join("src/deep")).unwrap();
    let mut command = project.home.command(&["status", "latest", "--json"]);
    command.current_dir(project.home.path().join("src/deep"));
    let found = project.home.finish(command, b"").ok();
    assert!(found.contains(&project.second), "{found}");
    let printed = project.fails(&["status", "--project", "src"]);
    assert!(printed.starts_with("error: no threads in $HOME/src\n"), "{printed}");
    assert!(project.fails(&["status", "--project", "none"]).contains("$HOME/none"));
    let mut command = project.home.command(&["status", "--project", ".."]);
    command.current_dir(project.home.path().join("src"));
    assert!(project.home.finish(command, b"").ok().contains(&project.first));
}

#[cfg(unix)]
#[test]
fn the_commands_in_the_guide_work() {
    let project = Project::new();
    let main = project.ok(&["spawn", "Main"]);
    let guide = project.text("AGENTS.md");
    let block = guide.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let bin = project.home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_steno"), bin.join("steno")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    assert_eq!(block.lines().count(), 9);
    for line in block.lines() {
        let line = line.replace("MAIN", main.trim_end()).replace("OTHER", &project.first);
        let line = line.replace("THREAD", &project.second);
        let mut shell = project.home.program("sh", &["-c", &line]);
        shell.env("PATH", &path);
        let output = project.home.finish(shell, b"");
        assert_eq!(output.code, 0, "{line}\n{output}");
    }
}
