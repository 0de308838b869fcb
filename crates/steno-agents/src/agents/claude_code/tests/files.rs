//! Tests which files are found, and how they are bundled.

use std::fs;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::{SESSION, count, lines, user};
use crate::agents::claude_code::READER;
use crate::inspect::{inspect_session, inspect_with_subagents};
use crate::reader::FoundSession;
use crate::registry;
use steno_model::entry::EntryKind;
use steno_vault::SessionBundle;

#[test]
fn exports_and_history_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let export = json!({"loglines": [{"type": "user", "timestamp": "2026-01-05T09:00:00Z",
        "message": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}]});
    fs::write(dir.path().join("web.json"), export.to_string()).unwrap();
    let line = json!({"display": "Hi", "timestamp": 1767603600000_u64, "project": "/p"});
    fs::write(dir.path().join("history.jsonl"), format!("{line}\n")).unwrap();
    let found = registry::find_sessions(dir.path()).unwrap();
    let counts: Vec<_> = found.iter().map(|found| inspect_session(found).unwrap()).collect();
    let [history, web] = &counts[..] else { panic!() };
    assert_eq!((history.user_prompts, history.session_id.as_deref()), (0, Some("history")));
    assert_eq!(history.first_timestamp.unwrap().to_string(), "2026-01-05T09:00:00.000Z");
    assert_eq!((web.user_prompts, web.session_id.as_deref()), (1, Some("web")));
}

