//! Tests of `steno run`, and of `steno resume` with a thread.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Home, Output};

/// An agent that appends each prompt to `heard` and obeys a word in the prompt.
pub(crate) const AGENT_NAME: &str = r#"#!/bin/sh
say() { printf '%s\n' "$1"; }
update() { say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-0001","update":'"$1"'}}'; }
text() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
stop() { say '{"jsonrpc":"2.0","id":'"$id"',"result":{"stopReason":"'"$1"'","usage":{"totalTokens":12,"inputTokens":10,"outputTokens":2}}}'; }
echo $$ >> pids
die() { if [ "$KILL" = "$1" ]; then kill -9 $PPID; sleep 9; fi; }
while read -r line; do
case "$line" in *'"id":'*) last=${line#*'"id":'}; last=${last%%,*};; esac
case "$line" in
*'"initialize"'*) die initialize; say '{"jsonrpc":"2.0","id":'"$last"',"result":{"protocolVersion":1,"agentInfo":{"name":"toy"},"agentCapabilities":{"loadSession":'"${LOADS:-false}"'}}}';;
*'"session/new"'*) die new; say '{"jsonrpc":"2.0","id":'"$last"',"result":{"sessionId":"sess-000'"$(wc -l < pids | tr -d ' ')"'","modes":{"currentModeId":"agent","availableModes":[{"id":"agent","name":"A"},{"id":"plan","name":"P"}]}}}' | sed "s/sess-000[0-9]/${SESSION:-sess-0001}/";;
*'"session/load"'*)
 text 'what it said before'
 say '{"jsonrpc":"2.0","id":'"$last"',"result":{}}';;
*'"session/set_mode"'*) printf '%s\n' "$line" >> modes; say '{"jsonrpc":"2.0","id":'"$last"',"result":{}}';;
*'"session/cancel"'*) stop cancelled;;
*'"session/prompt"'*)
 id=$last
 printf '%s\n' "$line" >> heard
 die prompt
 case "$line" in
 *'crash now"'*) text 'Going down.'; echo 'out of order' >&2; exit 3;;
 *wait*) text 'Waiting.'; echo go >> waiting;;
 *full*) update '{"sessionUpdate":"usage_update","used":95,"size":100}'; text 'Nearly full.'; stop end_turn;;
 *refuse*) text 'No.'; stop refusal;;
 *)
  update '{"sessionUpdate":"tool_call","toolCallId":"call-1","title":"ls","kind":"execute","status":"pending","rawInput":{"command":"ls"}}'
  say '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"sess-0001","toolCall":{"toolCallId":"call-1"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}'
  die asked;;
 esac;;
*'"optionId":"y"'*)
 die decided
 update '{"sessionUpdate":"tool_call_update","toolCallId":"call-1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a.txt"}}]}'
 text 'One file.'; die said; stop end_turn; die stopped;;
*'"optionId":"n"'*)
 update '{"sessionUpdate":"tool_call_update","toolCallId":"call-1","status":"failed"}'
 text 'I may not.'; stop end_turn;;
esac
done
die end
case "$KILL" in 0*) (sleep "$KILL"; kill -9 $PPID) > /dev/null 2>&1 &;; esac
"#;

/// An agent that writes its API address to a file, and ends.
const TELLING: &str = "#!/bin/sh\necho \"${OPENAI_BASE_URL:-nowhere}\" > printed\n";

#[test]
fn an_agent_is_led_to_the_gateway_unless_that_is_unwanted() {
    for (flags, is_led) in [(&[][..], true), (&["--no-gateway"], false)] {
        let home = Home::new();
        home.file("telling.sh", TELLING);
        let args = [&["run", "--agent", "sh telling.sh"], flags, &["Hi"]].concat();
        home.steno(&args);
        let printed = fs::read_to_string(home.path().join("printed")).unwrap();
        let address = printed.trim().strip_prefix("http://127.0.0.1:");
        assert_eq!(address.is_some_and(|rest| rest.ends_with("/openai/v1")), is_led, "{printed}");
    }
}

