//! Tests of `steno resume --in` and `steno handoff`, with fake agents that print their arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{Home, Output};

const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";

const SESSION: &str = r#"{"type":"user","uuid":"1","parentUuid":null,"isSidechain":false,"cwd":"$P","sessionId":"$ID","version":"2.1.0","gitBranch":"main","timestamp":"2026-01-05T09:15:31.000Z","message":{"role":"user","content":"Count the herons. Do not count ospreys."}}
{"type":"assistant","uuid":"2","parentUuid":"1","isSidechain":false,"cwd":"$P","sessionId":"$ID","version":"2.1.0","timestamp":"2026-01-05T09:15:32.000Z","message":{"id":"m1","role":"assistant","model":"claude-opus-4-5","content":[{"type":"tool_use","id":"t1","name":"Write","input":{"file_path":"birds.txt","content":"herons"}}],"usage":{"input_tokens":30,"output_tokens":5}}}
{"type":"user","uuid":"3","parentUuid":"2","isSidechain":false,"cwd":"$P","sessionId":"$ID","version":"2.1.0","timestamp":"2026-01-05T09:15:33.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"written\n","is_error":false}]}}
{"type":"assistant","uuid":"4","parentUuid":"3","isSidechain":false,"cwd":"$P","sessionId":"$ID","version":"2.1.0","timestamp":"2026-01-05T09:15:34.000Z","message":{"id":"m2","role":"assistant","model":"claude-opus-4-5","content":[{"type":"text","text":"Done. Shall I commit it?"}],"usage":{"input_tokens":40,"output_tokens":6}}}
"#;

/// The other agents: name, program, tested version, and the words of the resume command before the id.
const TARGETS: [(&str, &str, &str, &str); 4] = [
    ("codex", "codex", "0.166.0", "resume"),
    ("gemini", "gemini", "0.61.0", "--resume"),
    ("opencode", "opencode", "1.18.33", "--session"),
    ("qwen", "qwen", "0.24.4", "--resume"),
];

/// A home folder with a synced session of Claude Code, and programs with the other agents' names.
struct Machine {
    home: Home,
}

impl Machine {
    fn new() -> Self {
        let home = Home::new();
        fs::create_dir_all(home.path().join("code/birds")).unwrap();
        let machine = Self { home };
        for (_, program, version, _) in TARGETS {
            machine.install(program, version);
        }
        machine.install("claude", "2.1.325");
        machine.keep(SESSION);
        machine
    }

    /// Installs a fake agent. `import` keeps the file, as OpenCode did before it had a database.
    fn install(&self, program: &str, version: &str) {
        let script = format!(
            "#!/bin/sh\ncase \"$1\" in\n--version) echo {version};;\n\
             import) mkdir -p \"$HOME/.local/share/opencode\"; cp \"$2\" \"$HOME/.local/share/opencode/\";;\n\
             *) echo \"$(pwd): {program} $*\"; exit 7;;\nesac\n"
        );
        let path = self.home.file(&format!("bin/{program}"), script);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn keep(&self, session: &str) {
        let project = self.home.path().join("code/birds").canonicalize().unwrap();
        let text = session.replace("$P", &project.display().to_string()).replace("$ID", ID);
        self.home.file(&format!(".claude/projects/birds/{ID}.jsonl"), text);
        self.home.steno(&["import", ".claude"]).ok();
    }

    fn resume(&self, args: &[&str]) -> Output {
        let mut command = self.home.command(&[&["resume"], args].concat());
        let path = format!("{}:/usr/bin:/bin", self.home.path().join("bin").display());
        command.env("PATH", path).env("STENO_NOW", "2026-06-01T10:00:00Z");
        self.home.finish(command, b"")
    }

    /// All files below the agents' folders.
    fn agent_files(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = [".codex", ".gemini", ".qwen", ".local", ".claude"]
            .map(|name| self.home.path().join(name))
            .into();
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(folder).into_iter().flatten().flatten() {
                if item.path().is_dir() {
                    folders.push(item.path())
                } else {
                    files.push(item.path())
                }
            }
        }
        files.sort();
        files
    }

    fn rows(&self) -> Vec<Value> {
        self.home.steno(&["sync"]).ok();
        let rows = self.home.steno(&["list", "--json", "--no-sync"]).ok();
        rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn entries(&self, id: &str) -> Vec<Value> {
        let entries = self.home.steno(&["show", id, "--json"]).ok();
        entries.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn texts<'a>(entries: &'a [Value], kind: &str) -> Vec<&'a str> {
    let wanted = entries.iter().filter(|entry| entry["kind"] == kind);
    wanted.map(|entry| entry["content"].as_str().unwrap()).collect()
}

#[test]
fn each_agent_gets_a_session_that_it_can_resume() {
    for (agent, program, _, words) in TARGETS {
        let machine = Machine::new();
        let source = machine.home.path().join(format!(".claude/projects/birds/{ID}.jsonl"));
        let (bytes, costs) =
            (fs::read(&source).unwrap(), machine.home.steno(&["cost", "--json", "--no-sync"]).ok());
        let output = machine.resume(&["latest", "--in", agent]);
        assert_eq!(output.code, 7, "{agent}: it became the agent: {output}");
        let start = format!("$HOME/code/birds: {program} {words} ");
        let id = output.stdout.trim().strip_prefix(&start).unwrap_or_default().to_owned();
        assert!(!id.is_empty(), "{output}");
        let rows = machine.rows();
        let row = rows.iter().find(|row| row["native_id"] == id.as_str()).expect(agent);
        assert_eq!((rows.len(), row["parent"].as_str()), (2, Some(ID)), "{agent}");
        assert_eq!(
            (&row["agent"], &row["tokens"]["input"]),
            (&Value::from(agent), &Value::from(0))
        );
        let entries = machine.entries(row["id"].as_str().unwrap());
        assert_eq!(texts(&entries, "tool_result"), ["written\n"], "{agent}");
        assert_eq!(
            texts(&entries, "text"),
            ["Count the herons. Do not count ospreys.", "Done. Shall I commit it?"]
        );
        let call = entries.iter().find(|entry| entry["kind"] == "tool_call").unwrap();
        assert_eq!(call["tool_input"]["content"], "herons", "{agent}");
        assert!(
            texts(&entries, "notice")[0]
                .contains(&format!("Continued from Claude Code, session {ID}."))
        );
        assert_eq!(
            machine.home.steno(&["cost", "--json", "--no-sync"]).ok(),
            costs,
            "{agent}: counted once"
        );
        assert_eq!(fs::read(&source).unwrap(), bytes, "{agent}: the original is unchanged");
        let shown = machine.home.steno(&["show", row["id"].as_str().unwrap(), "--summary"]).ok();
        assert!(shown.contains(&format!("from {ID}")), "{shown}");
    }
}

#[test]
fn printing_and_writing_only_do_not_start_the_agent() {
    let machine = Machine::new();
    let before = machine.agent_files();
    let printed = machine.resume(&["latest", "--in", "codex", "--print"]);
    assert!(printed.stdout.starts_with("cd $HOME/code/birds && codex resume "), "{printed}");
    assert!(
        printed
            .stderr
            .contains("would write $HOME/.codex/sessions/2026/06/01/rollout-2026-06-01T10-00-00-")
    );
    let imported = machine.resume(&["latest", "--in", "opencode", "--print"]);
    assert!(imported.stderr.contains("would run opencode import ses_"), "{imported}");
    assert_eq!(machine.agent_files(), before);
    let written = machine.resume(&["latest", "--in", "codex", "--write-only"]);
    assert!(written.stdout.starts_with("cd $HOME/code/birds && codex resume "), "{written}");
    assert!(written.stderr.contains("1 prompt, 1 answer and 1 tool call for Codex"), "{written}");
    assert_eq!((written.code, machine.agent_files().len()), (0, before.len() + 1));
}

#[test]
fn an_untested_version_is_a_warning_before_anything_is_written() {
    let machine = Machine::new();
    let tested = machine.resume(&["latest", "--in", "qwen", "--write-only"]);
    assert!(!tested.stderr.contains("warning"), "{tested}");
    machine.install("qwen", "9.9.9");
    let newer = machine.resume(&["latest", "--in", "qwen", "--write-only"]);
    let warning = "warning: qwen 9.9.9 is untested with --in (tested: 0.24.4)\n";
    assert!(newer.stderr.starts_with(warning), "{newer}");
    machine.install("qwen", "unknown");
    let unknown = machine.resume(&["latest", "--in", "qwen", "--write-only"]);
    assert!(unknown.stderr.starts_with("warning: qwen states no version"), "{unknown}");
    let before = machine.agent_files();
    fs::remove_file(machine.home.path().join("bin/qwen")).unwrap();
    let missing = machine.resume(&["latest", "--in", "qwen"]);
    assert!(missing.stderr.starts_with("error: no such program on PATH: qwen\n"), "{missing}");
    assert_eq!((missing.code, machine.agent_files()), (1, before));
}

#[test]
fn wrong_requests_say_what_fits() {
    let machine = Machine::new();
    let same = machine.resume(&["latest", "--in", "claude"]);
    assert!(same.stderr.contains("the session is one of claude-code already"), "{same}");
    assert!(same.stderr.contains("hint: leave out --in"), "{same}");
    let unknown = machine.resume(&["latest", "--in", "emacs"]);
    assert!(unknown.stderr.contains("claude-code, codex, gemini, qwen, opencode"), "{unknown}");
    assert_eq!(unknown.code, 2);
    let alone = machine.resume(&["latest", "--brief"]);
    assert!(alone.stderr.contains("--in <AGENT>"), "{alone}");
    let size = machine.resume(&["latest", "--in", "codex", "--max-size", "big"]);
    assert!(size.stderr.contains("not a size in bytes"), "{size}");
    machine.home.file(".codex/sessions/rollout-e.jsonl", r#"{"timestamp":"2026-03-01T00:00:00.000Z","type":"session_meta","payload":{"id":"e-1","timestamp":"2026-03-01T00:00:00.000Z","cwd":"/"}}"#);
    machine.home.steno(&["sync"]).ok();
    let empty = machine.resume(&["e-1", "--in", "qwen", "--project", "code/birds"]);
    assert!(empty.stderr.contains("error: the session has no conversation: e-1"), "{empty}");
}

#[test]
fn a_session_that_is_too_long_is_cut_and_both_sides_are_told() {
    let machine = Machine::new();
    let prompt = |number: usize| {
        let uuid = format!("p{number}");
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":null,"isSidechain":false,"cwd":"$P","sessionId":"$ID","version":"2.1.0","timestamp":"2026-01-05T09:15:31.000Z","message":{{"role":"user","content":"Request {number} {}"}}}}
{{"type":"assistant","uuid":"a{number}","parentUuid":"{uuid}","isSidechain":false,"cwd":"$P","sessionId":"$ID","version":"2.1.0","timestamp":"2026-01-05T09:15:31.000Z","message":{{"id":"m{number}","role":"assistant","model":"x","content":[{{"type":"text","text":"Answer {number}"}}]}}}}
"#,
            "x".repeat(100)
        )
    };
    machine.keep(&(0..5000).map(prompt).collect::<String>());
    let output = machine.resume(&["latest", "--in", "codex", "--max-size", "10KB", "--write-only"]);
    assert!(output.stderr.contains("warning: left out 49"), "{output}");
    let rows = machine.rows();
    let new = rows.iter().find(|row| row["parent"] == ID).unwrap();
    let entries = machine.entries(new["id"].as_str().unwrap());
    assert!((50..110).contains(&entries.len()), "{}", entries.len());
    let notice = texts(&entries, "notice")[0];
    assert!(notice.contains("requests of the user and all that followed them"), "{notice}");
    assert!(texts(&entries, "text").last().unwrap().contains("Answer 4999"));
}

#[test]
fn a_brief_start_gives_the_note_as_the_first_prompt() {
    let machine = Machine::new();
    for (agent, words) in [
        ("codex", "codex <cont"),
        ("gemini", "gemini --prompt-interactive <cont"),
        ("opencode", "opencode --prompt <cont"),
        ("claude-code", "claude <cont"),
    ] {
        let before = machine.agent_files();
        let output = machine.resume(&["latest", "--in", agent, "--brief"]);
        assert_eq!((output.code, machine.agent_files()), (7, before), "{output}");
        assert!(output.stdout.starts_with(&format!("$HOME/code/birds: {words}")), "{output}");
        assert!(output.stdout.contains(&format!("session=\"{ID}\">")), "{output}");
        assert!(output.stdout.contains("## Files changed\n\n- birds.txt (1 edit"), "{output}");
    }
}

#[test]
fn a_hand_off_note_quotes_the_record() {
    let machine = Machine::new();
    let note = machine.home.steno(&["handoff", "latest"]).ok();
    insta::assert_snapshot!(note, @r###"
    # Hand-off: Count the herons. Do not count ospreys.

    - Session: 1b4e28ba-2fa1-41d2-883f-0016d3cca427 (claude-code)
    - Folder: $HOME/code/birds
    - Branch: main
    - Whole record: `steno show 1b4e28ba-2fa1-41d2-883f-0016d3cca427`

    ## Task

    user (1b4e28ba-2fa1-41d2-883f-0016d3cca427:0):
    > Count the herons. Do not count ospreys.

    ## Decisions

    - user: "Do not count ospreys." (1b4e28ba-2fa1-41d2-883f-0016d3cca427:0)

    ## Files changed

    - birds.txt (1 edit, the last is 1b4e28ba-2fa1-41d2-883f-0016d3cca427:1)

    ## Open ends

    - question: Shall I commit it? (1b4e28ba-2fa1-41d2-883f-0016d3cca427:3)

    ## Last answer

    assistant (1b4e28ba-2fa1-41d2-883f-0016d3cca427:3):
    > Done. Shall I commit it?
    "###);
    let json: Value =
        serde_json::from_str(&machine.home.steno(&["handoff", "1b4e", "--json"]).ok()).unwrap();
    assert_eq!(json["decisions"][0]["text"], "Do not count ospreys.");
    assert_eq!(json["open_ends"][0]["kind"], "question");
    let path = machine.home.steno(&["handoff", "latest", "-o", "note.md"]).ok();
    assert_eq!(path, "$HOME/note.md\n");
    assert_eq!(
        fs::read_to_string(machine.home.path().join("note.md")).unwrap(),
        note.replace("$HOME", &machine.home.path().canonicalize().unwrap().display().to_string())
    );
    let missing = machine.home.steno(&["handoff", "nothing"]);
    assert_eq!(missing.code, 1, "{missing}");
}
