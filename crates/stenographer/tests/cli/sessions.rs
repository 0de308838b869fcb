//! Tests of `steno list`, `show`, `export`, `convert` and `import`.

use crate::harness::Home;

const CHAT: &str = r#"{"role":"system","content":"You help.","created_at":"2026-01-05T09:15:32Z"}
{"role":"user","content":"Read the file","created_at":"2026-01-05T09:15:33Z"}
{"role":"assistant","content":"I'll look.","created_at":"2026-01-05T09:15:34Z","model":"m-1","usage":{"input":12,"output":5}}
{"role":"assistant","content":"","tool_name":"Read","tool_call_id":"t1","tool_input":{"path":"a.rs"},"created_at":"2026-01-05T09:15:35Z"}
{"role":"tool","content":"fn main() {}\n","tool_name":"Read","tool_call_id":"t1","created_at":"2026-01-05T09:15:36Z"}
{"role":"assistant","content":"Done.","created_at":"2026-01-05T09:15:37Z"}
"#;

fn chat() -> Home {
    let home = Home::new();
    home.steno_with(
        &["record", "--agent", "mine", "--session", "chat-1", "--project", "/p"],
        CHAT.as_bytes(),
    )
    .ok();
    home
}

#[test]
fn list_on_a_terminal_and_as_json() {
    let home = chat();
    insta::assert_snapshot!(home.steno(&["list"]), @"
    STARTED      AGENT  STATUS     ENTRIES  ID      TITLE
    01-05 09:15  mine   completed  6        chat-1  Read the file
    --- exit 0
    ");
    insta::assert_snapshot!(home.steno(&["list", "--json"]), @r#"
    {"id":"chat-1","native_id":null,"agent":"mine","project":"/p","title":"Read the file","started":"2026-01-05T09:15:32Z","ended":"2026-01-05T09:15:32.5Z","status":"completed","entries":6,"tokens":{"input":12,"cache_read":0,"cache_write":0,"cache_write_5m":0,"cache_write_1h":0,"output":5,"reasoning":0},"thread":null,"parent":null}
    --- exit 0
    "#);
    insta::assert_snapshot!(home.steno(&["list", "--agent", "other", "--json"]), @"
    --- stderr
    error: no sessions of agent other
    hint: agents with sessions: mine
    --- exit 1
    ");
    assert_eq!(home.steno(&["list", "-n", "0", "--json"]).ok(), "");
}

#[test]
fn list_of_nothing() {
    insta::assert_snapshot!(Home::new().steno(&["list"]), @"
    --- stderr
    no sessions yet; run `steno sync`, `steno import PATH` or `steno record`
    --- exit 0
    ");
}

#[test]
fn show_everything() {
    insta::assert_snapshot!(chat().steno(&["show", "chat-1"]), @r#"
    Read the file
    mine · chat-1 · completed
    2026-01-05 09:15:32 to 09:15:32 · 6 entries · 12 tokens in, 5 out · m-1
    /p

    09:15:32 system
    You help.

    09:15:33 user
    Read the file

    09:15:34 assistant
    I'll look.

    09:15:35 tool call Read
    {"path":"a.rs"}

    09:15:36 tool result Read
    fn main() {}

    09:15:37 assistant
    Done.
    --- exit 0
    "#);
}

#[test]
fn show_a_summary() {
    insta::assert_snapshot!(chat().steno(&["show", "chat", "--summary"]), @r#"
    Read the file
    mine · chat-1 · completed
    2026-01-05 09:15:32 to 09:15:32 · 6 entries · 12 tokens in, 5 out · m-1
    /p

    09:15:32 system  You help.
    09:15:33 user  Read the file
    09:15:34 assistant  I'll look.
    09:15:35 tool call Read  {"path":"a.rs"}
    09:15:36 tool result Read  fn main() {}
    09:15:37 assistant  Done.
    --- exit 0
    "#);
}

#[test]
fn show_parts() {
    let home = chat();
    let contents = |args: &[&str]| {
        let args = [&["show", "latest", "--json"], args].concat();
        let lines = home.steno(&args).ok();
        let content = |line: &str| {
            let entry: serde_json::Value = serde_json::from_str(line).unwrap();
            entry["content"].as_str().unwrap().to_owned()
        };
        lines.lines().map(content).collect::<Vec<_>>()
    };
    assert_eq!(contents(&["--last", "2"]), ["fn main() {}\n", "Done."]);
    assert_eq!(contents(&["--first", "1"]), ["You help."]);
    assert_eq!(contents(&["--only", "user"]), ["Read the file"]);
    assert_eq!(contents(&["--only", "assistant", "--last", "1"]), ["Done."]);
}

#[test]
fn show_in_the_styles_of_others() {
    let home = chat();
    insta::assert_snapshot!(home.steno(&["show", "chat-1", "--style", "weakincentives"]), @"
    [09:15:32] ⚙️ SYSTEM
    You help.

    [09:15:33] 👤 USER
    Read the file

    [09:15:34] 🤖 ASSISTANT
    I'll look.

    [09:15:35] 🤖 ASSISTANT


    [09:15:36] 🔧 Read
    fn main() {}


    [09:15:37] 🤖 ASSISTANT
    Done.
    --- exit 0
    ");
    insta::assert_snapshot!(home.steno(&["show", "chat-1", "--style", "devflow"]), @r#"
    ============================================================
    Run: 2026-01-05-mine-chat1
    Flow: mine | Status: completed
    Started: 2026-01-05 09:15:32 | Duration: 1s
    Tokens: 12 in / 5 out | Cost: $0.00
    ============================================================

    [1] SYSTEM (09:15:32)
    ------------------------------------------------------------
    You help.

    [2] USER (09:15:33)
    ------------------------------------------------------------
    Read the file

    [3] ASSISTANT (09:15:34) [12 tokens in] [5 tokens out]
    ------------------------------------------------------------
    I'll look.

      Tool: Read
         Input: {
           "path": "a.rs"
         }
         Output: fn main() {}


    [4] ASSISTANT (09:15:37)
    ------------------------------------------------------------
    Done.
    --- exit 0
    "#);
    insta::assert_snapshot!(home.steno(&["show", "chat-1", "--style", "devflow", "--summary"]), @"
    ============================================================
    Run: 2026-01-05-mine-chat1
    Flow: mine | Status: completed
    Started: 2026-01-05 09:15:32 | Duration: 1s
    Tokens: 12 in / 5 out | Cost: $0.00
    ============================================================

    Turn Summary:
      [1] system: You help.
      [2] user: Read the file
      [3] assistant: I'll look.
      [4] assistant: Done.
    --- exit 0
    ");
    insta::assert_snapshot!(home.steno(&["show", "chat-1", "--style", "leslie"]), @r#"
    Thread ID: 
    Chat ID: chat-1
    Time Range: 2026-01-05T09:15:32+00:00 ~ 2026-01-05T09:15:37+00:00
    Agent Mode: agent
    Tool Calls: 1
    ---

    user:
    <user_query>
    Read the file
    </user_query>

    assistant:
    I'll look.

    [Tool call] Read
    {"path":"a.rs"}

    [Tool result] Read
    fn main() {}


    assistant:
    Done.
    --- exit 0
    "#);
    insta::assert_snapshot!(home.steno(&["show", "chat-1", "--style", "chibi"]), @r#"
    [SYSTEM]: You help.

    [USER]: Read the file

    [CHAT-1]: I'll look.

    [TOOL: Read] {"path":"a.rs"}
      → 13b
    [CHAT-1]: Done.

    --- exit 0
    "#);
}

#[test]
fn an_unused_role_is_reported() {
    insta::assert_snapshot!(chat().steno(&["show", "chat-1", "--only", "bogus"]), @"
    --- stderr
    error: no such role: bogus
    hint: the roles are: system, user, assistant, tool
    --- exit 2
    ");
}

#[test]
fn prefixes_must_be_unique() {
    let home = chat();
    home.steno_with(&["record", "--agent", "mine", "--session", "chat-2"], CHAT.as_bytes()).ok();
    insta::assert_snapshot!(home.steno(&["show", "chat"]), @"
    --- stderr
    error: ambiguous session id: chat
    hint: one of:
      chat-1 (mine)
      chat-2 (mine)
    --- exit 1
    ");
    for n in 3..9 {
        let id = format!("chat-{n}");
        home.steno_with(&["record", "--agent", "mine", "--session", &id], CHAT.as_bytes()).ok();
    }
    let several = home.steno(&["show", "chat"]).stderr;
    assert!(several.ends_with("  chat-5 (mine)\n  and 3 more\n"), "{several}");
}

#[test]
fn every_format_is_exported_imported_and_converted_back() {
    let home = chat();
    let entries = |name: &str| {
        let mut lines = Vec::new();
        for line in home.steno(&["show", name, "--json"]).ok().lines() {
            let entry: serde_json::Value = serde_json::from_str(line).unwrap();
            // devflow and chibi store a call's arguments once, as text or as a value.
            let said =
                if entry["kind"] == "tool_call" { &entry["tool_input"] } else { &entry["content"] };
            lines.push((entry["role"].clone(), entry["kind"].clone(), said.clone()));
        }
        lines
    };
    for (format, out) in [
        ("devflow", "df"),
        ("chibi", "ch"),
        ("weakincentives", "wi.jsonl"),
        ("json", "a.json"),
        ("jsonl", "a.jsonl"),
    ] {
        home.steno(&["export", "chat-1", "--format", format, "-o", out]).ok();
        assert_eq!(entries(out), entries("chat-1"), "{format}");
        let id = home.steno(&["import", out]).ok();
        assert_eq!(entries(id.trim_end()), entries("chat-1"), "{format}");
        let again = home.steno(&["import", out]);
        assert!(again.stderr.ends_with("nothing new\n"), "{again}");
        home.steno(&["convert", out, "--to", "json", "-o", "back.json"]).ok();
        assert_eq!(entries("back.json"), entries("chat-1"), "{format}");
    }
    home.steno(&["verify"]).ok();
}

#[test]
fn leslie_is_exported_as_text_files() {
    let home = chat();
    insta::assert_snapshot!(home.steno(&["export", "chat-1", "--format", "leslie", "-o", "out"]), @"
    out/20260105-0915-Read-the-file.txt
    --- exit 0
    ");
    insta::assert_snapshot!(home.steno(&["export", "chat-1", "--format", "leslie"]), @"
    --- stderr
    error: this format needs an output folder
    hint: use -o DIR
    --- exit 2
    ");
}

#[test]
fn markdown_is_readable() {
    insta::assert_snapshot!(chat().steno(&["export", "latest", "--format", "md"]), @r#"
    # Read the file

    | Field | Value |
    | --- | --- |
    | Session | chat-1 |
    | Agent | mine |
    | Project | /p |
    | Started | 2026-01-05T09:15:32Z |
    | Ended | 2026-01-05T09:15:32.5Z |
    | Status | completed |
    | Models | m-1 |
    | Tokens | 12 in, 5 out |

    ## System (2026-01-05T09:15:32Z)

    You help.

    ## User (2026-01-05T09:15:33Z)

    Read the file

    ## Assistant (2026-01-05T09:15:34Z)

    I'll look.

    ## Tool call Read (2026-01-05T09:15:35Z)

    ```json
    {
      "path": "a.rs"
    }
    ```

    ## Tool result Read (2026-01-05T09:15:36Z)

    ```
    fn main() {}
    ```

    ## Assistant (2026-01-05T09:15:37Z)

    Done.
    --- stderr
    0 secrets redacted
    --- exit 0
    "#);
}

#[test]
fn a_file_with_the_name_of_our_own_record_is_imported() {
    let home = Home::new();
    home.file("record.jsonl", CHAT);
    let id = home.steno(&["import", "record.jsonl"]).ok();
    assert_eq!(home.steno(&["show", id.trim_end(), "--json"]).ok().lines().count(), 6);
    let refused = home.steno(&["record", "--session", id.trim_end()]);
    assert_eq!(refused.code, 1, "{refused}");
}

#[test]
fn a_rewritten_file_is_shown_in_its_current_version() {
    let home = chat();
    home.steno(&["export", "chat-1", "--format", "devflow", "-o", "out"]).ok();
    let id = home.steno(&["import", "out"]).ok();
    let run = home.path().join("out/runs").join(id.trim_end());
    std::fs::remove_file(run.join("metadata.json")).unwrap();
    let shorter =
        std::fs::read_to_string(run.join("transcript.json")).unwrap().replace("Done.", "Changed.");
    std::fs::write(run.join("transcript.json"), shorter).unwrap();
    home.steno(&["import", "out"]).ok();
    let shown = home.steno(&["show", id.trim_end()]).ok();
    assert!(shown.contains("Changed.") && !shown.contains("Done."), "{shown}");
}

#[test]
fn a_damaged_session_does_not_hide_the_others() {
    let home = chat();
    home.steno(&["export", "chat-1", "--format", "devflow", "-o", "out"]).ok();
    home.steno(&["import", "out"]).ok();
    let sealed = "store/vault/devflow/2026-01-05-mine-chat1/transcript.json.zst";
    home.file(sealed, "");
    assert!(home.steno(&["show", "latest"]).stdout.contains("Read the file"));
    assert_eq!(home.steno(&["list", "--json"]).stdout.lines().count(), 2);
    // The source is intact, so importing it again repairs the session.
    home.steno(&["import", "out"]).ok();
    home.steno(&["show", "2026", "--json"]).ok();
}

#[test]
fn text_beside_a_tool_call_is_in_every_format() {
    let home = Home::new();
    let line = r#"{"role":"assistant","content":"I'll read it.","tool_name":"Read","tool_call_id":"t","tool_input":{"path":"a"}}"#;
    let failed = r#"{"role":"tool","content":"no such file","tool_call_id":"t","metadata":{"is_error":true}}"#;
    home.steno_with(&["record", "--session", "s"], format!("{line}\n{failed}\n").as_bytes()).ok();
    let devflow = home.steno(&["show", "s", "--style", "devflow"]).ok();
    assert!(devflow.contains("I'll read it.") && devflow.contains("\"path\": \"a\""), "{devflow}");
    assert!(devflow.contains("Error: no such file"), "{devflow}");
    let leslie = home.steno(&["show", "s", "--style", "leslie"]).ok();
    assert!(
        leslie.contains("assistant:\nI'll read it.\n\n[Tool call] Read\n{\"path\":\"a\"}"),
        "{leslie}"
    );
}

#[test]
fn exporting_leaves_other_peoples_files_alone() {
    let home = chat();
    for n in 0..60 {
        home.file(&format!("notes/note{n}.txt"), "mine");
    }
    home.steno(&["export", "chat-1", "--format", "leslie", "-o", "notes"]).ok();
    assert_eq!(std::fs::read_dir(home.path().join("notes")).unwrap().count(), 61);
}

#[test]
fn what_chibi_rewrote_is_still_in_the_conversation() {
    let home = Home::new();
    let line = |n: u32, kind: &str| {
        format!(
            "{{\"id\":\"550e8400-e29b-41d4-a716-44665544000{n}\",\"timestamp\":{n},\"from\":\"alice\",\
             \"to\":\"main\",\"content\":\"{n}\",\"entry_type\":\"{kind}\"}}\n"
        )
    };
    home.file(".chibi/contexts/main/context.jsonl", line(1, "message") + &line(2, "tool_call"));
    home.steno(&["import", ".chibi"]).ok();
    home.file(".chibi/contexts/main/context.jsonl", line(3, "message"));
    home.steno(&["import", ".chibi"]).ok();
    let shown = home.steno(&["show", "main", "--json"]).ok();
    let contents: Vec<String> = shown
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["content"].to_string())
        .collect();
    assert_eq!(contents, ["\"1\"", "\"2\"", "\"3\""]);
}

#[cfg(unix)]
#[test]
fn called_by_another_systems_name_it_speaks_that_systems_commands() {
    let home = chat();
    home.steno(&["export", "chat-1", "--format", "devflow", "-o", ".devflow"]).ok();
    home.steno(&["export", "chat-1", "--format", "chibi", "-o", ".chibi"]).ok();
    let call = |name: &str, args: &[&str]| {
        let link = home.path().join(name);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_steno"), &link).unwrap();
        home.finish(home.program(link.to_str().unwrap(), args), b"").ok()
    };
    let listed = call("devflow", &["transcript", "list"]);
    assert!(listed.contains("2026-01-05-mine-chat1"), "{listed}");
    let log = call("chibi", &["-G", "chat-1", "-1"]);
    assert_eq!(log, "[SYSTEM]: You help.\n\n");
}

#[cfg(unix)]
#[test]
fn recordings_that_got_nothing_are_not_listed() {
    let home = Home::new();
    // No request reaches these gateways.
    home.steno(&["exec", "--", "true"]).ok();
    home.steno(&["exec", "--name", "named", "--", "true"]).ok();
    assert_eq!(home.vault().list_sessions().unwrap().len(), 0);
    // A connection without a request is recorded, because it has messages.
    let hello = "{\"id\":0,\"method\":\"initialize\",\"params\":{}}\n";
    let agent = "read -r line; echo '{\"id\":0,\"result\":{\"protocolVersion\":1}}'";
    let connect = || home.steno_with(&["acp", "--", "sh", "-c", agent], hello.as_bytes()).ok();
    connect();
    assert_eq!(home.vault().list_sessions().unwrap().len(), 1);
    let listed = home.steno(&["list"]);
    assert_eq!((listed.code, listed.stdout.as_str()), (0, ""), "{listed}");
    assert!(listed.stderr.contains("1 recording without entries not listed"), "{listed}");
    assert_eq!(home.steno(&["list", "--json"]).ok(), "");
    assert_eq!(home.steno(&["list", "--json", "--empty"]).ok().lines().count(), 1);
    home.steno_with(&["record", "--session", "s"], b"{\"role\":\"user\",\"content\":\"hi\"}\n")
        .ok();
    connect();
    // Hidden recordings do not count towards the limit, and `latest` is one with entries.
    let listed = home.steno(&["list", "--json", "-n", "1"]).ok();
    assert!(listed.contains("\"id\":\"s\""), "{listed}");
    assert!(home.steno(&["show", "latest"]).ok().contains("hi"));
}
