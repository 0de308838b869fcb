//! Content of the transcript of a unit.

use super::*;

#[test]
fn each_unit_has_its_stop_reason() {
    let project = Project::new();
    let run = project.run(&["one", "be silent", "then crash"]);
    assert_eq!(run.code, 1);
    let id = project.thread_id();
    let refused = project.run(&["--thread", &id, "please refuse"]);
    assert_eq!(refused.code, 1);
    let failed = project.run(&["--thread", &id, "now fail"]);
    assert_eq!(failed.code, 1);
    for (name, reason, end) in [
        ("one.txt", "end_turn", "assistant:\nWell done.\n"),
        ("be-silent.txt", "end_turn", "</user_query>\n"),
        (
            "then-crash.txt",
            "error",
            "assistant:\nGoing down.\n\n[Error]\nthe agent ended before it answered session/prompt\n",
        ),
        ("please-refuse.txt", "refusal", "assistant:\nNo.\n"),
        ("now-fail.txt", "error", "[Error]\nout of quota\n"),
    ] {
        let text = project.transcript(&id, name);
        assert!(text.contains(&format!("\nStop Reason: {reason}\n")), "{text}");
        assert!(text.ends_with(end), "{text}");
    }
}

#[test]
fn a_tool_has_its_name_and_only_without_one_its_kind() {
    let project = Project::new();
    project.run(&["use a tool"]).ok();
    let text = project.transcript(&project.thread_id(), "use-a-tool.txt");
    let call = "[Tool call] list_files\n{\"path\":\".\"}\n\n[Tool result] list_files\na.txt\n";
    assert!(text.contains(call) && text.contains("[Tool call] search\n"), "{text}");
}

#[test]
fn names_and_times_are_those_of_the_local_clock() {
    let project = Project::new();
    let mut run = project.command(&["run", "--agent", "sh agent.sh", "--json", "one"]);
    run.env("TZ", "Asia/Kolkata").env("STENO_NOW", "2026-02-08T20:30:00.25Z");
    project.home.finish(run, b"").ok();
    let transcripts = project.transcripts(&project.thread_id());
    let text = &transcripts["20260209-0200-one.txt"];
    let range = "Time Range: 2026-02-09T02:00:00+05:30 ~ 2026-02-09T02:00:00+05:30\n";
    assert!(text.contains(range), "{text}");
}

#[test]
fn an_export_gives_the_runs_own_transcripts() {
    let project = Project::new();
    let planned = project.run(&["--mode", "plan", "one", "use a tool"]);
    let planned = end(&planned.ok());
    let id = planned["thread"].as_str().unwrap();
    let session = planned["session"].as_str().unwrap();
    let mut resumed = project.command(&["resume", id, "--json", "then crash"]);
    resumed.env("LOADS", "true");
    assert_eq!(project.home.finish(resumed, b"").code, 1);
    let mut resumed = project.command(&["resume", id, "--json"]);
    resumed.env("LOADS", "true");
    project.home.finish(resumed, b"").ok();
    let own = project.transcripts(id);
    assert_eq!(own.len(), 4, "{own:#?}");
    assert!(project.transcript(id, "use-a-tool.txt").contains("\nAgent Mode: plan\n"));
    assert!(project.transcript(id, "then-crash.txt").contains("\nAgent Mode: agent\n"));
    project.steno(&["export", session, "--format", "leslie", "-o", "out"]).ok();
    let exported = fs::read_dir(project.home.path().join("out")).unwrap();
    let exported: BTreeMap<_, _> = exported
        .map(|item| item.unwrap())
        .map(|item| {
            let text = fs::read_to_string(item.path()).unwrap();
            (item.file_name().into_string().unwrap(), text)
        })
        .collect();
    assert_eq!(exported, own);
    project.steno(&["transcript", id, session]).ok();
    assert_eq!(project.transcripts(id), own);
}

#[test]
fn a_thread_ends_where_no_transcript_can_be_written() {
    let project = Project::new();
    let first = end(&project.run(&["one"]).ok());
    let id = first["thread"].as_str().unwrap();
    let folder = project.home.path().join(".leslie/threads").join(id).join(".meta/transcripts");
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "in the way").unwrap();
    let run = project.run(&["--thread", id, "two", "three"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(run.stderr.matches("warning: could not write transcripts: ").count(), 1, "{run}");
    assert_eq!(end(&run.stdout)["status"], "completed");
    assert_eq!(fs::read_to_string(&folder).unwrap(), "in the way");
    assert_eq!(project.stored_thread()["status"], "completed");
}
