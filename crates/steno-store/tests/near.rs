//! The session of one file must be the one that a look at the whole tree finds.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use steno_store::format::nearby_sessions::find_sessions_near;
use steno_store::format::{FoundSession, find_sessions};

/// What makes two sessions that were found the same.
fn summarize(found: &FoundSession) -> (&str, &Path, Option<&str>, Vec<&Path>) {
    let bundle = &found.bundle;
    let mut files: Vec<_> = bundle.main_files().iter().map(|source| source.path()).collect();
    files.sort();
    (found.reader.agent, &bundle.root, bundle.key.as_deref(), files)
}

/// Compares every file of every session below `root`; how many there are.
fn compare(root: &Path) -> usize {
    let all = find_sessions(root).unwrap();
    let mut files: Vec<PathBuf> = Vec::new();
    for source in all.iter().flat_map(|found| found.bundle.main_files()) {
        files.push(source.path().to_owned());
    }
    files.sort();
    files.dedup();
    let mut differences = Vec::new();
    for file in &files {
        let holds =
            |found: &&FoundSession| found.bundle.main_files().iter().any(|s| s.path() == file);
        let near = find_sessions_near(file, root).unwrap();
        let mut near: Vec<_> = near.iter().map(summarize).collect();
        let mut whole: Vec<_> = all.iter().filter(holds).map(summarize).collect();
        near.sort();
        whole.sort();
        if near != whole {
            differences.push(format!("{}\n  near {near:?}\n  whole {whole:?}", file.display()));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    files.len()
}

#[test]
fn files_of_one_session_lead_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let claude = "{\"type\":\"user\",\"uuid\":\"u\",\"parentUuid\":null,\"isSidechain\":false,\
                  \"sessionId\":\"s1\",\"version\":\"2\",\"timestamp\":\"2026-01-05T09:15:30Z\",\
                  \"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n";
    let agent = claude.replace("false", "true").replace("\"uuid\"", "\"agentId\":\"a\",\"uuid\"");
    write("claude/p/s1.jsonl", claude);
    write("claude/p/s2.jsonl", &claude.replace("s1", "s2"));
    write("claude/p/s1/subagents/agent-a.jsonl", &agent);
    write("claude/p/s1/subagents/agent-a.meta.json", "{\"agentType\":\"x\"}");
    write("claude/p/s1/subagents/workflows/w/agent-c.jsonl", &agent);
    write("claude/p/s1/tool-results/t.txt", "result");
    write("claude/p/agent-b.jsonl", &agent.replace("s1", "s2"));
    write("claude/p/agent-z.jsonl", &agent.replace("s1", "gone"));
    let kimi = "{\"type\":\"metadata\",\"protocol_version\":\"1\",\"created_at\":1}\n";
    write("kimi/w/s/agents/main/wire.jsonl", kimi);
    write("kimi/w/s/agents/helper/wire.jsonl", kimi);
    write("kimi/w/s/state.json", "{}");
    let droid = "{\"type\":\"session_start\",\"id\":\"d\",\"title\":\"t\",\"version\":2}\n";
    write("droid/p/d.jsonl", droid);
    write("droid/p/d.settings.json", "{}");
    let gemini = "{\"sessionId\":\"g1\",\"projectHash\":\"h\",\"startTime\":\"2026-01-05T09:15:30Z\",\
                  \"messages\":[]}";
    write("gemini/h/chats/session-g1.json", gemini);
    write("gemini/h/chats/session-g1.jsonl", &gemini.replace(",\"messages\":[]", ""));
    write("gemini/h/chats/g1/sub.jsonl", &gemini.replace("\"g1\"", "\"sub\""));
    write("cline/t/ui_messages.json", "[{\"ts\":1,\"type\":\"say\",\"say\":\"text\"}]");
    write("cline/t/task_metadata.json", "{}");
    let history = "{\"display\":\"hi\",\"project\":\"/p\",\"timestamp\":1,\"sessionId\":\"g\"}\n";
    write("purged/history.jsonl", history);
    write("purged/projects/p/memory/x.md", "");
    write("orphan/p/s3/subagents/agent-a.jsonl", &agent);
    write("orphan/p/s3/tool-results/t.txt", "result");
    let opencode = "{\"id\":\"ses_1\",\"title\":\"T\",\"version\":\"1\",\"time\":{\"created\":1},\
                    \"sessionID\":\"ses_1\",\"messageID\":\"msg_1\"}";
    for name in [
        "session/p/ses_1",
        "message/ses_1/msg_1",
        "part/msg_1/prt_1",
        "part/prt_2",
        "project/p",
        "session_diff/ses_1",
        "todo/ses_1",
    ] {
        write(&format!("opencode/storage/{name}.json"), opencode);
    }
    write("opencode/storage/migration", "2");
    let mut files = 0;
    for agent in ["claude", "kimi", "droid", "gemini", "cline", "purged", "orphan", "opencode"] {
        files += compare(&dir.path().join(agent));
    }
    assert_eq!(files, 29);
}

#[test]
fn files_of_samples_lead_to_their_sessions() {
    let folders = ["STENO_FIXTURES", "STENO_GOLDEN"].map(std::env::var_os);
    for folder in folders.into_iter().flatten() {
        for item in fs::read_dir(folder).unwrap() {
            compare(&item.unwrap().path());
        }
    }
}