#[test]
fn reads_purged_sessions_from_the_history() {
    let dir = tempfile::tempdir().unwrap();
    let pasted = json!({"1": {"id": 1, "type": "text", "content": "a\nb"},
        "2": {"id": 2, "type": "image", "content": "iVBOR"}});
    let message = |session: &str, text: &str| {
        json!({"display": text, "pastedContents": pasted, "project": "/p",
            "timestamp": 1767603600000_u64, "sessionId": session})
    };
    let there = "22222222-0000-4000-8000-000000000002";
    let older = json!({"display": "Older", "project": "/q", "timestamp": 1_u64});
    let texts = ["See [Pasted text #1 +1 lines].", "/model", "/tmp/x.png is wrong", "!ls"];
    let mut history = vec![message(there, "Hi"), older];
    history.extend(texts.map(|text| message(SESSION, text)));
    let text: String = history.iter().map(|line| format!("{line}\n")).collect();
    write(dir.path(), "history.jsonl", &(text + "{\"display\":\"torn"));
    write(dir.path(), &format!("projects/-p/{there}.jsonl"), "");
    let mut found = registry::find_sessions(&dir.path().join("history.jsonl")).unwrap();
    let keys: Vec<_> = found.iter().map(|found| found.bundle.key.as_deref()).collect();
    assert_eq!(keys, [None, Some(SESSION)]);
    let alone = found.remove(0).read_transcript().unwrap();
    assert_eq!((alone.entries.len(), alone.entries[0].kind), (1, EntryKind::Notice));
    let session = found.remove(0).read_transcript().unwrap();
    assert_eq!(session.session.project.as_deref(), Some("/p"));
    let entries: Vec<_> =
        session.entries.iter().map(|entry| (entry.kind, entry.content.lines().next())).collect();
    let expected = [
        (EntryKind::Text, Some("See a")),
        (EntryKind::Notice, Some("/model")),
        (EntryKind::Text, Some("/tmp/x.png is wrong")),
        (EntryKind::Notice, Some("!ls")),
    ];
    assert_eq!(entries, expected);
    assert_eq!(session.entries[0].content, "See a\nb.");
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A project with a session, all kinds of its side files, and files that are not its own.
fn project() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let text = lines(&[user(json!("Hi"))]);
    let qwen = r#"{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","parts":[]}}"#;
    for (name, text) in [
        ("S.jsonl", text.as_str()),
        ("S/subagents/agent-a1.jsonl", &format!("{text}{{torn")),
        ("S/subagents/agent-a1.meta.json", r#"{"agentType":"Explore"}"#),
        ("S/subagents/workflows/w/agent-a2.jsonl", &text),
        ("S/subagents/workflows/w/journal.jsonl", r#"{"type":"started"}"#),
        ("S/tool-results/t1.txt", "long"),
        ("agent-b1.jsonl", &text),
        ("agent-b2.jsonl", &text.replace(SESSION, "another")),
        ("22222222-0000-4000-8000-000000000002.jsonl", ""),
        ("qwen.jsonl", qwen),
    ] {
        write(dir.path(), &name.replace('S', SESSION), text);
    }
    dir
}

fn names(bundle: &SessionBundle) -> Vec<String> {
    bundle.files.iter().map(|source| source.name().replace(SESSION, "S")).collect()
}

#[test]
fn files_beside_a_session_belong_to_it() {
    let project = project();
    let bundles = READER.find_at(project.path()).unwrap();
    assert_eq!(
        bundles.iter().map(names).collect::<Vec<_>>(),
        [
            vec![
                "S.jsonl",
                "S/subagents/agent-a1.jsonl",
                "S/subagents/agent-a1.meta.json",
                "S/subagents/workflows/w/agent-a2.jsonl",
                "S/subagents/workflows/w/journal.jsonl",
                "S/tool-results/t1.txt",
                "agent-b1.jsonl"
            ],
            vec!["22222222-0000-4000-8000-000000000002.jsonl"],
            vec!["agent-b2.jsonl"],
        ]
    );
    assert_eq!(bundles[2].root, project.path().join("another.jsonl"));
    let file = project.path().join(format!("{SESSION}.jsonl"));
    assert_eq!(names(&READER.find_at(&file).unwrap()[0]), names(&bundles[0]));
}

#[test]
fn subagents_speak_as_themselves_and_are_counted_apart() {
    let project = project();
    let bundle = READER.find_at(project.path()).unwrap().remove(0);
    let found = FoundSession { reader: &READER, bundle };
    let entries = found.read_transcript().unwrap().entries;
    let sources: Vec<_> = entries.iter().map(|entry| entry.source.as_str()).collect();
    assert_eq!(sources, ["primary", "subagent:a1", "subagent:a2", "subagent:b1"]);
    let rows = inspect_with_subagents(&found).unwrap();
    let counts: Vec<_> =
        rows.iter().map(|row| (row.user_prompts, row.subagent_files, row.bad_lines)).collect();
    assert_eq!(counts, [(1, 3, 0), (1, 0, 1), (1, 0, 0), (1, 0, 0)]);
    let whole = inspect_session(&found).unwrap();
    assert_eq!((whole.subagent_files, whole.bad_lines), (3, 0));
}

#[test]
fn a_session_of_one_huge_prompt_is_known_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let picture = json!({"type": "text", "text": "a".repeat(9 << 20)});
    let record = json!({"parentUuid": null, "type": "user", "uuid": "u", "sessionId": SESSION,
        "timestamp": "2026-01-05T09:00:00Z", "message": {"role": "user", "content": [picture]}});
    write(dir.path(), &format!("{SESSION}.jsonl"), &format!("{record}\n"));
    let found = registry::find_sessions(dir.path()).unwrap();
    assert_eq!((found.len(), inspect_session(&found[0]).unwrap().user_prompts), (1, 1));
}

#[test]
fn a_saved_result_is_no_session() {
    let project = project();
    let saved = format!("{SESSION}/tool-results/t2.jsonl");
    write(project.path(), &saved, &lines(&[user(json!("Hi"))]));
    let bundles = READER.find_at(project.path()).unwrap();
    assert_eq!(bundles.len(), 3);
    assert!(names(&bundles[0]).contains(&"S/tool-results/t2.jsonl".to_owned()));
}

#[test]
fn subagents_without_their_session_form_the_session() {
    let project = project();
    fs::remove_file(project.path().join(format!("{SESSION}.jsonl"))).unwrap();
    let found = registry::find_sessions(project.path()).unwrap();
    let session = found.iter().find(|found| found.bundle.files.len() > 1).unwrap();
    let transcript = session.read_transcript().unwrap();
    assert_eq!(transcript.session.native_id.as_deref(), Some(SESSION));
    assert_eq!((transcript.session.subagent_files, transcript.session.parent), (3, None));
    let sources: Vec<_> = transcript.entries.iter().map(|entry| entry.source.as_str()).collect();
    assert_eq!(sources, ["subagent:a1", "subagent:a2", "subagent:b1"]);
    assert_eq!(
        inspect_with_subagents(session).unwrap().len(),
        3,
        "no row for a file that is not there"
    );
}

#[test]
fn a_subagent_given_alone_is_a_session() {
    let project = project();
    let agent = project.path().join(format!("{SESSION}/subagents/agent-a1.jsonl"));
    let alone = FoundSession { reader: &READER, bundle: READER.find_at(&agent).unwrap().remove(0) };
    let session = alone.read_transcript().unwrap().session;
    assert_eq!(session.parent.as_deref(), Some(SESSION));
    assert_eq!(session.native_id.as_deref(), Some("agent-a1"));
    assert_eq!(session.extra["agentType"], "Explore");
    assert_eq!(inspect_session(&alone).unwrap().user_prompts, 1);
    fs::remove_file(agent).unwrap();
    assert!(alone.read_transcript().is_err());
}

#[test]
fn a_subagent_that_names_itself_as_its_session_is_read_once() {
    let dir = tempfile::tempdir().unwrap();
    for (name, session) in [("agent-y", "agent-y"), ("agent-x", "agent-y")] {
        let mut record = user(json!(name));
        record["sessionId"] = json!(session);
        record["isSidechain"] = json!(true);
        write(dir.path(), &format!("{name}.jsonl"), &lines(&[record]));
    }
    let [found] = &registry::find_sessions(dir.path()).unwrap()[..] else { panic!("one session") };
    let names: Vec<_> = found.bundle.files.iter().map(|file| file.name().to_owned()).collect();
    assert_eq!(names, ["agent-y.jsonl", "agent-x.jsonl"]);
    assert_eq!(found.read_transcript().unwrap().entries.len(), 2);
}

#[test]
fn a_subagent_that_is_gone_is_a_problem_of_its_session() {
    let project = project();
    let bundle = READER.find_at(project.path()).unwrap().remove(0);
    fs::remove_file(project.path().join("agent-b1.jsonl")).unwrap();
    let transcript = FoundSession { reader: &READER, bundle }.read_transcript().unwrap();
    assert_eq!(transcript.entries.len(), 3);
    assert_eq!(transcript.problems.len(), 2);
}

#[test]
fn claude_desktop_keeps_the_title_in_a_file_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let session = format!("local_1/.claude/projects/p/{SESSION}.jsonl");
    write(dir.path(), &session, &lines(&[user(json!("Hi"))]));
    let sidecar = json!({"cliSessionId": SESSION, "title": "Cowork"});
    write(dir.path(), "local_1.json", &sidecar.to_string());
    let bundles = READER.find_at(dir.path()).unwrap();
    assert_eq!(count(bundles[0].clone()).title.as_deref(), Some("Cowork"));
}

#[test]
fn an_empty_file_among_chats_is_another_agents() {
    let dir = tempfile::tempdir().unwrap();
    let name = format!("{SESSION}.jsonl");
    for folder in ["projects/-p/chats", "projects/-p"] {
        let folder = dir.path().join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(&name), "").unwrap();
    }
    let found = registry::find_sessions(dir.path()).unwrap();
    let roots: Vec<_> = found.iter().map(|found| found.bundle.root.clone()).collect();
    assert_eq!(roots, [dir.path().join("projects/-p").join(&name)]);
}
