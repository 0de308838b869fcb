//! Sequences of commands: their responses, and the stores afterwards.

use super::*;

#[test]
fn a_thread_from_its_objective_to_its_end() {
    let project = Project::new();
    let init = project.data(&["init", "--yes"]);
    let expected =
        json!({ "status": "created", "previous_version": null, "next_version": "2.0.0" });
    assert_eq!(init, expected);
    assert!(project.text("AGENTS.md").starts_with("<leslie_system_guide version=\"2.0.0\" "));

    let made = project.data(&["objective", "create", "--title", "Build API"]);
    assert_eq!(fields(&made), ["objectiveId", "title", "logDir"]);
    let objective = string(&made, "objectiveId");
    assert!(objective.starts_with("obj-") && objective.len() == 12, "{objective}");
    assert_eq!(made["logDir"], format!("$HOME/.leslie/logs/{objective}"));
    let log = project.text(&format!(".leslie/logs/{objective}/objective.log"));
    assert!(log.starts_with("level=info msg=\"Objective created\" objectiveId=obj-"), "{log}");
    assert!(log.ends_with(" title=\"Build API\"\n"), "{log}");

    let args = ["spawn", "--intent", "Design API", "--objective", &objective, "--no-run"];
    let spawned = project.call(&args).envelope;
    assert_eq!(fields(&spawned), ["success", "data", "warnings"]);
    assert_eq!(spawned["warnings"], json!([]));
    assert_eq!(fields(&spawned["data"]), ["thread_id", "parent_id", "status", "objective"]);
    let thread = string(&spawned["data"], "thread_id");

    let status = project.call(&["status", "--thread", &thread]).envelope;
    assert_eq!(fields(&status), ["success", "data", "warnings"]);
    let expected = [
        "id",
        "title",
        "objective",
        "created_at",
        "status",
        "tags",
        "parent_id",
        "storage_path",
        "executor",
        "updated_at",
        "thread_context",
    ];
    assert_eq!(fields(&status["data"]), expected);
    let context = format!(
        "<thread_context thread=\"{thread}\" objective=\"{objective}\" \
         relations_file=\".leslie/thread_relations.json\">\n  \
         <asset type=\"transcript\" path=\".leslie/threads/{thread}/.meta/transcripts\" />\n\
         </thread_context>"
    );
    assert_eq!(status["data"]["thread_context"], context);

    let done = project.call(&["lifecycle", "--thread", &thread, "--action", "done"]).envelope;
    let expected =
        json!({ "success": true, "data": { "threadId": thread, "status": "completed" } });
    assert_eq!(done, expected);

    let objective_now = project.data(&["objective", "status", "--id", &objective]);
    let expected = ["id", "title", "created_at", "updated_at", "status", "thread_ids"];
    assert_eq!(fields(&objective_now), expected);
    assert_eq!(objective_now["status"], "completed");
    assert_eq!(objective_now["thread_ids"], json!([thread]));
    project.spawn(&objective, "one more", &[]);
    assert_eq!(project.data(&["objective", "list"])[0]["status"], "active");
}

#[test]
fn children_and_references_are_stored_on_both_sides() {
    let project = Project::new();
    let objective = project.objective("Graph");
    let root = project.spawn(&objective, "Root", &[]);
    let mut children = Vec::new();
    for name in ["A", "B", "C", "D"] {
        let child = project.spawn(&objective, name, &["--parent", &root, "--tags", "x, y,"]);
        project.data(&["reference", "--from", &child, "--target", &root]);
        children.push(child);
    }
    let listed = project.data(&["list"]);
    let expected = ["id", "title", "objective", "status", "parent_id", "executor", "created_at"];
    assert_eq!(fields(&listed[0]), expected);
    let titles: Vec<_> = listed.as_array().unwrap().iter().map(|thread| &thread["title"]).collect();
    assert_eq!(titles, ["Root", "A", "B", "C", "D"]);
    let relations = project.store("thread_relations");
    assert_eq!(relations["metadata"]["thread_count"], 5);
    assert_eq!(relations["relations"][&root]["children"], json!(children));
    assert_eq!(relations["relations"][&root]["referenced_by"], json!(children));
    for child in &children {
        assert_eq!(relations["threads"][child]["parent_id"], *root);
        assert_eq!(relations["threads"][child]["tags"], json!(["x", "y"]));
        assert_eq!(relations["relations"][child]["references_to"], json!([root]));
        assert_eq!(relations["relations"][child]["depends_on"], json!([root]));
    }
    let (code, message) = project.error(&["reference", "--from", &root, "--target", &children[0]]);
    let child = &children[0];
    let expected = format!("Circular reference detected ({root} -> {child} -> {root})");
    assert_eq!((code.as_str(), message), ("T201", expected));
}

