//! Agents that work on threads.

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
    // The worker outlives the command; it ends by itself.
    let is_over = |text: &str| text.contains("worker_finished") || text.contains("worker_failed");
    while !fs::read_to_string(&path).is_ok_and(|text| is_over(&text)) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("{\"type\":\"worker_started\",\"threadId\":\"thread-"), "{text}");
    assert!(lines[1].starts_with("{\"type\":\"worker_finished\",\"success\":true,"), "{text}");
    let thread = project.data(&["status", "--thread", &string(&made, "thread_id")]);
    assert_eq!(thread["status"], "completed");
    assert!(thread["session_id"].is_string(), "{thread}");
}

#[test]
fn in_the_foreground_the_answer_tells_how_it_went() {
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
    assert!(last.starts_with("{\"type\":\"worker_failed\",\"error\":\"thread "), "{last}");
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
    assert!(events.starts_with("{\"type\":\"thread_started\",\"source\":\"run\","), "{events}");
    assert!(events.lines().last().unwrap().starts_with("{\"type\":\"worker_exit\""), "{events}");
}

#[test]
fn nobody_works_on_what_a_person_does() {
    let project = Project::new();
    let objective = project.objective("o");
    let args = ["spawn", "--intent", "i", "--objective", &objective, "--executor", "human"];
    assert_eq!(fields(&project.data(&args)), ["thread_id", "parent_id", "status", "objective"]);
    assert!(!project.path(".leslie/logs/workers").exists());
}

#[test]
fn variables_that_cannot_be_read_are_told() {
    let project = Project::new();
    let objective = project.objective("o");
    let args = ["spawn", "--intent", "i", "--objective", &objective, "--config", "none.env"];
    let (code, message) = project.error(&args);
    assert_eq!(code, "T902");
    assert!(message.starts_with("Failed to load config: $HOME/none.env: "), "{message}");
    assert_eq!(project.data(&["list"]), json!([]), "nothing was spawned");
}
