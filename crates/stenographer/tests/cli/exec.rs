//! Tests of `steno exec`, and of the same agent with `steno replay --as-api`.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::{Server, is_kept, said};
use crate::harness::Home;
use crate::model::{Model, ModelRequest, Reply, body, post};

const KEY: &str = "sk-test-0123456789abcdef";

/// File in which the agent notes every message it receives.
const NOTES: &str = "notes.json";

/// An agent that sends a prompt, calls a tool, and sends the result; other tests run it as a program.
#[test]
#[ignore = "is run by other tests, as an agent"]
fn agent() {
    let base = std::env::var("OPENAI_BASE_URL").unwrap();
    let mut messages = vec![
        json!({"role": "system", "content": "Be brief"}),
        json!({"role": "user", "content": "Count"}),
    ];
    loop {
        let request = json!({"model": "m", "messages": messages});
        let bearer = format!("Bearer {KEY}");
        let headers = [("Authorization", bearer.as_str()), ("Connection", "close")];
        let answer = body(&post(&format!("{base}/chat/completions"), &headers, &request).whole());
        let message = answer["choices"][0]["message"].clone();
        messages.push(message.clone());
        let Some(call) = message["tool_calls"].get(0) else { break };
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "three"}));
    }
    std::fs::write(NOTES, Value::Array(messages).to_string()).unwrap();
    std::process::exit(7);
}

/// Returns the command that runs this test binary as the agent.
fn agent_command() -> Vec<String> {
    let program = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    vec![program, "--exact".into(), "exec::agent".into(), "--ignored".into(), "--nocapture".into()]
}

/// Answers with a tool call, then with the tool's result.
fn counting(asked: &ModelRequest, reply: &mut Reply<'_>) {
    let messages = asked.json()["messages"].as_array().unwrap().clone();
    let last = messages.last().unwrap();
    let message = if last["role"] == "tool" {
        json!({"role": "assistant", "content": format!("There are {}.", last["content"].as_str().unwrap())})
    } else {
        json!({"role": "assistant", "content": "Let me see.", "tool_calls": [{"id": "call_1", "type": "function",
            "function": {"name": "count", "arguments": "{\"what\":\"herons\"}"}}]})
    };
    reply.json(
        "200 OK",
        &json!({"id": format!("c{}", messages.len()), "object": "chat.completion", "model": "m-1",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5}}),
    );
}

fn exec(home: &Home, flags: &[&str], command: &[String]) -> Command {
    let mut args = vec!["exec"];
    args.extend(flags);
    args.push("--");
    args.extend(command.iter().map(String::as_str));
    home.command(&args)
}

/// Records the agent once and returns its notes.
fn recorded(home: &Home, flags: &[&str]) -> String {
    let model = Model::start(counting);
    let mut command = exec(home, flags, &agent_command());
    command.env("OPENAI_BASE_URL", format!("{}/v1", model.url()));
    let output = home.finish(command, b"");
    assert_eq!(output.code, 7, "{output}");
    assert!(
        output.stderr.contains("recorded as s in $HOME/store/vault/agent/s; see `steno show s`"),
        "{output}"
    );
    std::fs::read_to_string(home.path().join(NOTES)).unwrap()
}

const SAID: [&str; 6] = [
    "primary system: Be brief",
    "primary user: Count",
    "primary assistant: Let me see.",
    "primary assistant: {\n  \"what\": \"herons\"\n}",
    "primary tool: three",
    "primary assistant: There are three.",
];

#[test]
fn an_agent_is_recorded_and_run_again_without_its_model() {
    let home = Home::new();
    let first = recorded(&home, &["--session", "s", "--name", "agent"]);
    assert_eq!(said(&home, "s"), SAID);
    assert!(!is_kept(&home, KEY));
    let row: Value = serde_json::from_str(home.steno(&["list", "--json"]).ok().trim()).unwrap();
    assert_eq!((&row["tokens"]["input"], &row["tokens"]["output"]), (&json!(20), &json!(10)));
    for flags in [&["replay", "s", "--as-api"][..], &["replay", "s", "--as-api", "--strict"]] {
        std::fs::remove_file(home.path().join(NOTES)).unwrap();
        let replay = Server::start(home.command(flags));
        // The model has ended; recording the replay gives the same conversation.
        let mut command =
            exec(&home, &["--session", flags[flags.len() - 1].trim_matches('-')], &agent_command());
        command.env("OPENAI_BASE_URL", format!("{}/v1", replay.url));
        assert_eq!(home.finish(command, b"").code, 7);
        assert_eq!(std::fs::read_to_string(home.path().join(NOTES)).unwrap(), first);
        assert_eq!(said(&home, flags[flags.len() - 1].trim_matches('-')), SAID);
        replay.stop();
    }
}