#[test]
fn every_state_has_its_actions() {
    let project = Project::new();
    let objective = project.objective("States");
    let actions = ["suspend", "resume", "done", "cancel", "archive"];
    let ways: [(&[&str], &str, &[&str]); 6] = [
        (&[], "active", &["suspend suspended", "done completed", "cancel cancelled"]),
        (&["suspend"], "suspended", &["resume active", "done completed", "cancel cancelled"]),
        (&["done"], "completed", &["archive archived"]),
        (&["cancel"], "cancelled", &["archive archived"]),
        (&["done", "archive"], "archived", &[]),
        (&["wait"], "waiting_human", &["resume active", "cancel cancelled"]),
    ];
    for (way, from, allowed) in ways {
        for action in actions {
            let thread = project.spawn(&objective, "t", &[]);
            for step in way {
                match *step {
                    "wait" => project.data(&[
                        "transfer",
                        "--thread",
                        &thread,
                        "--direction",
                        "request_approval",
                        "--scope",
                        "x",
                    ]),
                    step => project.data(&["lifecycle", "--thread", &thread, "--action", step]),
                };
            }
            let args = ["lifecycle", "--thread", &thread, "--action", action, "--reason", "why"];
            match allowed.iter().find_map(|way| way.strip_prefix(&format!("{action} "))) {
                Some(to) => assert_eq!(project.data(&args)["status"], to, "{from} {action}"),
                None => {
                    let message =
                        format!("Invalid state transition from {from} using action {action}");
                    assert_eq!(project.error(&args), ("T102".to_owned(), message));
                }
            }
        }
    }
}

#[test]
fn inheritance_takes_what_was_asked_for() {
    let project = Project::new();
    let objective = project.objective("Inherit");
    let parent = project.spawn(&objective, "parent", &[]);
    for path in ["plan.md", "design/api.md", "requirements/r.md", ".meta/transcripts/t.txt"] {
        project.asset(&parent, path, path);
    }
    let has = |thread: &str, path: &str| {
        project.path(&format!(".leslie/threads/{thread}/{path}")).exists()
    };
    let full = project.spawn(&objective, "full", &["--parent", &parent, "--inherit", "full"]);
    assert!(
        has(&full, "plan.md")
            && has(&full, "design/api.md")
            && has(&full, ".meta/transcripts/t.txt")
    );
    assert!(!has(&full, "requirements"));
    let scope = "requirements, plan.md,missing";
    let partial = ["--parent", &parent, "--inherit", "partial", "--scope", scope];
    let partial = project.spawn(&objective, "partial", &partial);
    assert!(has(&partial, "requirements/r.md") && has(&partial, "plan.md"));
    assert!(!has(&partial, "design"));
    let none = project.spawn(&objective, "none", &["--parent", &parent, "--inherit=none"]);
    assert!(!has(&none, "plan.md"));
    let params = &project.store("thread_relations")["operations"][2]["params"];
    assert_eq!(params["inherit"], "partial");
    assert_eq!(params["inherit_scope"], json!(["requirements", "plan.md", "missing"]));
}

#[test]
fn references_are_frozen_or_live_and_missing_ones_are_reported() {
    let project = Project::new();
    let objective = project.objective("Refs");
    let (a, b) = (project.spawn(&objective, "a", &[]), project.spawn(&objective, "b", &[]));
    project.asset(&a, "plan.md", "v1");
    project.asset(&a, "design/api.md", "v1");
    let copy = format!(".leslie/threads/{b}/context/inherited/{a}");
    let made = project.data(&["reference", "--from", &b, "--target", &a]);
    assert_eq!(fields(&made), ["ref_id", "snapshot_version", "copied_paths", "binding"]);
    assert_eq!((&made["copied_paths"], &made["binding"]), (&json!([copy]), &json!("frozen")));
    assert!(string(&made, "ref_id").starts_with("ref-"));
    let scope = ["reference", "--from", &b, "--target", &a, "--scope", "./plan.md,missing,design"];
    let copied = &project.data(&scope)["copied_paths"];
    assert_eq!(*copied, json!([format!("{copy}/plan.md"), format!("{copy}/design")]));
    project.asset(&a, "plan.md", "v2");
    assert_eq!(project.text(&format!("{copy}/plan.md")), "v1");
    let live = project.data(&["reference", "--from", &b, "--target", &a, "--binding", "live"]);
    assert_eq!(fields(&live), ["ref_id", "copied_paths", "binding"]);
    assert_eq!((&live["copied_paths"], &live["binding"]), (&json!([]), &json!("live")));

    let missing = project.call(&["reference", "--from", &b, "--target", "thread-none"]);
    let warning = json!([{
        "code": "W202",
        "message": "Reference target 'thread-none' not found",
        "context": { "target": "thread-none" },
    }]);
    assert_eq!((missing.code, &missing.envelope["warnings"]), (0, &warning));
    let relations = project.store("thread_relations");
    assert_eq!(relations["relations"][&b]["references_to"], json!([a]));
    assert_eq!(relations["operations"][5]["params"]["to_id"], "thread-none");

    let refs = format!("{a},thread-none");
    let args = ["spawn", "--intent", "c", "--objective", &objective, "--ref", &refs, "--no-run"];
    let spawned = project.call(&args).envelope;
    assert_eq!(spawned["warnings"], warning);
    let c = string(&spawned["data"], "thread_id");
    let context = string(&project.data(&["status", "--thread", &c]), "thread_context");
    assert!(
        context.contains(&format!("  <ref thread=\"{a}\">\n    <asset type=\"plan\"")),
        "{context}"
    );
}

