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
    let ended = |text: &str| text.contains("worker_finished") || text.contains("worker_failed");
    while !fs::read_to_string(&path).is_ok_and(|text| ended(&text)) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("{\"type\":\"worker_started\",\"threadId\":\"thread-"), "{text}");
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
