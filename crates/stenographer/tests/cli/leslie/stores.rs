//! Damaged, locked or blocked stores.

use super::*;

const RELATIONS: &str = ".leslie/thread_relations.json";

#[test]
fn a_damaged_store_comes_back_from_its_backup() {
    let project = Project::new();
    let objective = project.objective("o");
    let first = project.spawn(&objective, "first", &[]);
    fs::write(project.path(RELATIONS), "{\"version\": ").unwrap();
    let list = project.call(&["list"]);
    assert_eq!((list.code, &list.envelope["data"][0]["id"]), (0, &json!(first)));
    assert!(list.stderr.contains("thread_relations.json: "), "{}", list.stderr);
    assert!(list.stderr.trim_end().ends_with("; its backup is used"), "{}", list.stderr);
    for _ in 0..2 {
        assert_eq!(project.error(&["lifecycle", "--thread", "x", "--action", "done"]).0, "T101");
    }
    let second = project.spawn(&objective, "second", &[]);
    let threads = project.data(&["list"]);
    assert_eq!([&threads[0]["id"], &threads[1]["id"]], [&first, &second]);
    let ids = &project.data(&["objective", "status", "--id", &objective])["thread_ids"];
    assert_eq!(ids.as_array().unwrap().len(), 2);
}

#[test]
fn unreadable_stores_are_reported_and_left_alone() {
    let project = Project::new();
    let objective = project.objective("o");
    for name in [RELATIONS, ".leslie/thread_relations.json.bak"] {
        fs::write(project.path(name), "[]").unwrap();
    }
    let spawn = ["spawn", "--intent", "i", "--objective", &objective, "--no-run"];
    let reading: [&[&str]; 3] = [&["list"], &spawn, &["status", "--thread", "x"]];
    for args in reading {
        let error = &project.call(args).envelope["error"];
        assert_eq!(error["code"], "T502", "{args:?}");
        assert!(string(error, "message").starts_with("JSON parse error"), "{error}");
        assert_eq!(error["details"]["filePath"], "$HOME/.leslie/thread_relations.json");
        assert!(error["details"]["cause"].is_string());
    }
    assert_eq!(project.text(RELATIONS), "[]");
    assert_eq!(project.data(&["objective", "list"])[0]["id"], *objective);
}

#[test]
fn a_lock_of_another_process_is_waited_for_and_reported() {
    let project = Project::new();
    project.data(&["list"]);
    fs::create_dir(project.path(".leslie/objectives.json.lock")).unwrap();
    let error = project.call(&["objective", "create", "--title", "x"]).envelope;
    assert_eq!(error["error"]["code"], "T501");
    assert_eq!(project.data(&["objective", "list"]), json!([]));
    fs::remove_dir(project.path(".leslie/objectives.json.lock")).unwrap();
    project.objective("x");
}

#[test]
fn a_file_in_the_way_is_reported() {
    let project = Project::new();
    fs::write(project.path(".leslie"), "mine").unwrap();
    let (code, message) = project.error(&["list"]);
    assert_eq!(code, "T902");
    assert!(message.contains("$HOME/.leslie"), "{message}");
    assert_eq!(project.text(".leslie"), "mine");
}

#[test]
fn unknown_fields_survive() {
    let project = Project::new();
    let thread = project.spawn(&project.objective("o"), "t", &[]);
    let text =
        project.text(RELATIONS).replace("\"executor\"", "\"mood\": \"good\",\n      \"executor\"");
    fs::write(
        project.path(RELATIONS),
        text.replace("\"status\": \"active\"", "\"status\": \"pending\""),
    )
    .unwrap();
    project.data(&["lifecycle", "--thread", &thread, "--action", "suspend"]);
    let found = &project.store("thread_relations")["threads"][&thread];
    assert_eq!((&found["mood"], &found["status"]), (&json!("good"), &json!("suspended")));
}

#[test]
fn many_processes_lose_nothing() {
    let project = Project::new();
    let objective = project.objective("o");
    let program = project.path("bin/leslie");
    let args = ["spawn", "--intent", "i", "--objective", &objective, "--no-run"];
    let spawn = || project.home.program(program.to_str().unwrap(), &args).output().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| (0..3).for_each(|_| assert!(spawn().status.success())));
        }
    });
    assert_eq!(project.data(&["list"]).as_array().unwrap().len(), 18);
    let ids = &project.data(&["objective", "list"])[0]["thread_ids"];
    assert_eq!(ids.as_array().unwrap().len(), 18);
}
