//! Two processes and one thread.

use super::*;

/// Starts a run that sleeps in its turn. Returns it with its thread.
fn sleeping(project: &Project) -> (Child, String) {
    let run = project.start(&["one", "then sleep"]);
    wait_for(project.home.path().join("asleep"));
    (run, project.thread_id())
}

#[test]
fn a_thread_that_is_worked_in_is_busy() {
    let project = Project::new();
    let (mut run, id) = sleeping(&project);
    let before = project.transcripts(&id);
    for args in [&["resume", &id][..], &["run", "--agent", "sh agent.sh", "--thread", &id, "Two"]] {
        let refused = project.steno(args);
        assert_eq!(refused.code, 1, "{refused}");
        let expected =
            format!("error: thread {id} is busy: process {} works in it since ", run.id());
        assert!(refused.stderr.starts_with(&expected), "{refused}");
        assert!(
            refused.stderr.ends_with("hint: use --wait to wait until it is free\n"),
            "{refused}"
        );
    }
    // A reading command shows the worker and does not disturb it.
    let status = project.steno(&["status", &id]).ok();
    assert!(status.contains(" · active\n"), "{status}");
    assert!(status.contains(&format!("worker      process {} since ", run.id())), "{status}");
    assert_eq!(project.transcripts(&id), before, "no second transcript");
    assert_eq!(project.heard().len(), 2);
    kill(&mut run);
}

#[test]
fn a_busy_thread_can_be_waited_for() {
    let project = Project::new();
    let first = end(&project.run(&["one"]).ok());
    let id = first["thread"].as_str().unwrap();
    let mut run = project.start(&["--thread", id, "take a nap"]);
    wait_for(project.home.path().join("napping"));
    let waited = end(&project.run(&["--wait", "--thread", id, "two"]).ok());
    assert_eq!(waited["status"], "completed");
    assert!(run.wait().unwrap().success());
    let transcripts = project.transcripts(id);
    assert_eq!(transcripts.len(), 3, "{transcripts:#?}");
    assert!(project.transcript(id, "take-a-nap.txt").ends_with("assistant:\nAwake.\n"));
    let heard = project.heard();
    assert!(heard[1].ends_with("take a nap") && heard[2].ends_with("two"), "{heard:#?}");
    project.steno(&["status"]).ok();
    assert_eq!(project.transcripts(id), transcripts);
}

#[test]
fn leslies_commands_report_it_too() {
    let project = Project::new();
    let (mut run, id) = sleeping(&project);
    project.steno(&["as", "leslie", "_worker", "--thread", &id]);
    let log = project.home.path().join(format!(".leslie/logs/workers/{id}.ndjson"));
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("worker_failed") && log.contains("is busy: process"), "{log}");
    kill(&mut run);
}

#[test]
fn whoever_waits_finishes_a_run_that_is_killed_meanwhile() {
    let project = Project::new();
    let (mut run, id) = sleeping(&project);
    let mut waiting = project.command(&["resume", &id, "--wait", "--json", "two"]);
    let waiting = waiting.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    kill(&mut run);
    let output = waiting.wait_with_output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    assert_eq!(end(&output)["status"], "completed");
    let transcripts = project.transcripts(&id);
    assert_eq!(transcripts.len(), 3, "{transcripts:#?}");
    assert!(project.transcript(&id, "then-sleep.txt").contains("Stop Reason: error\n"));
}
