//! Runs the commands that produced leslie's sample stores, and compares the results.

use std::path::Path;

use super::*;

/// The ids of this run, by their names in the samples.
struct Session {
    project: Project,
    names: Vec<(String, String)>,
}

impl Session {
    fn spawn(&mut self, intent: &str, more: &[&str]) {
        let objective = self.id("obj-00000001");
        let thread = self.project.spawn(&objective, intent, more);
        self.names.push((format!("thread-{:08x}", self.names.len()), thread));
    }

    fn id(&self, name: &str) -> String {
        self.names.iter().find(|(known, _)| known == name).unwrap().1.clone()
    }

    fn thread(&self, number: usize) -> String {
        self.id(&format!("thread-{number:08x}"))
    }

    /// Returns the store with the ids and times of the samples.
    fn store(&self, name: &str) -> Value {
        let mut text = self.project.text(&format!(".leslie/{name}.json"));
        for (name, id) in &self.names {
            text = text.replace(id, name);
        }
        let mut value = serde_json::from_str(&text).unwrap();
        normalise(&mut value);
        value
    }
}

/// Replaces times, and ids of operations and references.
fn normalise(value: &mut Value) {
    match value {
        Value::String(text) if text.ends_with('Z') && text.contains('T') => {
            *text = "<TS>".to_owned()
        }
        Value::String(text) if text.starts_with("op-") || text.starts_with("ref-") => {
            *text = "<ID>".to_owned();
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::Object(fields) => fields.values_mut().for_each(normalise),
        _ => {}
    }
}

fn run() -> Session {
    let project = Project::new();
    project.data(&["init", "--yes"]);
    let objective = project.objective("Build API");
    let names = vec![("obj-00000001".to_owned(), objective)];
    let mut session = Session { project, names };
    session.spawn("Design API", &["--executor", "human"]);
    let first = session.thread(1);
    for path in ["plan.md", "progress.md", "design/api.md", "requirements/r.md"] {
        session.project.asset(&first, path, path);
    }
    session.spawn("Write \"tests\" & <docs>", &["--parent", &first, "--tags", "x,y"]);
    let second = session.thread(2);
    let refer = |session: &Session, from: &str, target: &str, more: &[&str]| {
        let args = ["reference", "--from", from, "--target", target];
        session.project.data(&[&args, more].concat());
    };
    refer(&session, &second, &first, &[]);
    refer(&session, &first, "thread-missing", &[]);
    refer(&session, &second, &first, &["--binding", "live", "--scope", "plan.md"]);
    let refs = format!("{first},thread-nope");
    let full = ["--parent", &first, "--inherit", "full", "--ref", &refs, "--executor", "human"];
    session.spawn("inherit full", &full);
    let scope = "requirements,plan.md,../escape";
    let partial = ["--parent", &first, "--inherit", "partial", "--scope", scope];
    session.spawn("inherit partial", &partial);
    work(&session, &first, &second);
    session.spawn("late", &[]);
    session
}

fn work(session: &Session, first: &str, second: &str) {
    let (third, fourth) = (session.thread(3), session.thread(4));
    let sources = format!("{third},{fourth}");
    let commands: [&[&str]; 13] = [
        &[
            "inject",
            "--thread",
            first,
            "--type",
            "constraint",
            "--content",
            "Must support TypeScript",
        ],
        &[
            "transfer",
            "--thread",
            first,
            "--direction",
            "request_approval",
            "--scope",
            "code_edit",
            "--reason",
            "REST vs GraphQL",
        ],
        &[
            "transfer",
            "--thread",
            first,
            "--direction",
            "handoff",
            "--scope",
            "code_edit",
            "--target",
            "human",
        ],
        &["lifecycle", "--thread", first, "--action", "suspend", "--reason", "wait"],
        &["lifecycle", "--thread", first, "--action", "resume"],
        &["lifecycle", "--thread", first, "--action", "done"],
        &["merge", "--sources", &sources, "--target", second],
        &["lifecycle", "--thread", second, "--action", "cancel"],
        &["lifecycle", "--thread", &third, "--action", "done"],
        &["lifecycle", "--thread", &fourth, "--action", "done"],
        &["lifecycle", "--thread", first, "--action", "archive"],
        &[
            "transcript",
            "--thread",
            first,
            "--chat",
            "c",
            "--query",
            "Implement API",
            "--assistant",
            "Done",
        ],
        &["list", "--status", "archived"],
    ];
    for args in commands {
        session.project.data(args);
    }
    let sideways = ["transfer", "--thread", first, "--direction", "sideways", "--scope", "x"];
    assert_eq!(session.project.error(&sideways).0, "T902");
}

#[test]
fn the_commands_leave_the_stores_that_leslie_left() {
    let Some(golden) = std::env::var_os("STENO_GOLDEN") else {
        eprintln!("STENO_GOLDEN is not set: sample files are not compared");
        return;
    };
    let sample = |name: &str| -> Value {
        let path = Path::new(&golden).join("leslie").join(name);
        let mut value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        normalise(&mut value);
        value
    };
    let session = run();
    let mut expected = sample("thread_relations.json");
    let operations = expected["operations"].as_array_mut().unwrap();
    operations.retain(|operation| operation["params"]["direction"] != "sideways");
    let found = session.store("thread_relations");
    // Compared as text, because the order of fields matters.
    assert_eq!(found.to_string(), expected.to_string());
    let sorted = |mut store: Value| {
        let ids = store["objectives"]["obj-00000001"]["thread_ids"].as_array_mut().unwrap();
        ids.sort_by_key(ToString::to_string);
        store.to_string()
    };
    assert_eq!(sorted(session.store("objectives")), sorted(sample("objectives.json")));
}
