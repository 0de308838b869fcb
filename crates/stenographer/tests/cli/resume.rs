//! Tests of `steno resume`, with fake agents that print their arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;
use steno_agents::registry;

use crate::harness::{Home, Output};

const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
const CLAUDE: &str = r#"{"type":"user","uuid":"u","parentUuid":null,"isSidechain":false,"cwd":"$P","sessionId":"$ID","version":"2.1.0","timestamp":"2026-01-05T09:15:31.000Z","message":{"role":"user","content":"Fix it"}}
"#;
const CODEX: &str = r#"{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"$ID","timestamp":"2026-01-01T00:00:00.000Z","cwd":"$P","cli_version":"0.140.0","git":{"repository_url":"git@x.org:birds/count.git"}}}
"#;
const GEMINI: &str = r#"{"sessionId":"$ID","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z","lastUpdated":"2026-01-01T00:00:00.000Z","kind":"main"}
{"id":"1","timestamp":"2026-01-01T00:00:00.000Z","type":"user","content":[{"text":"Fix it"}]}
"#;
const QWEN: &str = r#"{"uuid":"u1","parentUuid":null,"sessionId":"$ID","timestamp":"2026-01-01T00:00:00.000Z","type":"user","cwd":"$P","version":"0.20.0","message":{"role":"user","parts":[{"text":"Fix it"}]}}
"#;
const COPILOT: &str = r#"{"type":"session.start","data":{"sessionId":"$ID","version":1,"producer":"copilot-agent","copilotVersion":"1.0.0","startTime":"2026-01-01T00:00:00.000Z","context":{"cwd":"$P"}},"id":"e1","timestamp":"2026-01-01T00:00:00.000Z","parentId":null}
"#;
const AMP: &str = r#"{"v":3,"id":"T-$ID","created":1770000000000,"env":{"initial":{"trees":[{"uri":"file://$P"}]}},"messages":[{"role":"user","messageId":0,"content":[{"type":"text","text":"Fix it"}]}]}"#;
const PI: &str = r#"{"type":"session","version":3,"id":"$ID","timestamp":"2026-01-01T00:00:00.000Z","cwd":"$P"}
"#;
const DROID: &str = r#"{"type":"session_start","id":"$ID","title":"Fix","cwd":"$P","version":2}
"#;
const KIMI: &str = r#"{"type":"metadata","protocol_version":"1.4","created_at":1785612803281}
{"type":"config.update","cwd":"$P","systemPrompt":"You are","time":1785612803281}
"#;
const AIDER: &str = "\n# aider chat started at 2026-01-01 00:00:00\n\n#### Fix it  \n\nDone.\n";
const OPENCODE: &str = r#"{"info":{"id":"$ID","version":"1.0","projectID":"p","directory":"$P","title":"Fix","time":{"created":1770000000000,"updated":1770000009000}},"messages":[{"info":{"id":"msg_1","sessionID":"$ID","role":"user","time":{"created":1770000000000}},"parts":[{"id":"prt_1","messageID":"msg_1","sessionID":"$ID","type":"text","text":"Fix it"}]}]}"#;
const GOOSE: &str = r#"{"working_dir":"$P","description":"Fix","message_count":1}
{"role":"user","created":1770000000,"content":[{"type":"text","text":"Fix it"}]}
"#;

/// A session file of each agent, its content, and the agent's resume command.
const AGENTS: [(&str, &str, &str); 12] = [
    (".claude/projects/$NAME/$ID.jsonl", CLAUDE, "claude --resume $ID"),
    (".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-$ID.jsonl", CODEX, "codex resume $ID"),
    (
        ".gemini/tmp/birds/chats/session-2026-01-01T00-00-1b4e28ba.jsonl",
        GEMINI,
        "gemini --resume $ID",
    ),
    (".qwen/projects/$NAME/chats/$ID.jsonl", QWEN, "qwen --resume $ID"),
    (".copilot/session-state/$ID/events.jsonl", COPILOT, "copilot --resume=$ID"),
    (".local/share/amp/threads/T-$ID.json", AMP, "amp threads continue T-$ID"),
    (
        ".pi/agent/sessions/--p--/2026_$ID.jsonl",
        PI,
        "pi --session $HOME/.pi/agent/sessions/--p--/2026_$ID.jsonl",
    ),
    (".factory/sessions/-p/$ID.jsonl", DROID, "droid --resume $ID"),
    (".kimi-code/sessions/$ID/agents/main/wire.jsonl", KIMI, "kimi --session $ID"),
    ("code/birds/.aider.chat.history.md", AIDER, "aider --restore-chat-history"),
    (".local/share/opencode/$ID.json", OPENCODE, "opencode --session $ID"),
    (".local/share/goose/sessions/$ID.jsonl", GOOSE, "goose session --resume --session-id $ID"),
];