#[test]
fn messages_and_transfers_of_a_thread() {
    let project = Project::new();
    let thread = project.spawn(&project.objective("Tell"), "t", &[]);
    let printed =
        ["inject", "--thread", &thread, "--type", "constraint", "--content", "Use\nTypeScript"];
    let injected = project.data(&printed);
    assert_eq!(fields(&injected), ["threadId", "injectedAt"]);
    let log = project.text(&format!(".leslie/threads/{thread}/.meta/injections.log"));
    let at = string(&injected, "injectedAt");
    assert_eq!(log, format!("{at} type=constraint content=Use\\nTypeScript\n"));

    let transfer = |direction: &str, more: &[&str]| {
        let args =
            ["transfer", "--thread", &thread, "--direction", direction, "--scope", "code,docs"];
        project.data(&[&args, more].concat())
    };
    let asked = transfer("request_approval", &["--reason", "REST?"]);
    let expected = json!({ "threadId": thread, "status": "waiting_human", "executor": "agent" });
    assert_eq!(asked, expected);
    let handed = transfer("handoff", &["--target", "human"]);
    let expected = json!({ "threadId": thread, "status": "active", "executor": "human" });
    assert_eq!(handed, expected);
    assert_eq!(transfer("delegate", &[])["executor"], "human");
    let operations = &project.store("thread_relations")["operations"];
    let expected = json!({
        "thread_id": thread, "direction": "request_approval", "scope": ["code", "docs"],
        "reason": "REST?", "target_executor": null,
    });
    assert_eq!(operations[2]["params"], expected);
    assert_eq!(
        (&operations[2]["command"], &operations[2]["operator"]),
        (&json!("transfer"), &json!("user"))
    );
}

#[test]
fn merging_brings_files_together() {
    let project = Project::new();
    let objective = project.objective("Merge");
    let threads = ["a", "b", "target"].map(|name| project.spawn(&objective, name, &[]));
    let [a, b, target] = &threads;
    project.asset(a, "plan.md", "a");
    project.asset(b, "plan.md", "b");
    project.asset(a, "design/api.md", "api");
    project.asset(target, "plan.md", "mine");
    let sources = format!("{a},{b}");
    let strict =
        ["merge", "--sources", &sources, "--target", target, "--conflict_strategy", "strict"];
    let conflict = project.call(&strict).envelope;
    let expected = json!({
        "code": "T301", "message": "Merge conflict detected: plan.md", "details": { "file": "plan.md" },
    });
    assert_eq!(conflict["error"], expected);
    let at = |path: &str| format!(".leslie/threads/{target}/{path}");
    assert_eq!(project.text(&at("plan.md")), "mine");

    let merged = project.call(&["merge", "--sources", &sources, "--target", target]).envelope;
    assert_eq!(fields(&merged), ["success", "data"]);
    let files = [at("design/api.md"), at("plan.md"), at("plan.md")];
    assert_eq!(merged["data"], json!({ "mergedFiles": files, "conflicts": ["plan.md"] }));
    assert_eq!(project.text(&at("plan.md")), "b");
    assert_eq!(project.text(&at(".meta/replaced/plan.md")), "mine");
    let scoped = ["merge", "--sources", a, "--target", target, "--scope", "design"];
    assert_eq!(project.data(&scoped)["mergedFiles"], json!([at("design/api.md")]));
}