#[test]
fn what_is_not_in_the_record_gets_the_vendors_error() {
    let home = Home::new();
    recorded(&home, &["--session", "s", "--name", "agent"]);
    let strict = Server::start(home.command(&["replay", "s", "--as-api", "--strict"]));
    let ask = |server: &Server, path: &str, text: &str| {
        let request = json!({"model": "m", "messages": [{"role": "user", "content": text}]});
        post(&format!("{}{path}", server.url), &[("Connection", "close")], &request).whole()
    };
    let chat = "/v1/chat/completions";
    let other = ask(&strict, chat, "Something else");
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
    assert_eq!(body(&other)["error"]["code"], "not_found");
    let anthropic = ask(&strict, "/v1/messages", "Count");
    assert!(anthropic.starts_with("HTTP/1.1 404 "), "{anthropic}");
    assert_eq!(body(&anthropic)["error"]["type"], "not_found_error");
    assert!(ask(&strict, chat, "Count").starts_with("HTTP/1.1 200 "));
    assert!(ask(&strict, chat, "Count").starts_with("HTTP/1.1 404 "), "each answer is given once");
    // Otherwise the next response in order is used, and a response may be used again.
    let lenient = Server::start(home.command(&["replay", "s", "--as-api"]));
    assert!(ask(&lenient, chat, "Something else").contains("Let me see."));
    assert!(ask(&lenient, chat, "Count").contains("Let me see."));
    assert!(ask(&lenient, "/v1/responses", "Count").starts_with("HTTP/1.1 404 "));
    let nothing =
        home.steno_with(&["record", "--session", "r"], b"{\"role\":\"user\",\"content\":\"x\"}\n");
    assert_eq!(nothing.code, 0);
    insta::assert_snapshot!(home.steno(&["replay", "r", "--as-api"]), @r"
    --- stderr
    error: no API traffic in session: r
    hint: record one with `steno exec` or `steno gateway`
    --- exit 1
    ");
}

#[test]
fn a_transcript_is_what_weakincentives_would_have_written() {
    let home = Home::new();
    recorded(&home, &["--session", "s", "--name", "agent"]);
    let lines = home.steno(&["export", "s", "--format", "weakincentives"]).ok();
    let entries: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let fields = [
        "role",
        "content",
        "created_at",
        "tool_name",
        "tool_call_id",
        "tool_input",
        "metadata",
        "entry_id",
        "source",
        "sequence",
    ];
    for (at, entry) in entries.iter().enumerate() {
        let names: Vec<_> = entry.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, fields);
        assert_eq!((&entry["source"], &entry["sequence"]), (&json!("primary"), &json!(at)));
        assert_eq!(entry["metadata"]["adapter"], "openai");
    }
    let call = &entries[3];
    assert_eq!((&call["tool_name"], &call["tool_call_id"]), (&json!("count"), &json!("call_1")));
    assert_eq!(call["tool_input"], json!({"what": "herons"}));
    assert_eq!(call["metadata"]["model"], "m-1");
    assert!(call["metadata"]["latency_ms"].is_number());
    assert_eq!((&entries[4]["role"], &entries[4]["tool_name"]), (&json!("tool"), &json!("count")));
    assert_eq!(entries[4]["metadata"]["success"], json!(true));
    assert_eq!(entries[5]["metadata"]["has_structured_output"], json!(false));
}

