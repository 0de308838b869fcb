use proptest::prelude::*;

use super::*;
use crate::decoding::trial;
use crate::{reader, registry};
use steno_model::entry::{EntryKind, Role};

const LOG: &str = r#"{"type":"metadata","protocol_version":"1.4","created_at":1785612803281}
{"type":"config.update","cwd":"/p","systemPrompt":"You are","time":1785612803281}
{"type":"turn.prompt","input":[{"type":"text","text":"hi"},{"type":"image_url","imageUrl":{"url":"data:image/png;base64,AAAA"}}],"origin":{"kind":"user"},"time":1785612812819}
{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","imageUrl":{"url":"data:image/png;base64,AAAA"}}],"origin":{"kind":"user"}},"time":1785612812820}
{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"<system-reminder>"}],"origin":{"kind":"injection"}},"time":1785612812820}
{"type":"context.append_loop_event","event":{"type":"step.begin","uuid":"s"},"time":1785612812825}
{"type":"llm.request","kind":"loop","model":"k2","time":1785612812829}
{"type":"context.append_loop_event","event":{"type":"content.part","stepUuid":"s","part":{"type":"think","think":"hm"}},"time":1785613801102}
{"type":"context.append_loop_event","event":{"type":"tool.call","stepUuid":"s","toolCallId":"Bash_0","name":"Bash","args":{"command":"ls"}},"time":1785613801103}
{"type":"context.append_loop_event","event":{"type":"tool.result","toolCallId":"Bash_0","result":{"output":"x","isError":true}},"time":1785613801104}
{"type":"context.append_loop_event","event":{"type":"step.end","uuid":"s","usage":{"inputOther":1,"output":2,"inputCacheRead":3,"inputCacheCreation":4}},"time":1785613801105}
{"type":"usage.record","usage":{"inputOther":1,"output":2,"inputCacheRead":3,"inputCacheCreation":4},"usageScope":"turn","time":1785613801105}
{"type":"usage.record","usage":{"inputOther":10,"output":20},"usageScope":"session","time":1785613801106}
{"type":"context.apply_compaction","summary":"short","compactedCount":5,"time":1785613801107}
{"type":"context.append_loop_event","event":{"type":"step.begin","uuid":"t"},"time":1785613801108}
{"type":"context.append_loop_event","event":{"type":"content.part","stepUuid":"t","part":{"type":"text","text":"cut"}},"time":1785613801109}
"#;

#[test]
fn reads_a_log() {
    let transcript = trial::read_one_file(&READER, LOG.as_bytes());
    let actual: Vec<_> = transcript.entries.iter().map(|it| (it.role.as_str(), it.kind)).collect();
    assert_eq!(
        actual,
        [
            ("system", EntryKind::Text),
            ("user", EntryKind::Text),
            ("user", EntryKind::Text),
            ("user", EntryKind::Notice),
            ("assistant", EntryKind::Thinking),
            ("assistant", EntryKind::ToolCall),
            ("tool", EntryKind::ToolResult),
            ("system", EntryKind::Other),
            ("system", EntryKind::Compaction),
            ("user", EntryKind::Notice),
            ("assistant", EntryKind::Text),
        ]
    );
    let usage = transcript.session.totals.usage;
    assert_eq!((usage.input, usage.cache_read, usage.cache_write, usage.output), (11, 3, 4, 22));
    assert_eq!(transcript.session.models, ["k2"]);
    assert_eq!(transcript.session.project.as_deref(), Some("/p"));
    assert!(transcript.entries[2].content.starts_with("[image/png, 3 bytes"));
}

