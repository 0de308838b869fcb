//! Tests of `steno replay`, on a terminal and as an agent.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::Home;
use crate::run::end;
use crate::terminal::Terminal;

/// An agent that sends every kind of update, then what its script contains.
const RICH: &str = r#"
say() { printf '%s\n' "$1"; }
update() { say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"rich-0001","update":'"$1"'}}'; }
chunk() { update '{"sessionUpdate":"agent_'"$1"'_chunk","messageId":"'"$2"'","content":{"type":"text","text":"'"$3"'"}'"$4"'}'; }
while read -r line; do
case "$line" in
*'"initialize"'*) say '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"rich"}}}';;
*'"session/new"'*) say '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"rich-0001","models":{"currentModelId":"m-1"}}}';;
*first*)
 update '{"sessionUpdate":"available_commands_update","availableCommands":[]}'
 chunk thought m1 'Let me'; chunk thought m1 ' see.'; chunk message m1 'Looking at it. ' ',"_meta":{"a":1}'; chunk message m1 'Closely.' ',"_meta":{"b":2}'
 update '{"sessionUpdate":"plan","entries":[{"content":"look","priority":"high","status":"in_progress"}]}'
 update '{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Edit a","kind":"edit","status":"pending","locations":[{"path":"/w/a"}],"_meta":{"claudeCode":{"toolName":"Edit"}}}'
 update '{"sessionUpdate":"tool_call_update","toolCallId":"c1","rawInput":{"file_path":"/w/a"},"_meta":{"claudeCode":{"toolName":"Edit","more":true}}}'
 say '{"jsonrpc":"2.0","id":"p1","method":"session/request_permission","params":{"sessionId":"rich-0001","toolCall":{"toolCallId":"c1"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}';;
*'"optionId":"y"'*)
 update '{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"diff","path":"/w/a","oldText":"one\ntwo\n","newText":"one\n2\n"}]}'
 update '{"sessionUpdate":"tool_call","toolCallId":"c2","title":"sh","kind":"execute","status":"in_progress","rawInput":{"command":"false"}}'
 update '{"sessionUpdate":"tool_call_update","toolCallId":"c2","status":"failed","content":[{"type":"content","content":{"type":"text","text":"no such thing"}}]}'
 update '{"sessionUpdate":"tool_call","toolCallId":"c3","title":"sleep","kind":"execute","status":"in_progress"}'
 update '{"sessionUpdate":"compaction_update","compactionId":"k1","status":"completed","summary":[{"type":"text","text":"short"}]}'
 update '{"sessionUpdate":"notice","severity":"warning","title":"Careful","description":"it is late"}'
 update '{"sessionUpdate":"from_the_future","value":[1,2]}'
 chunk message m2 'Done with a.'
 update '{"sessionUpdate":"usage_update","used":10,"size":100,"cost":{"amount":0.25,"currency":"USD"}}'
 say '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn","usage":{"totalTokens":21,"inputTokens":10,"outputTokens":4,"cachedReadTokens":5,"thoughtTokens":2},"_meta":{"x":1}}}';;
*second*)
 update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Half of"}}'
 say '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"max_tokens"}}';;
*third*) say '{"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"out of order"}}';;
esac
done
"#;

/// Returns the entries of a session, without ids and times.
fn entries(home: &Home, session: &str) -> Vec<Value> {
    let shown = home.steno(&["show", session, "--json"]).ok();
    let mut entries: Vec<Value> =
        shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for entry in &mut entries {
        for name in ["entry_id", "created_at"] {
            entry.as_object_mut().unwrap().shift_remove(name);
        }
        if let Some(permission) = entry["metadata"]["permission"].as_object_mut() {
            permission.shift_remove("waited_ms");
        }
        let content = entry["content"].as_str().unwrap();
        let words = content.split_inclusive('"').map(|word| {
            let is_id = word.contains("thread-") || word.starts_with("obj-");
            if is_id { "ID\"" } else { word }
        });
        entry["content"] = words.collect::<String>().into();
    }
    entries
}

