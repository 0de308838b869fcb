//! Killed runs, and the next command.

use super::*;

const KILLS: u64 = 50;

/// Kills a run a while after its agent has received `prompts` prompts. Returns whether it was still running.
fn kill_in_prompt(project: &Project, run: &mut Child, prompts: usize, delay: Duration) -> bool {
    while project.heard().len() < prompts && run.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(delay);
    run.kill().unwrap();
    !run.wait().unwrap().success()
}

/// Returns the recorded prompts of the thread's session.
fn kept_prompts(project: &Project) -> Vec<String> {
    let thread = project.stored_thread();
    let Some(session) = thread["session_id"].as_str() else { return Vec::new() };
    let shown = project.steno(&["show", session, "--json"]);
    let entries = shown.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_prompt = |entry: &Value| entry["role"] == "user" && entry["kind"] == "text";
    let prompts = entries.filter(is_prompt);
    prompts.map(|entry| entry["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn of_fifty_runs_that_are_killed_every_unit_has_its_transcript_once() {
    let mut dice = Dice(0x5eed_0007);
    let (mut killed, mut torn) = (0, [0; 4]);
    for round in 0..KILLS {
        let project = Project::new();
        let mut run = project.start(&["one", "two", "three"]);
        let (prompts, delay) = (dice.below(4) as usize, Duration::from_micros(dice.below(90_000)));
        killed += u64::from(kill_in_prompt(&project, &mut run, prompts, delay));
        if !project.home.path().join(".leslie/thread_relations.json").exists() {
            continue;
        }
        let status = project.steno(&["status", "--json"]).ok();
        let Some(thread) = status.lines().next() else { continue };
        let thread: Value = serde_json::from_str(thread).unwrap();
        let id = thread["id"].as_str().unwrap();
        let prompts = kept_prompts(&project);
        assert!(prompts.len() >= project.heard().len(), "{round}: a prompt was not kept");
        let transcripts = project.transcripts(id);
        let slugs: Vec<_> = transcripts.keys().map(|name| &name[14..]).collect();
        assert_eq!(slugs.len(), prompts.len(), "{round}: {slugs:?}, {prompts:#?}");
        for (at, slug) in ["one.txt", "two.txt", "three.txt"][..prompts.len()].iter().enumerate() {
            let text = project.transcript(id, slug);
            let is_whole = text.contains("Stop Reason: end_turn\n")
                && text.ends_with("assistant:\nWell done.\n");
            let is_torn = text.contains("Stop Reason: error\n") && text.contains("[Error]\n");
            let is_last = at + 1 == prompts.len();
            assert!(is_whole || is_torn && is_last, "{round}: {text}");
            torn[at] += usize::from(is_torn);
        }
        torn[3] += usize::from(prompts.len() == 3);
        let has_worked = project.home.path().join(".leslie/threads").join(id);
        let has_worked = has_worked.join(".meta/worker.json").exists();
        let is_whole = prompts.len() == 3 && torn_last(&project, id).is_none();
        match thread["status"].as_str().unwrap() {
            "completed" => assert!(is_whole, "{round}: {transcripts:#?}"),
            "suspended" => assert!(!is_whole, "{round}: {transcripts:#?}"),
            "active" => assert!(!has_worked || prompts.is_empty(), "{round}"),
            other => panic!("{round}: {other}"),
        }
        for args in [&["status"][..], &["list"], &["sync"], &["as", "leslie", "list"]] {
            project.steno(args).ok();
            assert_eq!(project.transcripts(id), transcripts, "{round}: {args:?}");
        }
    }
    assert!(killed > KILLS / 2, "most runs ended before they were killed: {killed}");
    assert!(torn[3] > 0 && torn[..3].iter().sum::<usize>() > 3, "{killed} killed, torn: {torn:?}");
}

/// Returns the last transcript, if its turn is incomplete.
fn torn_last(project: &Project, thread: &str) -> Option<String> {
    let three = project.transcript(thread, "three.txt");
    Some(three).filter(|text| !text.contains("Stop Reason: end_turn\n"))
}

#[test]
fn units_before_the_kill_have_transcripts_at_once() {
    let project = Project::new();
    let mut run = project.start(&["one", "two", "then sleep"]);
    wait_for(project.home.path().join("asleep"));
    let id = project.thread_id();
    assert_eq!(project.stored_thread()["status"], "active");
    assert_eq!(project.transcripts(&id).len(), 2, "each is written when its turn ends");
    kill(&mut run);
    assert_eq!(project.transcripts(&id).len(), 2);
    let status = project.steno(&["status", &id]).ok();
    assert!(status.contains(" · suspended\n"), "{status}");
    let torn = project.transcript(&id, "then-sleep.txt");
    assert!(torn.contains("Stop Reason: error\n"), "{torn}");
    let error = "\n\n[Error]\nthe recorder stopped without ending the session\n";
    assert!(torn.ends_with(error), "{torn}");
}

#[test]
fn every_command_that_reads_the_threads_finishes_what_a_kill_left() {
    let commands: [&[&str]; 7] = [
        &["status"],
        &["list"],
        &["list", "--threads"],
        &["sync"],
        &["as", "leslie", "list"],
        &["as", "leslie", "status", "--thread", "ID"],
        &["resume", "ID"],
    ];
    for args in commands {
        let project = Project::new();
        // A completed thread is active again during a run.
        let first = end(&project.run(&["one"]).ok());
        let id = first["thread"].as_str().unwrap();
        assert_eq!(first["status"], "completed");
        let mut run = project.start(&["--thread", id, "then sleep"]);
        wait_for(project.home.path().join("asleep"));
        assert_eq!(project.stored_thread()["status"], "active", "{args:?}");
        kill(&mut run);
        let given: Vec<_> = args.iter().map(|arg| arg.replace("ID", id)).collect();
        let given: Vec<_> = given.iter().map(String::as_str).collect();
        project.steno(&given).ok();
        let torn = project.transcript(id, "then-sleep.txt");
        assert!(torn.contains("\n[Error]\n"), "{args:?}: {torn}");
        let is_resumed = args[0] == "resume";
        let expected = if is_resumed { "completed" } else { "suspended" };
        assert_eq!(project.stored_thread()["status"], expected, "{args:?}");
        let count = if is_resumed { 3 } else { 2 };
        assert_eq!(project.transcripts(id).len(), count, "{args:?}");
    }
}

#[test]
fn a_kill_after_the_last_turn_leaves_a_completed_thread() {
    let project = Project::new();
    let first = end(&project.run(&["one"]).ok());
    let id = first["thread"].as_str().unwrap();
    // The state after a kill between the last turn and the end of the run.
    let path = project.home.path().join(".leslie/thread_relations.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"status\": \"completed\"", "\"status\": \"active\"")).unwrap();
    let worker = r#"{"pid":4000000,"since":null,"prompts_planned":1,"turns_ended":1}"#;
    project.home.file(&format!(".leslie/threads/{id}/.meta/worker.json"), worker);
    let before = project.transcripts(id);
    project.steno(&["status"]).ok();
    assert_eq!(project.stored_thread()["status"], "completed");
    assert_eq!(project.transcripts(id), before);
    let left = project.home.path().join(".leslie/threads").join(id).join(".meta/worker.json");
    assert_eq!(fs::read_to_string(left).unwrap(), "");
}

#[test]
fn of_several_commands_at_once_one_finishes_a_killed_run() {
    let project = Project::new();
    let mut run = project.start(&["one", "then sleep"]);
    wait_for(project.home.path().join("asleep"));
    kill(&mut run);
    let id = project.thread_id();
    let commands: Vec<_> = (0..6).map(|_| project.command(&["status"])).collect();
    let children: Vec<_> = commands
        .into_iter()
        .map(|mut command| command.stdout(Stdio::null()).spawn().unwrap())
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(project.transcripts(&id).len(), 2);
    let path = project.home.path().join(".leslie/thread_relations.json");
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(text.matches("\"the run was killed\"").count(), 1, "{text}");
}

#[test]
fn a_killed_run_is_settled_where_its_transcripts_cannot_be_written() {
    let project = Project::new();
    let mut run = project.start(&["then sleep"]);
    wait_for(project.home.path().join("asleep"));
    kill(&mut run);
    let id = project.thread_id();
    let folder = project.home.path().join(".leslie/threads").join(&id).join(".meta/transcripts");
    let aside = folder.with_file_name("aside");
    fs::rename(&folder, &aside).unwrap();
    fs::write(&folder, "in the way").unwrap();
    let status = project.steno(&["status"]);
    assert_eq!(status.code, 0, "{status}");
    let warning = format!("warning: could not finish the killed run of {id}: ");
    assert!(status.stderr.starts_with(&warning), "{status}");
    assert_eq!(project.stored_thread()["status"], "suspended");
    fs::remove_file(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    assert_eq!(project.steno(&["status"]).stderr, "");
    assert!(project.transcript(&id, "then-sleep.txt").contains("[Error]"));
}

#[test]
fn sessions_with_the_same_name_are_distinguished_by_thread() {
    let project = Project::new();
    let named = |name: &str, prompt: &str| {
        let mut run = project.command(&["run", "--agent", "sh agent.sh", "--json", prompt]);
        run.env("NAME", name).env("SESSION", "same").stdin(Stdio::null());
        run
    };
    project.home.finish(named("aaa", "one"), b"").ok();
    let mut run = named("toy", "then sleep");
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(project.home.path().join("asleep"));
    kill(&mut run);
    let status = project.steno(&["status", "--json"]).ok();
    let killed: Value = serde_json::from_str(status.lines().last().unwrap()).unwrap();
    let torn = project.transcript(killed["id"].as_str().unwrap(), "then-sleep.txt");
    assert!(torn.contains("Chat ID: same\n"), "{torn}");
}

#[test]
fn an_agent_that_writes_its_session_down_itself_has_each_unit_once() {
    let project = Project::new();
    let with_own_files = |args: &[&str]| {
        let mut command = project.command(args);
        command.env("NAME", "claude-agent-acp").env("OWN", "1").env("LOADS", "true");
        command
    };
    let mut run = with_own_files(&["run", "--agent", "sh agent.sh", "one", "two", "then sleep"]);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(project.home.path().join("asleep"));
    kill(&mut run);
    project.steno(&["status"]).ok();
    let id = project.thread_id();
    assert_eq!(project.transcripts(&id).len(), 3, "{:#?}", project.transcripts(&id));
    project.home.finish(with_own_files(&["resume", &id, "three"]), b"").ok();
    let own = project.transcripts(&id);
    let slugs: Vec<_> = own.keys().map(|name| &name[14..]).collect();
    assert_eq!(slugs.len(), 4, "{slugs:?}");
    for (slug, reason) in
        [("one", "end_turn"), ("two", "end_turn"), ("then-sleep", "error"), ("three", "end_turn")]
    {
        let text = project.transcript(&id, &format!("{slug}.txt"));
        assert!(text.contains(&format!("Stop Reason: {reason}\n")), "{text}");
        assert_eq!(text.matches("Well done.").count(), usize::from(reason == "end_turn"), "{text}");
        assert_eq!(text.matches("<user_query>").count(), 1, "{text}");
    }
    let [kept] = project.home.vault().list_sessions().unwrap().try_into().unwrap();
    assert!(kept.is_imported().unwrap() && kept.is_recorded().unwrap(), "both accounts are joined");
    project.steno(&["transcript", &id, kept.id().as_str()]).ok();
    assert_eq!(project.transcripts(&id), own);
}