#[test]
fn agents_of_one_session_are_one_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let session = dir.path().join("session_1");
    for agent in ["agent-0", "main"] {
        std::fs::create_dir_all(session.join("agents").join(agent)).unwrap();
        std::fs::write(session.join("agents").join(agent).join("wire.jsonl"), LOG).unwrap();
    }
    std::fs::write(session.join("state.json"), r#"{"title":"Hi","workDir":"/q"}"#).unwrap();
    let found = READER.find_at(dir.path()).unwrap();
    assert_eq!(found.len(), 1);
    let transcript = reader::read_transcript(&READER, &found[0]).unwrap();
    assert_eq!(transcript.session.native_id.as_deref(), Some("session_1"));
    assert_eq!(transcript.session.title.as_deref(), Some("Hi"));
    assert_eq!(transcript.session.project.as_deref(), Some("/q"));
    assert_eq!(transcript.session.subagent_files, 1);
    let of = |source| transcript.entries.iter().filter(|entry| entry.source == source).count();
    assert_eq!((of("primary"), of("subagent:agent-0")), (11, 11));
    let alone = READER.find_at(&session.join("agents/agent-0/wire.jsonl")).unwrap();
    let transcript = reader::read_transcript(&READER, &alone[0]).unwrap();
    assert!(transcript.entries.iter().all(|entry| entry.source == PRIMARY_SOURCE));
}