pub(crate) fn home() -> Home {
    let home = Home::new();
    home.file("agent.sh", AGENT_NAME);
    home
}

pub(crate) fn run(home: &Home, args: &[&str]) -> Output {
    let mut all = vec!["run", "--agent", "sh agent.sh"];
    all.extend(args);
    home.finish(home.command(&all), b"")
}

/// Returns the prompts that the agent received.
fn heard(home: &Home) -> Vec<String> {
    let lines = fs::read_to_string(home.path().join("heard")).unwrap_or_default();
    let text = |line: &str| {
        let message: Value = serde_json::from_str(line).unwrap();
        message["params"]["prompt"][0]["text"].as_str().unwrap().to_owned()
    };
    lines.lines().map(text).collect()
}

/// Parses the last line of a run with `--json`.
pub(crate) fn end(output: &str) -> Value {
    let end: Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    assert_eq!(end["event"], "end");
    end
}

fn transcripts(home: &Home, thread: &str) -> Vec<PathBuf> {
    let folder = home.path().join(".leslie/threads").join(thread).join(".meta/transcripts");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    files
}

fn thread(home: &Home, id: &str) -> Value {
    let text = fs::read_to_string(home.path().join(".leslie/thread_relations.json")).unwrap();
    let relations: Value = serde_json::from_str(&text).unwrap();
    relations["threads"][id].clone()
}