#[test]
fn debug_files_are_written_as_chibi_writes_them() {
    let home = Home::new();
    recorded(&home, &["--session", "s", "--name", "agent", "--debug-files", "debug"]);
    let lines = |name: &str| {
        let text = std::fs::read_to_string(home.path().join("debug").join(name)).unwrap();
        text.lines().map(|line| line.to_owned()).collect::<Vec<_>>()
    };
    let (requests, metas) = (lines("requests.jsonl"), lines("response_meta.jsonl"));
    assert_eq!((requests.len(), metas.len()), (2, 2));
    assert!(
        requests[0]
            .starts_with(r#"{"request":{"messages":[{"content":"Be brief","role":"system"}"#),
        "{}",
        requests[0]
    );
    let meta = r#"{"response":{"id":"c2","model":"m-1","usage":{"completion_tokens":5,"prompt_tokens":10}},"timestamp":"#;
    assert!(metas[0].starts_with(meta), "{}", metas[0]);
}

#[test]
fn subagents_have_sources_of_their_own_if_asked_for() {
    for (flags, sources) in
        [(&["--subagents"][..], ["primary", "subagent:1"]), (&[], ["primary", "primary"])]
    {
        let home = Home::new();
        let model = Model::start(|_, reply| {
            std::thread::sleep(Duration::from_millis(300));
            reply.json("200 OK", &json!({"object": "chat.completion", "choices": []}));
        });
        // Two parallel requests, from a plain shell.
        let script = r#"
            host=${OPENAI_BASE_URL#http://}; port=${host#*:}; path=/${port#*/}; port=${port%%/*}
            ask() {
                body='{"model":"m","messages":[{"role":"user","content":"'$1'"}]}'
                exec 3<>/dev/tcp/127.0.0.1/$port
                printf 'POST %s/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %s\r\n\r\n%s' "$path" "${#body}" "$body" >&3
                cat <&3 >/dev/null
            }
            ask One & sleep 0.1; ask Two; wait"#;
        let command = ["bash", "-c", script].map(str::to_owned);
        let mut exec = exec(&home, &[&["--session", "s"], flags].concat(), &command);
        exec.env("OPENAI_BASE_URL", format!("{}/v1", model.url()));
        let output = home.finish(exec, b"");
        assert_eq!(output.code, 0, "{output}");
        let printed = said(&home, "s");
        let users: Vec<_> = printed.iter().filter(|line| line.contains(" user: ")).collect();
        assert_eq!(
            users,
            [&format!("{} user: One", sources[0]), &format!("{} user: Two", sources[1])]
        );
    }
}

#[test]
fn the_child_gets_its_variables_and_keeps_its_own_servers() {
    let home = Home::new();
    let mut command = exec(&home, &["-q"], &["env".to_owned()]);
    command
        .env("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com/")
        .env("NO_PROXY", "corp.example");
    let output = home.finish(command, b"");
    let value = |name: &str| {
        let prefix = format!("{name}=");
        let line = output.stdout.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap();
        line.replace(|c: char| c.is_ascii_digit(), "0").replace("000.0.0.0:00000", "HOST")
    };
    assert_eq!(value("OPENAI_BASE_URL"), "http://HOST/openai/v0");
    assert_eq!(value("OPENAI_API_BASE"), "http://HOST/openai/v0");
    assert_eq!(value("ANTHROPIC_BASE_URL"), "http://HOST/anthropic");
    assert_eq!(value("GOOGLE_GEMINI_BASE_URL"), "http://HOST/gemini");
    assert_eq!(value("AZURE_OPENAI_ENDPOINT"), "http://HOST/azure");
    assert_eq!(value("NO_PROXY"), "corp.example,000.0.0.0,localhost");
    let warning = "warning: no requests reached the gateway; nothing was recorded\nhint: ";
    assert!(output.stderr.starts_with(warning), "{output}");
}

#[test]
fn signals_and_the_end_are_the_childs() {
    let home = Home::new();
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    let mut command = exec(&home, &["--session", "s"], &["sh", "-c", script].map(str::to_owned));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.as_mut().unwrap()),
        &mut line,
    )
    .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(9));
    let mut killed = exec(&home, &[], &["sh", "-c", "kill -9 $$"].map(str::to_owned));
    let killed = killed.stderr(Stdio::null()).status().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&killed), Some(9));
}

#[test]
fn a_program_that_cannot_start_is_not_blamed_for_its_requests() {
    let home = Home::new();
    let script = home.file("script", "#!/no/such/interpreter -x\n");
    std::fs::set_permissions(script, PermissionsExt::from_mode(0o755)).unwrap();
    home.file("text", "#!/bin/sh\n");
    for (program, reason) in [
        ("no-such-program", "no such program"),
        ("./script", "its interpreter /no/such/interpreter does not exist"),
        ("./text", "the file is not executable"),
    ] {
        let failed = home.steno(&["exec", "--", program]);
        let hint = "hint: check the program's name, or give its path\n";
        assert_eq!(failed.stderr, format!("error: could not run {program}: {reason}\n{hint}"));
        assert_eq!(failed.code, 1, "{failed}");
    }
    assert!(!home.path().join("store/vault").exists());
}