#[test]
fn the_folder_is_found_however_state_json_spells_it() {
    for field in ["workDir", "cwd", "work_dir"] {
        let dir = tempfile::tempdir().unwrap();
        let session = dir.path().join("session_1");
        std::fs::create_dir_all(session.join("agents/main")).unwrap();
        let log = LOG.replace(r#""cwd":"/p","#, "");
        std::fs::write(session.join("agents/main/wire.jsonl"), log).unwrap();
        let state = format!(r#"{{"workDir":"","{field}":"/q"}}"#);
        std::fs::write(session.join("state.json"), state).unwrap();
        let found = READER.find_at(dir.path()).unwrap();
        let transcript = reader::read_transcript(&READER, &found[0]).unwrap();
        assert_eq!(transcript.session.project.as_deref(), Some("/q"), "{field}");
    }
}

#[test]
fn a_silent_step_is_an_empty_answer() {
    let step = r#"{"type":"context.append_loop_event","event":{"type":"step.end","uuid":"s","usage":{"output":2}}}"#;
    let transcript = trial::read_one_file(&READER, step.as_bytes());
    assert_eq!(transcript.entries[0].role, Role::Assistant);
    assert_eq!(transcript.entries[0].usage.unwrap().output, 2);
}

#[test]
fn emits_the_last_of_many_prompts_once() {
    let prompt =
        |n| format!(r#"{{"type":"turn.prompt","input":[{{"type":"text","text":"p{n}"}}]}}"#);
    let message = r#"{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"p149"}]}}"#;
    let mut lines: Vec<_> = (0..150).map(prompt).collect();
    lines.push(message.to_owned());
    let transcript = trial::read_one_file(&READER, lines.join("\n").as_bytes());
    assert_eq!(transcript.entries.len(), 150);
}

#[test]
fn every_cut_can_be_read() {
    trial::read_every_cut(&READER, LOG);
}

const OLDER: &str = r#"{"type": "metadata", "protocol_version": "1.1"}
{"timestamp": 1767603600.5, "message": {"type": "TurnBegin", "payload": {"user_input": "Fix it"}}}
{"timestamp": 1767603600.6, "message": {"type": "StepBegin", "payload": {"n": 1}}}
{"timestamp": 1767603601.0, "message": {"type": "ContentPart", "payload": {"type": "think", "think": "h"}}}
{"timestamp": 1767603601.1, "message": {"type": "ContentPart", "payload": {"type": "think", "think": "m"}}}
{"timestamp": 1767603601.2, "message": {"type": "ToolCall", "payload": {"type": "function", "id": "c1", "function": {"name": "Shell", "arguments": "{\"comm"}}}}
{"timestamp": 1767603601.3, "message": {"type": "ToolCallPart", "payload": {"arguments_part": "and\":\"ls\"}"}}}
{"timestamp": 1767603601.4, "message": {"type": "StatusUpdate", "payload": {"context_usage": 0.1, "token_usage": {"input_other": 1, "output": 2, "input_cache_read": 3, "input_cache_creation": 4}}}}
{"timestamp": 1767603602.0, "message": {"type": "ToolResult", "payload": {"tool_call_id": "c1", "return_value": {"is_error": true, "output": "", "message": "no"}}}}
{"timestamp": 1767603602.5, "message": {"type": "SubagentEvent", "payload": {"task_tool_call_id": "c1", "event": {"type": "ContentPart", "payload": {"type": "text", "text": "sub"}}}}}
{"timestamp": 1767603603.0, "message": {"type": "CompactionBegin", "payload": {}}}
{"timestamp": 1767603603.1, "message": {"type": "CompactionEnd", "payload": {}}}
{"timestamp": 1767603603.2, "message": {"type": "StepBegin", "payload": {"n": 2}}}
{"timestamp": 1767603604.0, "message": {"type": "ContentPart", "payload": {"type": "text", "text": "Done."}}}
{"timestamp": 1767603604.1, "message": {"type": "Novelty", "payload": {"x": 1}}}
{"timestamp": 1767603604.2, "message": {"type": "TurnEnd", "payload": {}}}
"#;

#[test]
fn a_session_of_the_older_cli_is_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("hash/5f7c");
    std::fs::create_dir_all(folder.join("subagents/a1")).unwrap();
    let context =
        "{\"role\": \"_checkpoint\", \"id\": 0}\n{\"role\": \"user\", \"content\": \"Fix it\"}\n";
    for (name, text) in
        [("wire.jsonl", OLDER), ("context.jsonl", context), ("subagents/a1/wire.jsonl", OLDER)]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let state = r#"{"version":1,"custom_title":"Mine","worktree_path":"/w"}"#;
    std::fs::write(folder.join("state.json"), state).unwrap();
    let found = registry::find_sessions(dir.path()).unwrap();
    assert_eq!((found.len(), found[0].bundle.files.len()), (1, 4));
    let transcript = found[0].read_transcript().unwrap();
    assert_eq!(transcript.session.native_id.as_deref(), Some("5f7c"));
    assert_eq!(transcript.session.project.as_deref(), Some("/w"));
    assert_eq!(transcript.session.title.as_deref(), Some("Mine"));
    let summarize = |source: &str| -> Vec<_> {
        let entries = transcript.entries.iter().filter(|entry| entry.source == source);
        entries.map(|it| (it.role.as_str(), it.kind, it.content.as_str())).collect()
    };
    let primary = [
        ("user", EntryKind::Text, "Fix it"),
        ("assistant", EntryKind::Thinking, "hm"),
        ("assistant", EntryKind::ToolCall, ""),
        ("tool", EntryKind::ToolResult, "no"),
        ("system", EntryKind::Compaction, ""),
        ("assistant", EntryKind::Text, "Done."),
        ("system", EntryKind::Other, ""),
    ];
    assert_eq!(summarize(PRIMARY_SOURCE), primary);
    assert_eq!(summarize("subagent:c1"), [("assistant", EntryKind::Text, "sub")]);
    let call = transcript.entries.iter().find(|entry| entry.kind == EntryKind::ToolCall).unwrap();
    assert_eq!(call.tool_input.as_ref().unwrap()["command"], "ls");
    let usage = transcript.session.totals.usage;
    assert_eq!((usage.input, usage.cache_read, usage.cache_write, usage.output), (1, 3, 4, 2));
    let started = transcript.session.started.unwrap();
    assert_eq!(started.to_string(), "2026-01-05T09:00:00.500Z");
    std::fs::remove_file(folder.join("wire.jsonl")).unwrap();
    std::fs::remove_dir_all(folder.join("subagents")).unwrap();
    let found = registry::find_sessions(dir.path()).unwrap();
    let entries = found[0].read_transcript().unwrap().entries;
    assert_eq!((found[0].reader.agent, entries.len()), (AGENT_NAME, 1), "the context alone");
}

#[test]
fn every_cut_of_an_older_log_can_be_read() {
    trial::read_every_cut(&READER, OLDER);
}

proptest! {
    #[test]
    fn any_bytes_can_be_read(bytes: Vec<u8>) {
        trial::read_one_file(&READER, &bytes);
    }
}
