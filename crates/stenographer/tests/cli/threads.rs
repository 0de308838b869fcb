//! Tests of the commands on threads, in a project of their own.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Home, Output};

mod begin;
mod killed;

/// A project with an objective and two threads; the second is a child of the first.
struct Project {
    home: Home,
    objective: String,
    first: String,
    second: String,
}

impl Project {
    fn new() -> Self {
        let home = Home::new();
        home.steno(&["init"]).ok();
        let id = |args: &[&str]| home.steno(args).ok().trim_end().to_owned();
        let objective = id(&["objective", "create", "Build API"]);
        let first = id(&["spawn", "Design API"]);
        let second = id(&["spawn", "Write tests", "--parent", &first]);
        Self { home, objective, first, second }
    }

    fn steno(&self, args: &[&str]) -> Output {
        self.home.steno(args)
    }

    fn ok(&self, args: &[&str]) -> String {
        self.steno(args).ok()
    }

    fn json(&self, args: &[&str]) -> Value {
        let text = self.ok(&[args, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
    }

    /// Runs a command that must fail, and returns its messages.
    fn fails(&self, args: &[&str]) -> String {
        let output = self.steno(args);
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output}");
        output.stderr
    }

    fn asset(&self, thread: &str, path: &str, text: &str) {
        self.home.file(&format!(".leslie/threads/{thread}/{path}"), text);
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.home.path().join(path)).unwrap()
    }

    /// Replaces this project's ids with names.
    fn named(&self, text: &str) -> String {
        let text = text.replace(&self.objective, "OBJECTIVE").replace(&self.first, "FIRST");
        text.replace(&self.second, "SECOND")
    }
}

#[test]
fn objectives_are_made_listed_and_shown() {
    let project = Project::new();
    let other = project.json(&["objective", "create", "Sell it"]);
    assert_eq!(other["created_at"], "2026-01-05T09:15:32.500Z");
    let id = other["id"].as_str().unwrap();
    let expected = format!(
        "CREATED      STATUS  THREADS    ID            TITLE\n\
         01-05 09:15  active  2 threads  {}  Build API\n\
         01-05 09:15  active  0 threads  {id}  Sell it\n",
        project.objective
    );
    assert_eq!(project.ok(&["objective", "list"]), expected);
    assert_eq!(project.json(&["objective", "status", id]), other);
    assert_eq!(project.json(&["objective", "status", &id[4..]]), other);
    assert_eq!(project.ok(&["objective", "list", "--json"]).lines().count(), 2);
    let printed = project.fails(&["spawn", "x"]);
    assert!(printed.starts_with("error: 2 active objectives\n"), "{printed}");
    project.ok(&["spawn", "x", "--objective", id]);
    assert_eq!(project.steno(&["objective", "create", " "]).code, 2);
    assert!(
        project.fails(&["objective", "status", "x"]).starts_with("error: no such objective: x\n")
    );
}

#[test]
fn spawn_uses_every_flag() {
    let project = Project::new();
    project.asset(&project.first, "plan.md", "the plan");
    project.asset(&project.first, "notes/a.md", "a");
    let args = [
        "spawn",
        "Third",
        "--parent",
        &project.first,
        "--inherit",
        "--ref",
        &project.second,
        "--tag",
        "x",
        "--tag",
        "y",
        "--executor",
        "human",
    ];
    let third = project.json(&args);
    assert_eq!(third["tags"], json!(["x", "y"]));
    assert_eq!((&third["executor"], &third["parent_id"]), (&json!("human"), &json!(project.first)));
    assert_eq!(third["objective"], *project.objective);
    let folder = format!(".leslie/threads/{}", third["id"].as_str().unwrap());
    assert_eq!(project.text(&format!("{folder}/plan.md")), "the plan");
    let copy = project.home.path().join(&folder).join("context/inherited").join(&project.second);
    assert!(copy.is_dir());
    let args =
        ["spawn", "Fourth", "--parent", &project.first, "--scope", "notes", "--scope", "../x"];
    let output = project.steno(&args);
    assert_eq!(output.stderr, "warning: not copied, outside of the thread: ../x\n");
    let folder = format!(".leslie/threads/{}", output.ok().trim_end());
    assert_eq!(project.text(&format!("{folder}/notes/a.md")), "a");
    for wrong in
        [&["spawn", ""][..], &["spawn", "x", "--inherit"], &["spawn", "x", "--executor", "dog"]]
    {
        assert_eq!(project.steno(wrong).code, 2, "{wrong:?}");
    }
    let printed = project.fails(&["spawn", "x", "--ref", "none"]);
    assert_eq!(printed, "error: no such thread: none\nhint: `steno status` lists them\n");
}

