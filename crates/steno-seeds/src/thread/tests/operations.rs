//! Each command, compared with what leslie does or should do.

use super::*;

pub(super) fn code<T: std::fmt::Debug>(result: Result<T, ThreadError>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn objectives_follow_their_threads() {
    let project = Project::new();
    let objective = project.objective();
    let status = || project.store.objective(objective.id.as_str()).unwrap().status;
    assert_eq!(status(), ObjectiveStatus::Active);
    let (a, b) = (project.spawn(&objective, "a"), project.spawn(&objective, "b"));
    for (thread, action, expected) in [
        (&a, LifecycleAction::Suspend, ObjectiveStatus::Active),
        (&a, LifecycleAction::Done, ObjectiveStatus::Active),
        (&b, LifecycleAction::Cancel, ObjectiveStatus::Completed),
        (&a, LifecycleAction::Archive, ObjectiveStatus::Completed),
    ] {
        project.store.change_status(&lifecycle(thread, action)).unwrap();
        assert_eq!(status(), expected, "{action}");
    }
    project.spawn(&objective, "c");
    assert_eq!(status(), ObjectiveStatus::Active);
    let error = project.store.change_status(&lifecycle(&a, LifecycleAction::Resume)).unwrap_err();
    assert_eq!(error.code(), "T102");
    assert_eq!(error.to_string(), "Invalid state transition from archived using action resume");
    assert_eq!(error.details().unwrap().to_string(), r#"{"from":"archived","action":"resume"}"#);
}

#[test]
fn an_objective_has_a_log() {
    let project = Project::new();
    let objective = project.store.create_objective("Say \"a=b\"\nnow").unwrap();
    let log = fs::read_to_string(project.store.log_folder(&objective.id).join("objective.log"));
    let (id, title) = (&objective.id, r#""Say \"a=b\"\nnow""#);
    let expected = format!(
        "level=info msg=\"Objective created\" objectiveId={id} threadId=objective time={NOW} title={title}\n"
    );
    assert_eq!(log.unwrap(), expected);
    assert_eq!(code(project.store.create_objective("")), "T902");
}

#[test]
fn missing_threads_are_errors_and_change_nothing() {
    let project = Project::new();
    let objective = project.objective();
    let thread = project.spawn(&objective, "t");
    let before = (project.text(".leslie/thread_relations.json"), tree(project.dir.path()));
    let ghost = Thread { id: "ghost".parse().unwrap(), ..thread.clone() };
    let store = &project.store;
    assert_eq!(code(store.spawn_thread(&SpawnRequest::new("x", "obj-none"))), "T601");
    let orphan = SpawnRequest {
        parent: Some("ghost".to_owned()),
        ..SpawnRequest::new("x", objective.id.as_str())
    };
    assert_eq!(code(store.spawn_thread(&orphan)), "T101");
    assert_eq!(code(store.add_reference(&reference(&ghost, thread.id.as_str()))), "T101");
    assert_eq!(code(store.change_status(&lifecycle(&ghost, LifecycleAction::Done))), "T101");
    assert_eq!(code(store.merge_threads(&merge(&[&ghost], &thread))), "T101");
    assert_eq!(code(store.merge_threads(&merge(&[&thread], &ghost))), "T101");
    assert_eq!(code(store.set_session("ghost", "s")), "T101");
    assert_eq!(code(store.assets_and_warnings("ghost")), "T101");
    assert_eq!(code(store.render_thread_context("ghost")), "T101");
    let error = store.thread("ghost").unwrap_err();
    assert_eq!(error.to_string(), "Thread 'ghost' not found");
    let after = (project.text(".leslie/thread_relations.json"), tree(project.dir.path()));
    assert_eq!(after, before);
}

#[test]
fn references_cannot_go_in_circles() {
    let project = Project::new();
    let objective = project.objective();
    let threads = ["a", "b", "c"].map(|name| project.spawn(&objective, name));
    let [a, b, c] = &threads;
    let refer =
        |from: &Thread, to: &Thread| project.store.add_reference(&reference(from, to.id.as_str()));
    refer(a, b).unwrap();
    refer(b, c).unwrap();
    assert_eq!(code(refer(c, a)), "T201");
    assert_eq!(code(refer(a, a)), "T201");
    refer(a, c).unwrap();
    refer(a, b).unwrap();
    let links = &project.store.load_relations().unwrap().links[&a.id];
    assert_eq!(links.references_to, [b.id.clone(), c.id.clone()]);
}

#[test]
fn a_frozen_copy_has_only_own_files_and_does_not_grow() {
    let project = Project::new();
    let objective = project.objective();
    let (a, b) = (project.spawn(&objective, "a"), project.spawn(&objective, "b"));
    project.asset(&a, "plan.md", "v1");
    project.asset(&a, ".meta/transcripts/t.txt", "said");
    project.asset(&a, "context/inherited/x/plan.md", "other");
    let made = project.store.add_reference(&reference(&b, a.id.as_str())).unwrap();
    let copy = format!("{}/context/inherited/{}", b.storage_path, a.id);
    assert_eq!(made.copied, std::slice::from_ref(&copy));
    assert_eq!(made.snapshot.unwrap().to_string(), NOW);
    assert_eq!(tree(&project.path(&copy)), ["plan.md"]);
    project.asset(&a, "plan.md", "v2");
    assert_eq!(project.text(&format!("{copy}/plan.md")), "v1");
    let live = ReferenceRequest { binding: ReferenceBinding::Live, ..reference(&b, a.id.as_str()) };
    let made = project.store.add_reference(&live).unwrap();
    assert_eq!((made.copied.len(), made.snapshot), (0, None));
    assert_eq!(project.text(&format!("{copy}/plan.md")), "v1");
}

#[test]
fn merging_takes_the_last_and_reports_conflicts() {
    let project = Project::new();
    let objective = project.objective();
    let threads = ["a", "b", "target"].map(|name| project.spawn(&objective, name));
    let [a, b, target] = &threads;
    project.asset(a, "plan.md", "a");
    project.asset(b, "plan.md", "b");
    project.asset(a, "design/same.md", "same");
    project.asset(b, "design/same.md", "same");
    project.asset(a, ".meta/transcripts/t.txt", "said");
    let strict = MergeRequest { strategy: ConflictStrategy::Strict, ..merge(&[a, b], target) };
    let error = project.store.merge_threads(&strict).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string()),
        ("T301", "Merge conflict detected: plan.md".to_owned())
    );
    assert!(!project.path(&target.storage_path).join("design").exists());
    let merged = project.store.merge_threads(&merge(&[a, b], target)).unwrap();
    assert_eq!(merged.conflicts, ["plan.md"]);
    assert_eq!(project.text(&format!("{}/plan.md", target.storage_path)), "b");
    let at = |path: &str| format!("{}/{path}", target.storage_path);
    let files = ["design/same.md", "plan.md", "design/same.md", "plan.md"].map(at);
    assert_eq!(merged.files, files);
    let scoped = MergeRequest { scope: vec!["design".to_owned()], ..merge(&[a], target) };
    assert_eq!(project.store.merge_threads(&scoped).unwrap().files, [at("design/same.md")]);
    assert!(!project.path(&at(".meta/replaced")).exists(), "the target had nothing of its own");
}

#[test]
fn a_message_to_a_thread_takes_one_line() {
    let project = Project::new();
    let thread = project.spawn(&project.objective(), "t");
    let content = "Must\nsupport \"TypeScript\"";
    let inject = ThreadInjection {
        thread: thread.id.to_string(),
        kind: "constraint".to_owned(),
        content: content.to_owned(),
        operator: Operator::User,
    };
    assert_eq!(project.store.inject_text(&inject).unwrap().to_string(), NOW);
    project.store.inject_text(&inject).unwrap();
    let line = format!("{NOW} type=constraint content=Must\\nsupport \"TypeScript\"\n");
    let log = format!("{}/.meta/injections.log", thread.storage_path);
    assert_eq!(project.text(&log), line.repeat(2));
    let operations = project.store.load_relations().unwrap().operations;
    assert_eq!(operations.last().unwrap().params["content"], content);
}

#[test]
fn a_transfer_changes_status_and_executor() {
    let project = Project::new();
    let thread = project.spawn(&project.objective(), "t");
    let transfer = |direction, executor| {
        let transfer = ThreadTransfer {
            thread: thread.id.to_string(),
            direction,
            scope: vec!["x".to_owned()],
            reason: None,
            executor,
            operator: Operator::User,
        };
        let thread = project.store.transfer_thread(&transfer).unwrap();
        (thread.status, thread.executor)
    };
    let asked = transfer(TransferDirection::RequestApproval, Some(Executor::Human));
    assert_eq!(asked, (ThreadStatus::WaitingHuman, Executor::Agent));
    let handed = transfer(TransferDirection::Handoff, Some(Executor::Human));
    assert_eq!(handed, (ThreadStatus::Active, Executor::Human));
    assert_eq!(
        transfer(TransferDirection::Delegate, None),
        (ThreadStatus::Active, Executor::Human)
    );
}

#[test]
fn the_context_lists_paths_of_the_thread_and_its_references() {
    let project = Project::new();
    let objective = project.objective();
    let (a, b) = (project.spawn(&objective, "a"), project.spawn(&objective, "b"));
    project.asset(&a, "plan.md", "");
    project.asset(&a, "design/x.md", "");
    project.asset(&b, "requirements/r.md", "");
    project.store.add_reference(&reference(&b, a.id.as_str())).unwrap();
    let (xml, warnings) = project.store.render_thread_context(b.id.as_str()).unwrap();
    assert_eq!(warnings, []);
    let (a, b, objective) = (&a.id, &b.id, &objective.id);
    let expected = format!(
        "<thread_context thread=\"{b}\" objective=\"{objective}\" relations_file=\".leslie/thread_relations.json\">
  <asset type=\"transcript\" path=\".leslie/threads/{b}/.meta/transcripts\" />
  <ref thread=\"{a}\">
    <asset type=\"plan\" path=\".leslie/threads/{a}/plan.md\" />
    <asset type=\"design\" path=\".leslie/threads/{a}/design\" />
    <asset type=\"transcript\" path=\".leslie/threads/{a}/.meta/transcripts\" />
  </ref>
</thread_context>"
    );
    assert_eq!(xml, expected);
}

#[test]
fn the_context_escapes_names_and_reports_missing_threads() {
    let project = Project::new();
    let thread = project.spawn(&project.objective(), "t");
    let path = project.path(".leslie/thread_relations.json");
    let text = fs::read_to_string(&path).unwrap().replace(thread.id.as_str(), "a&<b>'\\\"");
    fs::write(&path, text.replace("\"references_to\": []", "\"references_to\": [\"gone\"]"))
        .unwrap();
    let (xml, warnings) = project.store.render_thread_context("a&<b>'\"").unwrap();
    assert!(xml.starts_with("<thread_context thread=\"a&amp;&lt;b&gt;&apos;&quot;\" "), "{xml}");
    assert!(xml.ends_with(".json\">\n\n</thread_context>"), "{xml}");
    assert_eq!(warnings, [ThreadWarning::ReferencedNotFound("gone".to_owned())]);
    let (assets, warnings) = project.store.assets_and_warnings("a&<b>'\"").unwrap();
    assert_eq!(
        (assets, warnings),
        (vec![], vec![ThreadWarning::TargetNotFound("gone".to_owned())])
    );
}

#[test]
fn the_session_is_remembered() {
    let project = Project::new();
    let thread = project.spawn(&project.objective(), "t");
    project.store.set_session(thread.id.as_str(), "s-1").unwrap();
    let found = project.store.thread(thread.id.as_str()).unwrap();
    assert_eq!(found.session_id.as_deref(), Some("s-1"));
    let text = project.text(".leslie/thread_relations.json");
    assert!(text.contains(&format!("\"updated_at\": \"{NOW}\",\n      \"session_id\": \"s-1\"\n")));
}

#[test]
fn a_taken_id_is_not_given_again() {
    let dir = tempfile::tempdir().unwrap();
    let calls = AtomicU32::new(0);
    let ids = IdSource::new(move || calls.fetch_add(1, Ordering::Relaxed) / 3);
    let store = ThreadStore::new(dir.path(), Clock::fixed(NOW.parse().unwrap()), ids);
    let objective = store.create_objective("o").unwrap();
    for _ in 0..4 {
        store.spawn_thread(&SpawnRequest::new("t", objective.id.as_str())).unwrap();
    }
    let relations = store.load_relations().unwrap();
    assert_eq!(relations.threads.len(), 4);
    let mut ids: Vec<_> = relations.operations.iter().map(|operation| &operation.id).collect();
    ids.dedup();
    assert_eq!(ids.len(), 4);
    let stuck = ThreadStore::new(dir.path(), Clock::system(), IdSource::new(|| 0));
    assert_eq!(code(stuck.create_objective("o")), "T901");
}