#[test]
fn artifacts_are_listed_in_their_order() {
    let project = Project::new();
    let thread = project.spawn(&project.objective("Assets"), "t", &[]);
    for path in
        ["discuss/x.md", "learnings/x.md", "design/x.md", "progress.md", "plan.md", "other.md"]
    {
        project.asset(&thread, path, "");
    }
    let answer = project.call(&["artifacts", "--thread", &thread]).envelope;
    assert_eq!(fields(&answer), ["success", "data", "warnings"]);
    let found: Vec<_> = answer["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|asset| {
            let path = string(asset, "path");
            let path = path.strip_prefix(&format!(".leslie/threads/{thread}/")).unwrap();
            format!("{} {path}", string(asset, "type"))
        })
        .collect();
    let expected = [
        "plan plan.md",
        "progress progress.md",
        "design design",
        "learnings learnings",
        "discuss discuss",
        "transcript .meta/transcripts",
    ];
    assert_eq!(found, expected);
}

#[test]
fn transcripts_are_named_by_time_and_question() {
    let project = Project::new();
    let thread = project.spawn(&project.objective("Say"), "t", &[]);
    let write = |more: &[&str]| {
        let args = ["transcript", "--thread", &thread, "--chat", "c1", "--query", "Fix: the bug!"];
        let args = [&args[..], &["--assistant", "Done."], more].concat();
        string(&project.data(&args), "transcript_path")
    };
    let times = ["--start", "2026-02-08T14:30:00+08:00", "--end", "2026-02-08T14:35:00+08:00"];
    let folder = format!("$HOME/.leslie/threads/{thread}/.meta/transcripts");
    let path = write(&times);
    assert_eq!(path, format!("{folder}/20260208-1430-Fix-the-bug.txt"));
    let text = project.text(path.strip_prefix("$HOME/").unwrap());
    let expected = format!(
        "Thread ID: {thread}\nChat ID: c1\n\
         Time Range: 2026-02-08T14:30:00+08:00 ~ 2026-02-08T14:35:00+08:00\n\
         Agent Mode: agent\nStop Reason: end_turn\nTool Calls: 0\n---\n\n\
         user:\n<user_query>\nFix: the bug!\n</user_query>\n\nassistant:\nDone.\n"
    );
    assert_eq!(text, expected);
    let other = write(&[&times[..], &["--mode", "plan", "--stop_reason", "cancelled"]].concat());
    assert_eq!(other, format!("{folder}/20260208-1430-Fix-the-bug-2.txt"));
    let text = project.text(other.strip_prefix("$HOME/").unwrap());
    assert!(text.contains("Agent Mode: plan\nStop Reason: cancelled\n"), "{text}");
    let now = write(&[]);
    assert!(now.ends_with("-Fix-the-bug.txt") && !now.contains("NaN"), "{now}");
}

#[test]
fn fifty_transcripts_stay_and_a_long_one_is_cut() {
    let project = Project::new();
    let thread = project.spawn(&project.objective("Say"), "t", &[]);
    let long = "long ".repeat(5000);
    let write = |minute: u32, answer: &str| {
        let start = format!("2026-02-08T14:{minute:02}:00Z");
        let args =
            ["transcript", "--thread", &thread, "--chat", "c", "--query", "q", "--assistant"];
        project.call(&[&args[..], &[answer, "--start", &start, "--end", &start]].concat())
    };
    for minute in 0..51 {
        write(minute, "a");
    }
    let folder = project.path(&format!(".leslie/threads/{thread}/.meta/transcripts"));
    let names = || fs::read_dir(&folder).unwrap().map(|item| item.unwrap().file_name());
    assert_eq!(names().count(), 50);
    assert!(!names().any(|name| name == "20260208-1400-q.txt"));
    let cut = write(55, &long);
    let printed = "warning: transcript cut at 20480 bytes; full text in ";
    assert!(cut.stderr.starts_with(printed), "{}", cut.stderr);
    let at = |name: &str| format!(".leslie/threads/{thread}/.meta/transcripts/{name}");
    let text = project.text(&at("20260208-1455-q.txt"));
    assert!(text.len() == 20_480 && text.ends_with("..."), "{}", text.len());
    let full = project.text(&at("20260208-1455-q.jsonl"));
    let answer: Value = serde_json::from_str(full.lines().nth(1).unwrap()).unwrap();
    assert_eq!(answer["content"], *long);
    // The full text is removed together with its transcript.
    for minute in 0..50 {
        let start = format!("2026-02-09T14:{minute:02}:00Z");
        let args = ["transcript", "--thread", &thread, "--chat", "c", "--query", "q"];
        let times = ["--assistant", "a", "--start", &start, "--end", &start];
        project.call(&[&args[..], &times].concat());
    }
    assert!(!project.path(&at("20260208-1455-q.jsonl")).exists());
}