#[test]
fn status_shows_the_tree_and_one_thread() {
    let project = Project::new();
    let tree = project.named(&project.ok(&["status"]));
    let expected =
        "OBJECTIVE active Build API\n  FIRST active Design API\n    SECOND active Write tests\n";
    assert_eq!(tree, expected);
    assert_eq!(project.ok(&["status", "--json"]).lines().count(), 2);
    project.ok(&["reference", &project.second, &project.first, "--binding", "live"]);
    let one = project.named(&project.ok(&["status", &project.first[7..]]));
    let expected = "Design API
FIRST · active
objective   OBJECTIVE Build API
child       SECOND active Write tests
used by     SECOND active Write tests
executor    agent
created     2026-01-05 09:15:32
updated     2026-01-05 09:15:32
transcript  .leslie/threads/FIRST/.meta/transcripts
";
    assert_eq!(one, expected);
    let row = project.json(&["status", "latest"]);
    assert_eq!(row["id"], *project.second);
    assert_eq!(row["relations"]["references_to"], json!([project.first]));
    assert!(row["thread_context"].as_str().unwrap().contains("<ref thread="));
}

#[test]
fn threads_are_listed_newest_first() {
    let project = Project::new();
    project.ok(&["lifecycle", &project.first, "suspend"]);
    let listed = project.named(&project.ok(&["list", "--threads"]));
    let expected = "\
CREATED      STATUS     EXECUTOR  ID               TITLE
01-05 09:15  active     agent     SECOND  Write tests
01-05 09:15  suspended  agent     FIRST  Design API
";
    assert_eq!(listed, expected);
    let one = project.json(&["list", "--threads", "--status", "suspended"]);
    assert_eq!(one["id"], *project.first);
    assert_eq!(project.json(&["list", "--threads", "-n", "1"])["id"], *project.second);
    assert_eq!(project.ok(&["list", "--threads", "--status", "frozen"]), "");
    for wrong in [&["--status", "active"][..], &["--threads", "--status", "x"]] {
        assert_eq!(project.steno(&[&["list"], wrong].concat()).code, 2, "{wrong:?}");
    }
    assert_eq!(project.steno(&["list", "--threads", "--agent", "x"]).code, 2);
    let elsewhere = project.steno(&["list", "--threads", "--project", "/"]);
    assert!(elsewhere.stderr.starts_with("error: no threads in /\n"), "{elsewhere}");
}

#[test]
fn a_thread_goes_from_state_to_state() {
    let project = Project::new();
    let suspended =
        project.named(&project.ok(&["lifecycle", &project.first, "suspend", "--reason", "wait"]));
    assert_eq!(suspended, "FIRST suspended\n");
    let printed = project.fails(&["lifecycle", &project.first, "archive"]);
    let expected = "error: archive is not possible while the thread is suspended\nhint: possible actions: done, cancel, resume\n";
    assert_eq!(printed, expected);
    assert_eq!(project.json(&["lifecycle", &project.first, "done"])["status"], "completed");
    project.ok(&["lifecycle", &project.second, "cancel"]);
    assert_eq!(project.json(&["objective", "status", "latest"])["status"], "completed");
    let store: Value =
        serde_json::from_str(&project.text(".leslie/thread_relations.json")).unwrap();
    assert_eq!(store["operations"][2]["params"]["reason"], "wait");
    assert_eq!(project.steno(&["lifecycle", &project.first, "explode"]).code, 2);
}

#[test]
fn a_thread_is_transferred_and_gets_messages() {
    let project = Project::new();
    let (first, asked) = (&project.first, "request_approval");
    let waits = project.ok(&["transfer", first, asked, "--scope", "design", "--reason", "REST?"]);
    assert_eq!(project.named(&waits), "FIRST waiting_human agent\n");
    let handed = project.json(&["transfer", first, "handoff", "--to", "human"]);
    assert_eq!((&handed["status"], &handed["executor"]), (&json!("active"), &json!("human")));
    assert_eq!(project.steno(&["transfer", first, "sideways"]).code, 2);

    let output = project.steno(&["inject", first, "- mind\nthe gap", "--type", "constraint"]);
    assert_eq!(
        (project.named(&output.stderr), output.code),
        ("message queued for FIRST\n".to_owned(), 0)
    );
    let printed = project.json(&["inject", first, "again"]);
    assert_eq!((&printed["type"], &printed["content"]), (&json!("note"), &json!("again")));
    let log = project.text(&format!(".leslie/threads/{first}/.meta/injections.log"));
    let at = "2026-01-05T09:15:32.500Z";
    let expected =
        format!("{at} type=constraint content=- mind\\nthe gap\n{at} type=note content=again\n");
    assert_eq!(log, expected);
    assert_eq!(project.steno(&["inject", first, " "]).code, 2);
}

#[test]
fn references_copy_unless_they_are_live() {
    let project = Project::new();
    let (first, second) = (&project.first, &project.second);
    project.asset(first, "plan.md", "the plan");
    project.asset(first, "design/api.md", "the api");
    let output = project.steno(&["reference", second, first, "--scope", "design"]);
    let expected = ".leslie/threads/SECOND/context/inherited/FIRST/design\n--- stderr\nSECOND refers to FIRST\n--- exit 0";
    assert_eq!(project.named(&output.to_string()), expected);
    let output = project.steno(&["reference", second, first, "--scope", "none.md"]);
    let expected = "warning: FIRST has no such file or folder: none.md\nSECOND refers to FIRST\n";
    assert_eq!((output.stdout.as_str(), project.named(&output.stderr)), ("", expected.to_owned()));
    let live = project.json(&["reference", second, first, "--binding", "live"]);
    assert_eq!((&live["binding"], &live["copied_paths"]), (&json!("live"), &json!([])));
    let printed = project.named(&project.fails(&["reference", first, second]));
    assert_eq!(printed, "error: circular reference: FIRST -> SECOND -> FIRST\n");
    let printed = project.fails(&["reference", first, "thread-"]);
    assert!(
        printed.starts_with("error: ambiguous thread id: thread-\nhint: one of: thread-"),
        "{printed}"
    );
}