/// Returns the agent command for `steno replay ID --as-agent`.
fn as_agent(session: &str, more: &str) -> String {
    format!("{} replay {session} --as-agent {more}", env!("CARGO_BIN_EXE_steno"))
}

#[test]
fn a_session_that_was_run_is_the_same_when_its_replay_is_run() {
    let home = Home::new();
    home.file("rich.sh", RICH);
    let prompts = ["first", "second", "third"];
    let run = |agent: &str| {
        let mut args = vec!["run", "--agent", agent, "--permission", "allow", "--json"];
        args.extend(prompts);
        let output = home.finish(home.command(&args), b"");
        assert_eq!(output.code, 1, "{output}");
        assert!(
            output.stderr.contains("the agent refused session/prompt: out of order"),
            "{output}"
        );
        end(&output.stdout)["session"].as_str().unwrap().to_owned()
    };
    let first = run("sh rich.sh");
    assert_eq!(first, "rich-0001");
    let recorded = entries(&home, &first);
    let kinds: Vec<_> = recorded.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "text",
            "thinking",
            "text",
            "notice",
            "tool_call",
            "notice",
            "tool_result",
            "tool_call",
            "tool_result",
            "tool_call",
            "compaction",
            "notice",
            "other",
            "text",
            "text",
            "text",
            "notice",
            "text",
            "error"
        ]
    );
    let second = run(&as_agent(&first, "--strict"));
    let again = entries(&home, &second);
    for (one, other) in recorded.iter().zip(&again) {
        assert_eq!(one, other);
    }
    assert_eq!(recorded.len(), again.len());
    // A replayed session can be replayed too.
    assert_eq!(entries(&home, &run(&as_agent(&second, "--strict"))), again);
}

#[test]
fn a_strict_replay_fails_on_another_prompt() {
    let home = Home::new();
    home.file("rich.sh", RICH);
    home.finish(
        home.command(&["run", "--agent", "sh rich.sh", "--permission", "allow", "first"]),
        b"",
    )
    .ok();
    let agent = as_agent("rich-0001", "");
    let loose = home
        .finish(home.command(&["run", "--agent", &agent, "--permission", "allow", "else"]), b"");
    assert!(loose.ok().contains("Done with a."));
    let strict = as_agent("rich-0001", "--strict");
    let failed = home.finish(home.command(&["run", "--agent", &strict, "else"]), b"");
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("prompt 1 differs from the recorded one"), "{failed}");
    let more = home.finish(home.command(&["run", "--agent", &agent, "first", "more"]), b"");
    assert!(more.stderr.contains("only 1 prompts were recorded"), "{more}");
    assert_eq!(home.steno(&["replay", "rich-0001", "--strict"]).code, 2);
    assert_eq!(home.steno(&["replay", "rich-0001", "--as-agent", "--from", "1"]).code, 2);
}

/// A session in another agent's format.
const CLAUDE: &str = concat!(
    r#"{"type":"user","uuid":"u0","sessionId":"0000-claude","cwd":"/w","timestamp":"2026-01-05T09:15:30.000Z","message":{"role":"user","content":"what is here?"}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"u1","parentUuid":"u0","sessionId":"0000-claude","cwd":"/w","timestamp":"2026-01-05T09:15:31.000Z","message":{"id":"msg_1","role":"assistant","model":"m","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":3,"output_tokens":2}}}"#,
    "\n",
    r#"{"type":"user","uuid":"u2","parentUuid":"u1","sessionId":"0000-claude","cwd":"/w","timestamp":"2026-01-05T09:15:32.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"a.txt","is_error":true}]}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"u3","parentUuid":"u2","sessionId":"0000-claude","cwd":"/w","timestamp":"2026-01-05T09:15:33.000Z","message":{"id":"msg_1","role":"assistant","model":"m","content":[{"type":"text","text":"One file."}],"usage":{"input_tokens":3,"output_tokens":9}}}"#,
    "\n",
);

