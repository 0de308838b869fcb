//! Errors have leslie's codes, and nothing changes.

use super::*;

#[test]
fn what_is_missing_is_named() {
    let project = Project::new();
    let wrong: [(&[&str], &str); 24] = [
        (&["objective", "create"], "title"),
        (&["objective", "create", "--title", "  "], "title"),
        (&["objective", "create", "--title"], "title"),
        (&["objective", "status"], "id"),
        (&["spawn", "--objective", "o"], "intent"),
        (&["spawn", "--intent", "i"], "objective"),
        (&["spawn", "--intent", "--objective", "o"], "intent"),
        (&["reference", "--target", "t"], "from"),
        (&["reference", "--from", "t"], "target"),
        (&["lifecycle", "--action", "done"], "thread"),
        (&["lifecycle", "--thread", "t"], "action"),
        (&["status"], "thread"),
        (&["artifacts", "--thread", ""], "thread"),
        (&["transfer", "--thread", "t", "--direction", "handoff"], "scope"),
        (&["transfer", "--thread", "t", "--scope", "s"], "direction"),
        (&["inject", "--thread", "t", "--content", "c"], "type"),
        (&["inject", "--thread", "t", "--type", "c"], "content"),
        (&["merge", "--target", "t"], "sources"),
        (&["merge", "--sources", " , ", "--target", "t"], "sources"),
        (&["merge", "--sources", "a"], "target"),
        (&["transcript", "--chat", "c", "--query", "q", "--assistant", "a"], "thread"),
        (&["transcript", "--thread", "t", "--chat", "c", "--query", "q"], "assistant"),
        (&["_worker"], "thread"),
        (&["run"], "title"),
    ];
    for (args, flag) in wrong {
        let expected = ("T902".to_owned(), format!("Missing required flag --{flag}"));
        assert_eq!(project.error(args), expected, "{args:?}");
    }
    assert_eq!(project.data(&["list"]), json!([]));
    assert_eq!(project.data(&["objective", "list"]), json!([]));
}

#[test]
fn missing_ids_are_reported_and_nothing_changes() {
    let project = Project::new();
    let objective = project.objective("o");
    let thread = project.spawn(&objective, "t", &[]);
    let before = project.text(".leslie/thread_relations.json");
    let not_there: [&[&str]; 11] = [
        &["status", "--thread", "ghost"],
        &["artifacts", "--thread", "../../etc"],
        &["lifecycle", "--thread", "ghost", "--action", "done"],
        &["lifecycle", "--thread", "ghost", "--action", "explode"],
        &["inject", "--thread", "ghost", "--type", "a", "--content", "b"],
        &["transfer", "--thread", "ghost", "--direction", "handoff", "--scope", "a"],
        &["reference", "--from", "ghost", "--target", &thread],
        &["merge", "--sources", "ghost", "--target", &thread],
        &["merge", "--sources", &thread, "--target", "ghost"],
        &["transcript", "--thread", "ghost", "--chat", "c", "--query", "q", "--assistant", "a"],
        &["spawn", "--intent", "i", "--objective", &objective, "--parent", "ghost", "--no-run"],
    ];
    for args in not_there {
        let (code, message) = project.error(args);
        let name = if args.contains(&"../../etc") { "../../etc" } else { "ghost" };
        assert_eq!(
            (code.as_str(), message),
            ("T101", format!("Thread '{name}' not found")),
            "{args:?}"
        );
    }
    let spawn = ["spawn", "--intent", "i", "--objective", "obj-none", "--parent", "ghost"];
    let unknown = project.call(&spawn).envelope;
    let expected = json!({
        "code": "T601", "message": "Objective 'obj-none' not found",
        "details": { "objectiveId": "obj-none" },
    });
    assert_eq!(unknown["error"], expected);
    assert_eq!(project.error(&["objective", "status", "--id", "obj-none"]).0, "T601");
    assert_eq!(project.text(".leslie/thread_relations.json"), before);
    let folders = fs::read_dir(project.path(".leslie/threads")).unwrap();
    assert_eq!(folders.count(), 1);
}

#[test]
fn errors_have_details_where_leslie_has_them() {
    let project = Project::new();
    let thread = project.spawn(&project.objective("o"), "t", &[]);
    let details = |args: &[&str]| project.call(args).envelope["error"]["details"].clone();
    let ghost = json!({ "threadId": "ghost" });
    assert_eq!(details(&["status", "--thread", "ghost"]), ghost);
    assert_eq!(details(&["lifecycle", "--thread", "ghost", "--action", "done"]), ghost);
    assert_eq!(details(&["artifacts", "--thread", "ghost"]), Value::Null);
    assert_eq!(details(&["merge", "--sources", "ghost", "--target", &thread]), Value::Null);
    let transition = details(&["lifecycle", "--thread", &thread, "--action", "blocked"]);
    assert_eq!(transition, json!({ "from": "active", "action": "blocked" }));
    let circular = details(&["reference", "--from", &thread, "--target", &thread]);
    assert_eq!(circular, json!({ "from": thread, "target": thread }));
}

#[test]
fn an_unknown_action_is_no_transition() {
    let project = Project::new();
    let thread = project.spawn(&project.objective("o"), "t", &[]);
    let (code, message) = project.error(&["lifecycle", "--thread", &thread, "--action", "blocked"]);
    let expected = "Invalid state transition from active using action blocked";
    assert_eq!((code.as_str(), message.as_str()), ("T102", expected));
}