#[test]
fn artifacts_and_context_name_paths() {
    let project = Project::new();
    project.asset(&project.first, "plan.md", "the plan");
    let listed = project.named(&project.ok(&["artifacts", &project.first]));
    let expected = "TYPE        PATH\nplan        .leslie/threads/FIRST/plan.md\ntranscript  .leslie/threads/FIRST/.meta/transcripts\n";
    assert_eq!(listed, expected);
    let lines = project.ok(&["artifacts", &project.first, "--json"]);
    assert!(lines.starts_with("{\"type\":\"plan\",\"path\":\".leslie/threads/thread-"), "{lines}");
    let context = project.named(&project.ok(&["context", &project.first]));
    let expected = "\
<thread_context thread=\"FIRST\" objective=\"OBJECTIVE\" relations_file=\".leslie/thread_relations.json\">
  <asset type=\"plan\" path=\".leslie/threads/FIRST/plan.md\" />
  <asset type=\"transcript\" path=\".leslie/threads/FIRST/.meta/transcripts\" />
</thread_context>
";
    assert_eq!(context, expected);
    let row = project.json(&["context", &project.first]);
    assert_eq!(project.named(row["thread_context"].as_str().unwrap()), expected.trim_end());
    assert!(!context.contains("the plan"));
}

#[test]
fn merge_prints_files_and_differences() {
    let project = Project::new();
    let third = project.ok(&["spawn", "Third"]).trim_end().to_owned();
    project.asset(&project.first, "plan.md", "first");
    project.asset(&project.second, "plan.md", "second");
    project.asset(&project.second, "design/api.md", "api");
    let args = ["merge", &project.first, &project.second, "--into", &third];
    let printed = project.fails(&[&args[..], &["--strict"]].concat());
    let expected = "error: the threads differ in plan.md\nhint: nothing was merged; without --strict the last thread wins\n";
    assert_eq!(printed, expected);
    let scoped = project.json(&[&args[..], &["--scope", "design"]].concat());
    let at = |path: &str| format!(".leslie/threads/{third}/{path}");
    assert_eq!(scoped["merged_files"], json!([at("design/api.md")]));
    let output = project.steno(&args);
    let printed =
        format!("warning: the threads differ in plan.md; using the last one\n2 files in {third}\n");
    assert_eq!(output.stderr, printed);
    assert_eq!(output.ok(), format!("{}\n{}\n", at("design/api.md"), at("plan.md")));
    assert_eq!(project.text(&at("plan.md")), "second");
    assert_eq!(project.steno(&["merge", "--into", &third]).code, 2);
}

#[test]
fn a_session_is_written_into_a_thread() {
    let project = Project::new();
    let lines = "{\"role\":\"user\",\"content\":\"Fix it\"}\n{\"role\":\"assistant\",\"content\":\"Done.\"}\n";
    project.home.steno_with(&["record", "--session", "s1"], lines.as_bytes()).ok();
    let none = project.steno(&["transcript", &project.first]);
    assert_eq!(project.named(&none.stderr), "no transcripts in FIRST\n");
    let path = project.ok(&["transcript", &project.first, "s1"]);
    let expected = "$HOME/.leslie/threads/FIRST/.meta/transcripts/20260105-0915-Fix-it.txt\n";
    assert_eq!(project.named(&path), expected);
    assert_eq!(project.ok(&["transcript", &project.first]), path);
    assert_eq!(
        project.ok(&["transcript", &project.first, "latest"]),
        path,
        "none is written twice"
    );
    let row = project.json(&["transcript", &project.first]);
    assert_eq!(row["thread_id"], *project.first);
    let text = project.text(path.trim_end().strip_prefix("$HOME/").unwrap());
    assert!(text.starts_with(&format!("Thread ID: {}\nChat ID: s1\n", project.first)), "{text}");
    assert!(project.fails(&["transcript", &project.first, "none"]).contains("none"));
}

#[test]
fn a_damaged_store_is_reported_and_read_from_its_backup() {
    let project = Project::new();
    project.home.file(".leslie/objectives.json", "{");
    let output = project.steno(&["status"]);
    assert!(output.stderr.starts_with("warning: $HOME/.leslie/objectives.json: "), "{output}");
    assert!(output.ok().contains("Write tests"));
    project.home.file(".leslie/objectives.json.bak", "");
    let printed = project.fails(&["status"]);
    assert!(
        printed.starts_with("error: could not read $HOME/.leslie/objectives.json or its backup: "),
        "{printed}"
    );
}