#[test]
fn any_session_can_be_an_agent() {
    let home = Home::new();
    home.file("claude.jsonl", CLAUDE);
    let mut steno = home.command(&["replay", "claude.jsonl", "--as-agent"]);
    let mut steno = steno.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = steno.stdin.take().unwrap();
    let mut output = BufReader::new(steno.stdout.take().unwrap()).lines();
    let mut ask = |id: u64, method: &str, params: Value| {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(input, "{request}").unwrap();
        let mut printed = Vec::new();
        loop {
            let line: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
            if line["id"] == id {
                return (printed, line["result"].clone());
            }
            printed.push(line["params"]["update"].clone());
        }
    };
    let (_, greeting) = ask(0, "initialize", json!({ "protocolVersion": 1 }));
    assert_eq!(greeting["agentInfo"]["name"], "replay");
    let (_, session) = ask(1, "session/new", json!({ "cwd": "/w", "mcpServers": [] }));
    assert_eq!(session["models"]["currentModelId"], "m");
    let prompt = json!([{ "type": "text", "text": "hm?" }]);
    let params = json!({ "sessionId": session["sessionId"], "prompt": prompt });
    let (printed, result) = ask(2, "session/prompt", params);
    let kinds: Vec<_> = printed.iter().map(|it| it["sessionUpdate"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["agent_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"]
    );
    assert_eq!((&printed[1]["title"], &printed[1]["kind"]), (&"Bash ls".into(), &"execute".into()));
    assert_eq!(printed[2]["status"], "failed");
    assert_ne!(printed[0]["messageId"], printed[3]["messageId"], "they would run together");
    assert_eq!(
        (&result["stopReason"], &result["usage"]["outputTokens"]),
        (&"end_turn".into(), &9.into())
    );
    drop(input);
    assert!(steno.wait().unwrap().success());
}

#[test]
fn a_session_is_replayed_without_pauses_outside_a_terminal() {
    let home = Home::new();
    home.file("claude.jsonl", CLAUDE);
    let played = home.steno(&["replay", "claude.jsonl", "--from", "2"]).ok();
    insta::assert_snapshot!(played, @r#"
    what is here?
    claude-code · 0000-claude · completed
    2026-01-05 09:15:30 to 09:15:33 · 5 entries · 3 tokens in, 9 out · m
    /w

    09:15:31 tool call Bash
    {"command":"ls"}

    09:15:32 tool result Bash
    a.txt

    09:15:33 assistant
    One file.
    "#);
    let none = home.steno(&["replay", "claude.jsonl", "--from", "9"]);
    assert_eq!(none.code, 1);
    assert!(none.stderr.contains("the last entry is 4"), "{none}");
    assert_eq!(home.steno(&["replay", "claude.jsonl", "--speed", "0"]).code, 2);
    let quick = home.steno(&["replay", "claude.jsonl", "--speed", "1000", "--max-pause", "0.01"]);
    assert!(quick.ok().contains("One file."));
}

#[test]
fn keys_pause_step_and_jump() {
    let home = Home::new();
    home.file("claude.jsonl", CLAUDE);
    let args = ["replay", "claude.jsonl", "--speed", "0.001", "--max-pause", "600"];
    let mut terminal = Terminal::run(&home, env!("CARGO_BIN_EXE_steno"), &args, &[]);
    terminal.shows(&["09:15:30 user"]);
    assert!(!terminal.screen().contains("I look."));
    terminal.press("n");
    terminal.shows(&["I look."]);
    terminal.press("e");
    let screen = terminal.shows(&["... 1 entries", "09:15:32 tool result Bash"]);
    assert!(!screen.contains("tool call Bash"), "{screen}");
    terminal.press("q");
    assert_eq!(terminal.ends(), Some(0));
}