#[test]
fn unknown_words_never_pass_for_known_ones() {
    let project = Project::new();
    let objective = project.objective("o");
    let thread = project.spawn(&objective, "t", &[]);
    let before = project.text(".leslie/thread_relations.json");
    let spawn = ["spawn", "--intent", "i", "--objective", &objective, "--no-run"];
    let wrong: [(Vec<&str>, &str, &str); 6] = [
        ([&spawn[..], &["--inherit", "weird"]].concat(), "inherit", "none, full, partial: weird"),
        ([&spawn[..], &["--executor", "dog"]].concat(), "executor", "human, agent, system: dog"),
        (
            vec!["reference", "--from", &thread, "--target", "x", "--binding", "loose"],
            "binding",
            "frozen, live: loose",
        ),
        (
            vec!["transfer", "--thread", &thread, "--direction", "sideways", "--scope", "x"],
            "direction",
            "request_approval, delegate, handoff: sideways",
        ),
        (
            vec![
                "transfer",
                "--thread",
                &thread,
                "--direction",
                "handoff",
                "--scope",
                "x",
                "--target",
                "dog",
            ],
            "target",
            "human, agent, system: dog",
        ),
        (
            vec!["merge", "--sources", &thread, "--target", &thread, "--conflict_strategy", "x"],
            "conflict_strategy",
            "interactive, agent-first, human, strict: x",
        ),
    ];
    for (args, flag, known) in wrong {
        let message = format!("Invalid value of flag --{flag}: not one of {known}");
        assert_eq!(project.error(&args), ("T902".to_owned(), message));
    }
    assert_eq!(project.text(".leslie/thread_relations.json"), before);
    let list = project.call(&["list", "--status", "bogus"]);
    assert_eq!((list.code, &list.envelope["data"]), (0, &json!([])));
    assert!(list.stderr.starts_with("warning: no such thread status: "), "{}", list.stderr);
}

#[test]
fn times_are_times() {
    let project = Project::new();
    let thread = project.spawn(&project.objective("o"), "t", &[]);
    let args =
        ["transcript", "--thread", &thread, "--chat", "c", "--query", "q", "--assistant", "a"];
    let (code, message) = project.error(&[&args[..], &["--start", "soon"]].concat());
    let expected = "Invalid value of flag --start: not a time: soon";
    assert_eq!((code.as_str(), message.as_str()), ("T902", expected));
    let folder = project.path(&format!(".leslie/threads/{thread}/.meta/transcripts"));
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
}

#[test]
fn unknown_commands_are_errors_and_unknown_flags_are_warnings() {
    let project = Project::new();
    let message = |args: &[&str]| project.error(args).1;
    assert_eq!(message(&["frobnicate"]), "Unknown command: frobnicate");
    assert_eq!(message(&["objective"]), "Unknown command: objective");
    assert_eq!(message(&["objective", "delete", "x"]), "Unknown command: objective delete");
    assert_eq!(message(&["config", "show"]), "Unknown command: config show");
    let twice = ["objective", "status", "--id", "a", "--id", "b"];
    assert_eq!(message(&twice), "Flag --id is given more than once");
    assert_eq!(message(&["list", "--status"]), "Missing value of flag --status");
    let list = project.call(&["list", "--colour", "red", "extra"]);
    assert_eq!((list.code, &list.envelope["data"]), (0, &json!([])));
    assert_eq!(list.stderr, "warning: unknown flag ignored: --colour\n");
}

#[test]
fn numbers_and_odd_texts_are_texts() {
    let project = Project::new();
    let objective = project.objective("123");
    let thread = project.spawn(&objective, "0x10", &[]);
    let listed = project.data(&["list", "--status", "active"]);
    assert_eq!(listed[0]["title"], "0x10");
    let content = "- \"a\" & <b>\n\u{1b}[31m --c ünï";
    project.data(&["inject", "--thread", &thread, "--type", "5", "--content", content]);
    let operations = &project.store("thread_relations")["operations"];
    assert_eq!(operations[1]["params"]["content"], content);
    assert_eq!(project.data(&["objective", "list"])[0]["title"], "123");
}

#[test]
fn no_path_leads_out_of_a_thread() {
    let project = Project::new();
    let secret = project.home.file("secret.txt", "secret");
    let objective = project.objective("o");
    let (a, b) = (project.spawn(&objective, "a", &[]), project.spawn(&objective, "b", &[]));
    let scope = format!("../../../secret.txt,{}", secret.display());
    let made = project.call(&["reference", "--from", &b, "--target", &a, "--scope", &scope]);
    assert_eq!(made.envelope["data"]["copied_paths"], json!([]));
    let codes: Vec<_> =
        made.envelope["warnings"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
    assert_eq!(codes, ["W203", "W203"]);
    let args = ["spawn", "--intent", "c", "--objective", &objective, "--no-run"];
    let more = ["--parent", &a, "--inherit", "partial", "--scope", &scope];
    let spawned = project.call(&[&args[..], &more].concat());
    assert_eq!((spawned.code, spawned.envelope["warnings"].as_array().unwrap().len()), (0, 2));
    let objective = project.data(&["objective", "status", "--id", &objective]);
    assert_eq!(objective["thread_ids"].as_array().unwrap().len(), 3);
    let files =
        project.home.finish(project.home.program("find", &[".leslie", "-name", "secret*"]), b"");
    assert_eq!(files.stdout, "");
}