/// A home folder with a project, and programs with every agent's name.
struct Machine {
    home: Home,
}

impl Machine {
    fn new() -> Self {
        let home = Home::new();
        fs::create_dir_all(home.path().join("code/birds")).unwrap();
        for (_, _, command) in AGENTS {
            let program = command.split(' ').next().unwrap();
            let script = "#!/bin/sh\necho \"$(pwd): $(basename $0) $*\"\nexit 7\n";
            let path = home.file(&format!("bin/{program}"), script);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { home }
    }

    /// Returns the project's folder as agents see it.
    fn project(&self) -> String {
        self.home.path().join("code/birds").canonicalize().unwrap().display().to_string()
    }

    /// Writes a session file and syncs it.
    fn keep(&self, file: &str, content: &str) -> String {
        let project = self.project();
        let name = file.replace("$NAME", &project.replace(['/', '.'], "-")).replace("$ID", ID);
        self.home.file(&name, content.replace("$P", &project).replace("$ID", ID));
        if file.starts_with(".gemini") {
            self.home.file(".gemini/tmp/birds/.project_root", &project);
        }
        self.home.steno(&["import", name.split('/').next().unwrap()]).ok();
        name
    }

    /// Creates a repository in the project.
    fn repository(&self, folder: &str, remote: &str) {
        let config = format!("[remote \"origin\"]\n\turl = {remote}\n");
        self.home.file(&format!("{folder}/.git/config"), config);
    }

    fn resume(&self, args: &[&str]) -> Output {
        let mut command = self.home.command(&[&["resume"], args].concat());
        let path = format!("{}:/usr/bin:/bin", self.home.path().join("bin").display());
        command.env("PATH", path).env("STENO_NOW", "2026-01-05T09:15:32.5Z");
        self.home.finish(command, b"")
    }

    fn move_project(&self, to: &str) {
        let to = self.home.path().join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(self.home.path().join("code/birds"), to).unwrap();
    }
}

#[test]
fn every_agent_resumes_with_files_that_it_had_purged() {
    for (file, content, command) in AGENTS {
        let machine = Machine::new();
        let name = machine.keep(file, content);
        let path = machine.home.path().join(&name);
        let before = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let output = machine.resume(&["latest"]);
        let expected = command.replace("$ID", ID);
        assert_eq!(output.stdout, format!("$HOME/code/birds: {expected}\n"), "{name}: {output}");
        assert_eq!(output.code, 7, "it became the agent");
        assert_eq!(fs::read(&path).unwrap(), before, "{name}");
    }
}

#[test]
fn printing_says_what_resuming_would_ask() {
    let machine = Machine::new();
    let name = machine.keep("elsewhere/$NAME/$ID.jsonl", CLAUDE);
    fs::remove_file(machine.home.path().join(&name)).unwrap();
    let output = machine.resume(&["1b4e", "--print"]);
    let question = "would ask first: this is not in a session folder of claude-code";
    assert!(output.code == 0 && output.stderr.trim().ends_with(question), "{output}");
    let refused = machine.resume(&["1b4e"]);
    assert!(refused.code == 1 && refused.stderr.contains("not in a session folder"), "{refused}");
}

#[test]
fn printing_changes_nothing() {
    let machine = Machine::new();
    let name = machine.keep(AGENTS[0].0, CLAUDE);
    fs::remove_file(machine.home.path().join(&name)).unwrap();
    let output = machine.resume(&["1b4e", "--print"]);
    assert_eq!(output.stdout, format!("cd $HOME/code/birds && claude --resume {ID}\n"));
    assert_eq!(output.stderr.trim(), format!("would restore $HOME/{name}"));
    assert!(!machine.home.path().join(&name).exists());
    fs::create_dir(machine.home.path().join("a b")).unwrap();
    let output = machine.resume(&["1b4e", "--print", "--project", "a b"]);
    assert_eq!(output.stdout, format!("cd '$HOME/a b' && claude --resume {ID}\n"));
}

#[test]
fn a_file_that_has_grown_is_left_alone() {
    let machine = Machine::new();
    let name = machine.keep(AGENTS[0].0, CLAUDE);
    let path = machine.home.file(&name, "more than was kept");
    assert_eq!(machine.resume(&[ID]).stderr, "");
    assert_eq!(fs::read(path).unwrap(), b"more than was kept");
    // In another folder the stored version would be written, which is not the current one.
    fs::create_dir(machine.home.path().join("elsewhere")).unwrap();
    let output = machine.resume(&[ID, "--project", "elsewhere"]);
    assert!(output.stderr.contains("has changed since the last sync"), "{output}");
    assert!(output.stderr.contains("hint: run `steno sync` first"), "{output}");
}

#[test]
fn a_project_that_moved_is_found_by_its_repository() {
    let machine = Machine::new();
    machine.repository("code/birds", "https://x.org/birds/count.git");
    machine.repository("code/other", "https://x.org/other.git");
    let name = machine.keep(AGENTS[0].0, CLAUDE);
    machine.move_project("code/water/birds");
    let output = machine.resume(&[ID]);
    assert_eq!(
        output.stdout,
        format!("$HOME/code/water/birds: claude --resume {ID}\n"),
        "{output}"
    );
    let moved = name.replace("-code-birds", "-code-water-birds");
    assert_eq!(
        fs::read(machine.home.path().join(&moved)).unwrap(),
        fs::read(machine.home.path().join(&name)).unwrap()
    );
    machine.repository("code/clone", "git@x.org:birds/count");
    let output = machine.resume(&[ID]);
    insta::assert_snapshot!(output, @"
    --- stderr
    error: the session's folder no longer exists: $HOME/code/birds
    hint: use --project with one of: $HOME/code/clone, $HOME/code/water/birds
    --- exit 1
    ");
}

#[test]
fn a_session_that_went_on_elsewhere_stays_one() {
    let machine = Machine::new();
    machine.repository("code/birds", "https://x.org/birds/count.git");
    let name = machine.keep(AGENTS[0].0, CLAUDE);
    for place in ["water", "land"] {
        let from = if place == "water" { "code/birds" } else { "code/water" };
        let to = machine.home.path().join("code").join(place);
        fs::rename(machine.home.path().join(from), &to).unwrap();
        let output = machine.resume(&[ID]);
        assert_eq!(
            output.stdout,
            format!("$HOME/code/{place}: claude --resume {ID}\n"),
            "{output}"
        );
        let moved = name.replace("-code-birds", &format!("-code-{place}"));
        let before = fs::read_to_string(machine.home.path().join(&moved)).unwrap();
        machine.home.file(
            &moved,
            before + &CLAUDE.replace("$ID", ID).replace("\"u\"", &format!("\"{place}\"")),
        );
        machine.home.steno(&["import", ".claude"]).ok();
        assert_eq!(list(&machine.home), [ID]);
        // All of it is restored, and only there.
        fs::remove_dir_all(machine.home.path().join(".claude")).unwrap();
        let output = machine.resume(&[ID, "--print"]);
        assert_eq!(output.stderr.trim(), format!("would restore $HOME/{moved}"));
        machine.home.steno(&["restore", ID]).ok();
        let lines = fs::read_to_string(machine.home.path().join(&moved)).unwrap();
        assert_eq!(lines.lines().count(), if place == "water" { 2 } else { 3 });
    }
}

#[test]
fn what_the_agent_noted_of_the_repository_will_do() {
    let machine = Machine::new();
    machine.keep(AGENTS[1].0, CODEX);
    machine.repository("code/birds", "https://x.org/birds/count.git");
    machine.move_project("code/ducks");
    let output = machine.resume(&[ID]);
    assert_eq!(output.stdout, format!("$HOME/code/ducks: codex resume {ID}\n"), "{output}");
    fs::remove_dir_all(machine.home.path().join("code/ducks")).unwrap();
    insta::assert_snapshot!(machine.resume(&[ID]), @"
    --- stderr
    error: the session's folder no longer exists: $HOME/code/birds
    hint: its repository (x.org/birds/count) was not found in 1 folder
    hint: use --project DIR if it has moved
    --- exit 1
    ");
}

#[test]
fn a_folder_can_be_named() {
    let machine = Machine::new();
    machine.keep(AGENTS[3].0, QWEN);
    machine.move_project("far/away");
    insta::assert_snapshot!(machine.resume(&[ID]), @"
    --- stderr
    error: the session's folder no longer exists: $HOME/code/birds
    hint: its repository is unknown; use --project DIR if it has moved
    --- exit 1
    ");
    let output = machine.resume(&[ID, "--project", "far/away"]);
    assert_eq!(output.stdout, format!("$HOME/far/away: qwen --resume {ID}\n"), "{output}");
    insta::assert_snapshot!(machine.resume(&[ID, "--project", "nowhere"]), @"
    --- stderr
    error: could not open $HOME/nowhere
    caused by: No such file or directory (os error 2)
    hint: check that the path exists
    --- exit 1
    ");
    insta::assert_snapshot!(machine.resume(&[ID, "--project", "bin/qwen"]), @"
    --- stderr
    error: not a folder: $HOME/bin/qwen
    --- exit 1
    ");
}

#[test]
fn a_folder_in_which_an_agent_would_not_find_its_files_is_an_error() {
    let machine = Machine::new();
    machine.keep(AGENTS[2].0, GEMINI);
    let there = machine.home.path().join("code/new");
    fs::create_dir(&there).unwrap();
    insta::assert_snapshot!(machine.resume(&[ID, "--project", "code/new"]), @"
    --- stderr
    error: gemini has no sessions for this folder yet: $HOME/code/new
    hint: start `gemini` there once
    --- exit 1
    ");
    let marker = there.canonicalize().unwrap().display().to_string();
    machine.home.file(".gemini/tmp/new/.project_root", marker);
    machine.resume(&[ID, "--project", "code/new"]);
    assert!(machine.home.path().join(AGENTS[2].0.replace("tmp/birds", "tmp/new")).exists());

    let machine = Machine::new();
    machine.keep(AGENTS[7].0, DROID);
    fs::create_dir(machine.home.path().join("code/new")).unwrap();
    insta::assert_snapshot!(machine.resume(&[ID, "--project", "code/new"]), @"
    --- stderr
    error: droid can resume the session only in its original folder: $HOME/code/birds
    hint: leave out --project
    --- exit 1
    ");
    fs::remove_dir(machine.home.path().join("code/birds")).unwrap();
    let output = machine.resume(&[ID, "--project", "code/new"]);
    let link = "hint: link the old path: ln -s $HOME/code/new $HOME/code/birds";
    assert!(output.stderr.contains(link), "{output}");
}

#[test]
fn sessions_that_cannot_be_resumed_are_explained() {
    let machine = Machine::new();
    insta::assert_snapshot!(machine.resume(&["nothing"]), @"
    --- stderr
    error: no such session: nothing
    hint: run `steno list` to list sessions, `steno sync` to copy new ones
    --- exit 1
    ");
    let line = b"{\"role\":\"user\",\"content\":\"hello\"}\n";
    machine.home.steno_with(&["record", "--agent", "mine", "--session", "s"], line).ok();
    let resumable = registry::all_agents().filter(|agent| agent.resume.is_some());
    let names: Vec<_> = resumable.map(|agent| agent.name()).collect();
    assert_eq!(
        machine.resume(&["s"]).to_string(),
        format!(
            "--- stderr\nerror: mine has no command to resume a session\n\
             hint: agents with such a command: {}\n--- exit 1",
            names.join(", ")
        )
    );
    machine.home.steno_with(&["record", "--agent", "codex", "--session", "r"], line).ok();
    insta::assert_snapshot!(machine.resume(&["r"]), @"
    --- stderr
    error: the session was recorded live, so it has no files to restore
    --- exit 1
    ");
    machine.keep(AGENTS[0].0, CLAUDE);
    fs::remove_file(machine.home.path().join("bin/claude")).unwrap();
    insta::assert_snapshot!(machine.resume(&[ID]), @"
    --- stderr
    error: no such program on PATH: claude
    hint: the command is: cd $HOME/code/birds && claude --resume 1b4e28ba-2fa1-41d2-883f-0016d3cca427
    --- exit 1
    ");
    // An id is data: it must not become an option of the program.
    machine.keep("x/rollout-x.jsonl", &CODEX.replace("$ID", "--yolo"));
    let id = list(&machine.home).into_iter().find(|id| id.contains("yolo")).unwrap();
    insta::assert_snapshot!(machine.resume(&["--print", "--", &id]), @r#"
    --- stderr
    error: not a session id of codex: "--yolo"
    --- exit 1
    "#);
}

/// Returns the ids of all sessions.
fn list(home: &Home) -> Vec<String> {
    let listed = home.steno(&["list", "--json"]).ok();
    let rows = listed.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_folder_inside_of_a_repository_moves_with_it() {
    let machine = Machine::new();
    machine.repository("code", "https://x.org/code.git");
    machine.keep(AGENTS[0].0, CLAUDE);
    fs::rename(machine.home.path().join("code"), machine.home.path().join("play")).unwrap();
    let output = machine.resume(&[ID, "--print"]);
    assert!(output.stdout.starts_with("cd $HOME/play/birds && claude"), "{output}");
    assert!(Path::new(&machine.home.path().join("store/projects.json")).is_file());
}

/// A database session with purged rows.
fn in_database(machine: &Machine) -> Connection {
    let file = machine.home.file(".local/share/opencode/opencode.db", "");
    let connection = Connection::open(file).unwrap();
    let project = machine.project();
    let text = r#"{"type":"text","text":"Fix it"}"#;
    connection
        .execute_batch(&format!(
            "CREATE TABLE session (id TEXT PRIMARY KEY, directory TEXT, title TEXT,
                 time_created INTEGER);
             CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
                 data TEXT);
             CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, data TEXT);
             INSERT INTO session VALUES ('ses_1', '{project}', 'One', 1000);
             INSERT INTO message VALUES ('msg_1', 'ses_1', 1, '{{\"role\":\"user\"}}');
             INSERT INTO part VALUES ('prt_1', 'msg_1', '{text}');"
        ))
        .unwrap();
    machine.home.steno(&["sync"]).ok();
    connection.execute_batch("DELETE FROM part").unwrap();
    connection
}

#[test]
fn rows_that_were_purged_are_put_back() {
    let machine = Machine::new();
    let connection = in_database(&machine);
    let output = machine.resume(&["ses_1", "--print"]);
    let database = "$HOME/.local/share/opencode/opencode.db";
    assert_eq!(output.stderr.trim(), format!("would restore {database}"));
    let output = machine.resume(&["ses_1"]);
    assert_eq!(output.stdout, "$HOME/code/birds: opencode --session ses_1\n", "{output}");
    assert_eq!(output.stderr.trim(), format!("restored {database}"));
    // A mere change belongs to the agent.
    connection.execute_batch("UPDATE session SET title = 'Later'").unwrap();
    assert_eq!(machine.resume(&["ses_1"]).stderr, "");
}

#[test]
fn no_agent_is_started_when_rows_cannot_be_put_back() {
    let machine = Machine::new();
    let connection = in_database(&machine);
    connection.execute_batch("UPDATE session SET title = 'Later'").unwrap();
    insta::assert_snapshot!(machine.resume(&["ses_1"]), @"
    --- stderr
    error: could not restore the rows into $HOME/.local/share/opencode/opencode.db: missing rows: 1, changed rows: 1
    hint: run `steno sync` first, or `steno restore ses_1 --force` to replace it
    --- exit 1
    ");
    let output = machine.resume(&["ses_1", "--print"]);
    assert_eq!(output.code, 0);
    assert_eq!(output.stdout, "cd $HOME/code/birds && opencode --session ses_1\n");
    assert!(output.stderr.contains("missing rows: 1, changed rows: 1"), "{output}");
    connection.execute_batch("DROP TABLE part").unwrap();
    let output = machine.resume(&["ses_1"]);
    assert_eq!((output.code, output.stdout.as_str()), (1, ""));
    assert!(output.stderr.contains("no such table or column"), "{output}");
}

#[test]
fn no_agent_is_started_when_a_stored_file_is_damaged() {
    let machine = Machine::new();
    let name = machine.keep(AGENTS[0].0, CLAUDE);
    fs::remove_file(machine.home.path().join(&name)).unwrap();
    let kept = machine.home.path().join(format!("store/vault/claude-code/{ID}/{ID}.jsonl.zst"));
    let mut bytes = fs::read(&kept).unwrap();
    let at = bytes.windows(4).rposition(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    bytes[at + 20] ^= 1;
    fs::write(&kept, bytes).unwrap();
    let output = machine.resume(&[ID]);
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output}");
    assert!(!machine.home.path().join(&name).exists());
}