pub(crate) fn wait_for(path: PathBuf) {
    let end = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < end, "it never came: {}", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_task_leaves_a_transcript_a_status_and_a_record() {
    let home = home();
    let output = run(&home, &["--permission", "allow", "--json", "What is here?"]);
    let end = end(&output.ok());
    let id = end["thread"].as_str().unwrap();
    assert_eq!((&end["status"], &end["stop_reason"]), (&"completed".into(), &"end_turn".into()));
    assert_eq!((&end["tokens"]["input"], &end["session"]), (&10.into(), &"sess-0001".into()));
    let [path] = transcripts(&home, id).try_into().unwrap();
    assert!(path.to_str().unwrap().ends_with("-What-is-here.txt"), "{path:?}");
    let text = fs::read_to_string(path).unwrap();
    assert!(text.starts_with(&format!("Thread ID: {id}\nChat ID: sess-0001\n")), "{text}");
    for part in [
        "<user_query>\nWhat is here?\n</user_query>",
        "[Tool call] execute\n{\"command\":\"ls\"}",
        "[Tool result] execute\na.txt",
        "assistant:\nOne file.",
        "Stop Reason: end_turn\nTool Calls: 1\n",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    let [prompt] = heard(&home).try_into().unwrap();
    assert!(prompt.starts_with(&format!("<thread_context thread=\"{id}\"")), "{prompt}");
    assert!(prompt.ends_with("</thread_context>\n\nWhat is here?"), "{prompt}");
    let thread = thread(&home, id);
    assert_eq!(
        (&thread["status"], &thread["session_id"]),
        (&"completed".into(), &"sess-0001".into())
    );
    let row = home.steno(&["list", "--json"]).ok();
    let row: Value = serde_json::from_str(&row).unwrap();
    assert_eq!((&row["thread"], &row["title"]), (&id.into(), &"What is here?".into()));
    assert_eq!((&row["agent"], &row["status"]), (&"toy".into(), &"completed".into()));
    home.steno(&["verify"]).ok();
}

#[test]
fn events_are_printed_as_they_come() {
    let home = home();
    let output = run(&home, &["--permission", "allow", "Look"]);
    assert_eq!(output.stdout, "One file.\n");
    assert!(output.stderr.contains("> ls\nls: Yes\n  a.txt\n"), "{output}");
    let last = output.stderr.lines().last().unwrap();
    assert!(last.starts_with(".leslie/threads/thread-") && last.ends_with("-Look.txt"), "{last}");
    assert!(output.stderr.contains(" completed · sh agent.sh · sess-0001 · 10 tokens in, 2 out"));
}

#[test]
fn nothing_is_allowed_without_permission() {
    let home = home();
    assert_eq!(run(&home, &["Look"]).ok(), "I may not.\n");
    // The question goes to standard error, the answer comes from standard input.
    let args = ["run", "--agent", "sh agent.sh", "--permission", "ask", "Look"];
    let asked = home.finish(home.command(&args), b"maybe\n1\n");
    assert_eq!(asked.stdout, "One file.\n", "{asked}");
    assert_eq!(asked.stderr.matches("Allow ls?\n  1 Yes\n  2 No\n").count(), 2, "{asked}");
    assert_eq!(home.finish(home.command(&args), b"n\n").stdout, "I may not.\n");
}

#[test]
fn without_an_agent_there_is_a_rehearsal() {
    let home = Home::new();
    let mut command = home.command(&["run", "Set the greeting right"]);
    command.env("PATH", "/nowhere");
    let output = home.finish(command, b"");
    assert!(output.stderr.starts_with("no agent is installed; running a rehearsal"), "{output}");
    assert!(output.stdout.contains("This is a rehearsal"), "{output}");
    // The edit was not permitted.
    assert!(output.stdout.contains("so it still says \"Helo, world\"."), "{output}");
    assert!(!output.stdout.contains("It says \"Hello, world\" now."), "{output}");
    let allowed = home.steno(&["run", "--agent", "rehearsal", "--permission", "allow", "Go"]);
    assert!(allowed.stdout.contains("It says \"Hello, world\" now."), "{allowed}");
    assert!(!allowed.stdout.contains("not permitted"), "{allowed}");
    assert!(home.steno(&["list"]).ok().contains("rehearsal  completed"));
    let missing = home.steno(&["run", "--agent", "qwenn", "x"]);
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("claude, codex, gemini, opencode, qwen, copilot"), "{missing}");
    let mut absent = home.command(&["run", "--agent", "codex", "x"]);
    absent.env("PATH", "/nowhere");
    let absent = home.finish(absent, b"");
    assert!(absent.stderr.contains("hint: run `npm install -g @agentclientprotocol/codex-acp`"));
    assert!(!home.path().join(".leslie/threads/x").exists());
}

#[test]
fn the_agents_error_output_is_shown() {
    let home = Home::new();
    let script = "echo 'error: no such model' >&2; echo 'For more, try --help.' >&2; exit 2";
    home.file("broken.sh", script);
    let failed = home.steno(&["run", "--agent", "sh broken.sh", "Look"]);
    assert_eq!(failed.code, 1);
    assert!(
        failed.stderr.ends_with("hint: the agent's last output: error: no such model\n"),
        "{failed}"
    );
}

#[test]
fn agents_come_from_the_settings_too() {
    let home = home();
    home.file(
        "store/config.toml",
        "[run]\nagent = \"mine\"\n[agents.mine]\ncommand = [\"sh\", \"agent.sh\"]\n",
    );
    let output = home.steno(&["run", "--permission", "allow", "--json", "Look"]).ok();
    assert_eq!(end(&output)["agent"], "mine");
    home.file("store/config.toml", "[agents]\nmine = 3\n");
    let wrong = home.steno(&["run", "Look"]);
    assert!(
        wrong.stderr.starts_with("error: $HOME/store/config.toml:2: agent mine is not a table")
    );
}

#[test]
fn a_resumed_thread_gets_its_waiting_messages() {
    let home = home();
    let first = end(&run(&home, &["--permission", "allow", "--json", "One"]).ok());
    let (id, objective) = (first["thread"].as_str().unwrap(), first["objective"].as_str().unwrap());
    home.file(&format!(".leslie/threads/{id}/plan.md"), "# Plan");
    let inbox = format!(".leslie/threads/{id}/.meta/inbox.jsonl");
    home.file(
        &inbox,
        "{\"id\":\"m1\",\"timestamp\":1,\"from\":\"main\",\"to\":\"x\",\"content\":\"hurry & go\"}\n",
    );
    home.steno(&["inject", id, "be <brief>", "--type", "constraint"]).ok();
    let args = ["--permission", "allow", "--json", "--thread", id, "Two"];
    end(&run(&home, &args).ok());
    end(&run(&home, &args).ok());
    let heard = heard(&home);
    assert!(heard[1].contains(&format!("path=\".leslie/threads/{id}/plan.md\"")), "{}", heard[1]);
    let message =
        "<thread_inbox>\n  <message from=\"main\">hurry &amp; go</message>\n</thread_inbox>";
    assert!(heard[1].contains(message) && heard[1].ends_with("\n\nTwo"), "{}", heard[1]);
    let injected =
        "<injection type=\"constraint\" time=\"2026-01-05T09:15:32.500Z\">be &lt;brief&gt;<";
    assert!(heard[1].contains(injected), "{}", heard[1]);
    assert!(!heard[2].contains("thread_inbox") && !heard[2].contains("<injection"), "{}", heard[2]);
    let other = run(&home, &["--json", "--objective", objective, "--ref", id, "Three"]);
    let other = end(&other.ok());
    assert_eq!(other["objective"], objective);
    let printed = &self::heard(&home)[3];
    assert!(printed.contains(&format!("<ref thread=\"{id}\">")), "{printed}");
    assert_eq!(run(&home, &["--thread", "thread-none", "x"]).code, 1);
    assert_eq!(run(&home, &["--thread", id, "--objective", objective, "x"]).code, 2);
    assert_eq!(run(&home, &[" "]).code, 2);
}

#[test]
fn the_context_comes_again_when_it_may_be_lost() {
    let home = home();
    end(&run(&home, &["--json", "full", "two", "three"]).ok());
    let printed: Vec<bool> = heard(&home).iter().map(|it| it.contains("<thread_context")).collect();
    assert_eq!(printed, [true, true, false]);
    let home = self::home();
    home.file("store/config.toml", "[run]\ncontext_rounds = 2\n");
    let end = end(&run(&home, &["--json", "1", "2", "3", "4"]).ok());
    let printed: Vec<bool> = heard(&home).iter().map(|it| it.contains("<thread_context")).collect();
    assert_eq!(printed, [true, false, true, false]);
    assert_eq!(transcripts(&home, end["thread"].as_str().unwrap()).len(), 4);
}

#[test]
fn a_mode_is_one_that_the_agent_has() {
    let home = home();
    let planned = end(&run(&home, &["--json", "--mode", "plan", "Look"]).ok());
    let [path] = transcripts(&home, planned["thread"].as_str().unwrap()).try_into().unwrap();
    assert!(fs::read_to_string(path).unwrap().contains("Agent Mode: plan\n"));
    assert!(fs::read_to_string(home.path().join("modes")).unwrap().contains("\"modeId\":\"plan\""));
    let none = run(&home, &["--mode", "duet", "Look"]);
    assert_eq!(none.code, 1);
    assert!(
        none.stderr.contains("error: the agent has no mode duet; it has: agent, plan"),
        "{none}"
    );
}

#[test]
fn one_that_did_not_finish_stays_open() {
    let home = home();
    let refused = run(&home, &["--json", "refuse"]);
    assert_eq!(refused.code, 1);
    let end = end(&refused.stdout);
    assert_eq!((&end["status"], &end["stop_reason"]), (&"suspended".into(), &"refusal".into()));
}

#[test]
fn a_thread_continues_after_a_crash_of_its_agent() {
    let home = home();
    let crashed = run(&home, &["--json", "crash now"]);
    assert_eq!(crashed.code, 1);
    assert!(crashed.stderr.contains("error: the agent ended before it answered session/prompt"));
    assert!(crashed.stderr.contains("hint: the agent's last output: out of order"), "{crashed}");
    let id = end(&crashed.stdout)["thread"].as_str().unwrap().to_owned();
    assert_eq!(thread(&home, &id)["status"], "suspended");
    let text = fs::read_to_string(&transcripts(&home, &id)[0]).unwrap();
    assert!(text.contains("Going down."), "{text}");
    assert!(home.steno(&["list", "--json"]).ok().contains("\"status\":\"failed\""));
    // It cannot load a session, so a new one gets the conversation so far.
    let mut resumed = home.command(&["resume", &id, "--permission", "allow", "--json"]);
    resumed.env("SESSION", "sess-0002");
    let end = end(&home.finish(resumed, b"").ok());
    assert_eq!((&end["status"], &end["session"]), (&"completed".into(), &"sess-0002".into()));
    let printed = heard(&home).pop().unwrap();
    assert!(printed.starts_with("<thread_context"), "{printed}");
    assert!(
        printed.contains("\ncrash now\n") && printed.contains("assistant:\nGoing down.\n"),
        "{printed}"
    );
    assert!(printed.ends_with("</thread_conversation>\n\nGo on where you stopped."), "{printed}");
    let names = transcripts(&home, &id);
    let is_named = |end: &str| names.iter().any(|name| name.to_str().unwrap().ends_with(end));
    assert!(is_named("-Go-on-where-you-stopped.txt") && is_named("-crash-now.txt"), "{names:?}");
    assert_eq!(home.steno(&["list", "--json"]).ok().lines().count(), 2);
}

#[test]
fn a_thread_continues_in_its_session_after_steno_was_killed() {
    let home = home();
    let mut child = home.command(&["run", "--agent", "sh agent.sh", "--json", "wait here"]);
    child.env("LOADS", "true").stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.spawn().unwrap();
    wait_for(home.path().join("waiting"));
    let kept = || home.steno(&["show", "sess-0001", "--json"]).stdout;
    let until = Instant::now() + Duration::from_secs(60);
    while !kept().contains("Waiting.") {
        assert!(Instant::now() < until, "it was never kept");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::KILL).unwrap();
    child.wait().unwrap();
    let relations = fs::read_to_string(home.path().join(".leslie/thread_relations.json")).unwrap();
    let relations: Value = serde_json::from_str(&relations).unwrap();
    let id = relations["threads"].as_object().unwrap().keys().next().unwrap().clone();
    assert_eq!(relations["threads"][&id]["status"], "active");
    let mut resumed = home.command(&["resume", &id, "--permission", "allow", "--json", "And now?"]);
    resumed.env("LOADS", "true");
    let output = home.finish(resumed, b"");
    assert!(!output.stdout.contains("what it said before"), "repeated messages are not shown");
    let end = end(&output.ok());
    assert_eq!((&end["session"], &end["status"]), (&"sess-0001".into(), &"completed".into()));
    let printed = heard(&home).pop().unwrap();
    assert!(
        printed.starts_with("<thread_context") && printed.ends_with("\n\nAnd now?"),
        "{printed}"
    );
    assert!(!printed.contains("thread_conversation"), "{printed}");
    let names = transcripts(&home, &id);
    assert_eq!(names.len(), 2, "{names:?}");
    let torn =
        names.iter().find(|name| name.to_str().unwrap().ends_with("-wait-here.txt")).unwrap();
    assert!(fs::read_to_string(torn).unwrap().contains("\nWaiting.\n"));
    home.steno(&["verify"]).ok();
}

#[test]
fn ctrl_c_cancels_the_turn_and_keeps_the_record() {
    let home = home();
    let mut child = home.command(&["run", "--agent", "sh agent.sh", "--json", "wait here"]);
    child.stdout(Stdio::piped()).stderr(Stdio::null());
    let child = child.spawn().unwrap();
    wait_for(home.path().join("waiting"));
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let output = String::from_utf8(output.stdout).unwrap();
    let end = end(&output);
    assert_eq!((&end["stop_reason"], &end["status"]), (&"cancelled".into(), &"suspended".into()));
    assert!(output.contains("{\"event\":\"cancelling\"}"), "{output}");
    let shown = home.steno(&["show", "sess-0001", "--json"]).ok();
    assert!(shown.contains("Waiting.") && shown.contains("turn ended: cancelled"), "{shown}");
    assert!(home.steno(&["list", "--json"]).ok().contains("\"status\":\"canceled\""));
    let [path] = transcripts(&home, end["thread"].as_str().unwrap()).try_into().unwrap();
    assert!(fs::read_to_string(path).unwrap().contains("Stop Reason: cancelled\n"));
}

/// An agent that answers only `initialize`, and only with the word "half"; it records its requests.
const SILENT: &str = r#"
trap '' INT
while read -r line; do
printf '%s\n' "$line" >> asked
case "$1$line" in
half*'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
esac
done
while :; do sleep 0.1; done
"#;

#[test]
fn an_agent_that_never_answers_is_reported_and_then_an_error() {
    for (word, method) in [("never", "initialize"), ("half", "session/new")] {
        let home = home();
        home.file("silent.sh", SILENT);
        home.file("store/config.toml", "[run]\nanswer_timeout = 1\n");
        let agent = format!("sh silent.sh {word}");
        let ran = home.finish(home.command(&["run", "--agent", &agent, "look"]), b"");
        let waiting =
            format!("still waiting for {agent} to answer {method}; press Ctrl-C to stop\n");
        let error = format!("error: the agent did not answer {method} within 1 s\n");
        assert!(ran.stderr.contains(&waiting), "{ran}");
        assert!(ran.stderr.contains(&error), "{ran}");
        assert!(ran.stderr.contains("answer_timeout"), "{ran}");
        assert_eq!(ran.code, 1, "{ran}");
    }
}

#[test]
fn an_agent_that_dies_at_once_leaves_no_recording() {
    let home = home();
    let ran = home.finish(home.command(&["run", "--agent", "false", "look"]), b"");
    assert!(ran.stderr.contains("the agent ended before it answered initialize"), "{ran}");
    assert_eq!(ran.code, 1, "{ran}");
    assert_eq!(home.vault().list_sessions().unwrap(), []);
}

#[test]
fn ctrl_c_ends_an_agent_that_never_answers() {
    for (word, asked) in [("never", 1), ("half", 2)] {
        let home = home();
        home.file("silent.sh", SILENT);
        let agent = format!("sh silent.sh {word}");
        let mut child = home.command(&["run", "--agent", &agent, "--json", "look"]);
        child.stdout(Stdio::piped()).stderr(Stdio::null());
        let child = child.spawn().unwrap();
        let lines = || fs::read_to_string(home.path().join("asked")).unwrap_or_default();
        let end = Instant::now() + Duration::from_secs(60);
        while lines().lines().count() < asked {
            assert!(Instant::now() < end, "it was never asked");
            std::thread::sleep(Duration::from_millis(10));
        }
        kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{word}");
    }
}

#[test]
fn ctrl_c_ends_an_agent_that_does_not_read_its_prompt() {
    let home = home();
    let agent = r#"
read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}'
read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"sess-0001"}}'
echo go >> waiting; while :; do sleep 0.1; done
"#;
    home.file("deaf.sh", agent);
    let mut child = home.command(&["run", "--agent", "sh deaf.sh", "--json", "-"]);
    child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = child.spawn().unwrap();
    // More than a pipe buffer holds.
    let prompt = "word ".repeat(100_000);
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), prompt.as_bytes()).unwrap();
    wait_for(home.path().join("waiting"));
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    assert!(line.contains("\"begin\""), "{line}");
    kill_process(pid, Signal::INT).unwrap();
    while !line.contains("\"cancelling\"") && !line.contains("\"end\"") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut output, &mut line).unwrap() > 0);
    }
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn messages_of_another_session_are_recorded_but_not_shown() {
    let home = home();
    let agent = r#"
say() { printf '%s\n' "$1"; }
text() { say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"'"$1"'","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$2"'"}}}}'; }
read -r line; say '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}'
read -r line; text other 'Too early. '; say '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"mine"}}'
read -r line; text other 'Not yours. '; text mine 'Yours.'; say '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}'
"#;
    home.file("two.sh", agent);
    let ran = home.finish(home.command(&["run", "--agent", "sh two.sh", "look"]), b"");
    assert!(ran.stdout.starts_with("Yours.\n"), "{ran}");
    assert!(!ran.stdout.contains("Not yours") && !ran.stdout.contains("Too early"), "{ran}");
    assert!(home.steno(&["show", "other"]).ok().contains("Not yours."));
    assert!(!home.steno(&["show", "mine"]).ok().contains("Not yours."));
}
