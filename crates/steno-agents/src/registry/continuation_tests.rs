//! Sessions that continue those of other agents: written by each agent's writer, read by its reader.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::session::Transcript;
use steno_vault::{SessionBundle, SessionFile};

use crate::agent::Agent;
use crate::agent::continuation::conversation::{
    ContinuedConversation, ContinuedItemKind, MISSING_RESULT, NoticeHandling,
};
use crate::agent::continuation::image_segments::ContinuedImage;
use crate::agent::continuation::notice::ContinuationNotice;
use crate::agent::continuation::{ContinuationFiles, ContinuationRequest, check_files};
use crate::agent::user_folders::UserFolders;
use crate::decoding::attachment;
use crate::reader;
use crate::registry::{agent_named, all_agents};

const IMAGE: &str = "iVBORw0KGgo=";

const CLAUDE: &str = r#"{"type":"user","uuid":"1","parentUuid":null,"isSidechain":false,"cwd":"/p","sessionId":"s","version":"2.1.0","timestamp":"2026-01-05T09:15:31.000Z","message":{"role":"user","content":"Count the herons"}}
{"type":"assistant","uuid":"2","parentUuid":"1","isSidechain":false,"sessionId":"s","timestamp":"2026-01-05T09:15:32.000Z","message":{"id":"m1","role":"assistant","model":"claude-x","content":[{"type":"thinking","thinking":"Hm","signature":"c"},{"type":"text","text":"I will count."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls \"ü\"","n":1.50}},{"type":"tool_use","id":"t2","name":"mcp__x__read.file","input":{}}],"usage":{"input_tokens":30,"output_tokens":5}}}
{"type":"user","uuid":"3","parentUuid":"2","isSidechain":false,"sessionId":"s","timestamp":"2026-01-05T09:15:33.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"","is_error":false},{"type":"tool_result","tool_use_id":"t1","content":" 3\n4\t\u0000\n","is_error":true}]}}
{"type":"user","uuid":"4","parentUuid":"3","isSidechain":false,"sessionId":"s","timestamp":"2026-01-05T09:15:34.000Z","message":{"role":"user","content":[{"type":"text","text":"/tmp/x is the list"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}}
{"type":"assistant","uuid":"5","parentUuid":"4","isSidechain":false,"sessionId":"s","timestamp":"2026-01-05T09:15:35.000Z","message":{"id":"m2","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"t3","name":"Read","input":{"file_path":"/p/a.png"}}]}}
{"type":"user","uuid":"6","parentUuid":"5","isSidechain":false,"sessionId":"s","timestamp":"2026-01-05T09:15:36.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t3","content":[{"type":"text","text":"seen"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}]}}
{"type":"assistant","uuid":"7","parentUuid":"6","isSidechain":false,"sessionId":"s","timestamp":"2026-01-05T09:15:37.000Z","message":{"id":"m3","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"t4","name":"Bash","input":{"command":"sleep 9"}}]}}
"#;

const CODEX: &str = r#"{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p","cli_version":"0.140.0"}}
{"timestamp":"2026-01-01T00:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}}
{"timestamp":"2026-01-01T00:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Patch it\n"}]}}
{"timestamp":"2026-01-01T00:00:01.000Z","type":"event_msg","payload":{"type":"user_message","message":"Patch it\n"}}
{"timestamp":"2026-01-01T00:00:02.000Z","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","call_id":"c1","input":"*** Begin Patch\n*** End Patch"}}
{"timestamp":"2026-01-01T00:00:03.000Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c1","output":"Exit code: 1\nno"}}
{"timestamp":"2026-01-01T00:00:04.000Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\": \"ls\"}","call_id":"c2"}}
{"timestamp":"2026-01-01T00:00:05.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c2","output":"a"}}
{"timestamp":"2026-01-01T00:00:06.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done"}]}}
"#;

const GEMINI: &str = r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z","lastUpdated":"2026-01-01T00:00:00.000Z","kind":"main"}
{"id":"1","timestamp":"2026-01-01T00:00:00.000Z","type":"user","content":[{"text":"Fix it"}]}
{"id":"2","timestamp":"2026-01-01T00:00:01.000Z","type":"gemini","content":"Looking","model":"gemini-3","thoughts":[{"subject":"S","description":"D"}],"toolCalls":[{"id":"t","name":"ls","args":{"a":[1,null]},"status":"success","result":[{"functionResponse":{"id":"t","name":"ls","response":{"output":"x"}}}]}]}
"#;

const QWEN: &str = r#"{"uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","type":"user","cwd":"/p","version":"0.20.0","message":{"role":"user","parts":[{"text":"Fix it"}]}}
{"uuid":"u2","parentUuid":"u1","sessionId":"s","timestamp":"2026-01-01T00:00:01.000Z","type":"assistant","model":"coder","message":{"role":"model","parts":[{"text":"Yes"},{"functionCall":{"id":"f","name":"run_shell_command","args":{"command":"ls"}}}]}}
{"uuid":"u3","parentUuid":"u2","sessionId":"s","timestamp":"2026-01-01T00:00:02.000Z","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"f","name":"run_shell_command","response":{"output":"a\nb"}}}]},"toolCallResult":{"callId":"f","status":"success"}}
"#;

const OPENCODE: &str = r#"{"info":{"id":"ses_1","version":"1.0","projectID":"p","directory":"/p","title":"Fix","time":{"created":1770000000000,"updated":1770000009000}},"messages":[{"info":{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1770000000000}},"parts":[{"id":"prt_1","messageID":"msg_1","sessionID":"ses_1","type":"text","text":"Fix it"},{"id":"prt_2","messageID":"msg_1","sessionID":"ses_1","type":"file","mime":"image/png","filename":"a b.png","url":"data:image/png;base64,iVBORw0KGgo="}]},{"info":{"id":"msg_2","sessionID":"ses_1","role":"assistant","modelID":"m","providerID":"p","time":{"created":1770000001000},"tokens":{"input":3,"output":4,"reasoning":0,"cache":{"read":0,"write":0}},"cost":0.5},"parts":[{"id":"prt_3","messageID":"msg_2","sessionID":"ses_1","type":"tool","callID":"c","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"x\n","title":"","metadata":{},"time":{"start":1,"end":2}}}]}]}"#;

const SOURCES: [(&str, &str, &str); 5] = [
    ("claude-code", "s.jsonl", CLAUDE),
    ("codex", "rollout-s.jsonl", CODEX),
    ("gemini", "session-s.jsonl", GEMINI),
    ("qwen", "s.jsonl", QWEN),
    ("opencode", "ses_1.json", OPENCODE),
];

fn targets() -> impl Iterator<Item = &'static Agent> {
    all_agents().filter(|agent| agent.continuation.is_some())
}

fn read(agent: &str, name: &str, bytes: &[u8]) -> Transcript {
    let file = SessionFile::in_memory(name, name, bytes.to_vec());
    let bundle = SessionBundle::new(name, vec![file]);
    reader::read_transcript(agent_named(agent).unwrap().reader, &bundle).unwrap()
}

fn written(agent: &Agent, files: &ContinuationFiles) -> Transcript {
    let name = files.session_file.path.file_name().unwrap().to_string_lossy();
    read(agent.name(), &name, &files.session_file.bytes)
}

fn conversation(entries: &[Entry]) -> ContinuedConversation {
    ContinuedConversation::from_entries(entries, NoticeHandling::LeftOut)
}

fn write(agent: &Agent, conversation: &ContinuedConversation) -> ContinuationFiles {
    let user = UserFolders { home: Path::new("/home/u"), variable: &|_| None };
    let notice = ContinuationNotice {
        agent: "zed",
        display_name: "Zed",
        session: "origin-1",
        counts: conversation.counts(),
        cut: None,
    };
    let image = ContinuedImage { media_type: "image/png".to_owned(), base64: IMAGE.to_owned() };
    let hash = blake3::hash(b"\x89PNG\r\n\x1a\n").to_string();
    let request = ContinuationRequest {
        conversation,
        notice: &notice.to_text(),
        title: "Title",
        origin_agent: "zed",
        images: &|wanted| (wanted == hash).then(|| image.clone()),
        folder: Path::new("/p/shop"),
        branch: Some("main"),
        user: &user,
        version: agent.continuation.as_ref().unwrap().tested_versions[0],
        id: "01a1e4b5-ea58-79c2-b50c-54452306d4f5".parse().unwrap(),
        now: "2026-06-01T10:00:00.5Z".parse().unwrap(),
    };
    (agent.continuation.as_ref().unwrap().write)(&request).unwrap()
}

/// Calls with their arguments and results, in order.
fn calls(entries: &[Entry]) -> Vec<(String, Value, String)> {
    let items = ContinuedConversation::from_entries(entries, NoticeHandling::AsPrompts).items;
    let call = |kind| match kind {
        ContinuedItemKind::Call(call) => Some((call.name, Value::Object(call.input), call.result)),
        _ => None,
    };
    items.into_iter().filter_map(|item| call(item.kind)).collect()
}

#[test]
fn each_agent_continues_the_sessions_of_each_other() {
    let mut pairs = 0;
    for (source, name, text) in SOURCES {
        let origin = read(source, name, text.as_bytes());
        let conversation = conversation(&origin.entries);
        assert!(conversation.counts().calls > 0, "{source}");
        for target in targets().filter(|target| target.name() != source) {
            let pair = format!("{source} to {}", target.name());
            let files = write(target, &conversation);
            check_files(target.reader, &files, &conversation).expect(&pair);
            let copy = written(target, &files);
            assert_eq!(calls(&copy.entries), calls(&origin.entries), "{pair}");
            assert_eq!(copy.session.parent.as_deref(), Some("origin-1"), "{pair}");
            assert_eq!(copy.session.native_id.as_deref(), Some(&*files.session_id), "{pair}");
            assert_eq!(copy.session.project.as_deref().unwrap_or("/p/shop"), "/p/shop", "{pair}");
            assert!(copy.session.totals.usage.is_empty(), "{pair}: nothing is billed again");
            assert_eq!(copy.session.totals.cost.unwrap_or_default(), 0.0, "{pair}");
            pairs += 1;
        }
    }
    assert_eq!(pairs, 20);
}

#[test]
fn every_call_is_answered_at_once_and_ids_are_new() {
    let conversation = conversation(&read("claude-code", "s.jsonl", CLAUDE.as_bytes()).entries);
    assert_eq!(conversation.counts().open_calls, 1);
    for target in targets() {
        let entries = written(target, &write(target, &conversation)).entries;
        let tools: Vec<_> = entries.iter().filter(|entry| entry.tool_call_id.is_some()).collect();
        assert_eq!(tools.len(), 8, "{}", target.name());
        let mut ids = Vec::new();
        for pair in tools.chunks(2) {
            assert_eq!((pair[0].kind, pair[1].kind), (EntryKind::ToolCall, EntryKind::ToolResult));
            assert_eq!(pair[0].tool_call_id, pair[1].tool_call_id);
            ids.push(pair[0].tool_call_id.clone().unwrap());
        }
        assert_eq!(tools[7].content, MISSING_RESULT, "{}", target.name());
        assert!(ids.iter().all(|id| !id.starts_with('t') || id.starts_with("toolu_")), "{ids:?}");
        ids.dedup();
        assert_eq!(ids.len(), 4);
    }
}

#[test]
fn images_are_kept_where_the_format_has_them() {
    let reference = attachment::describe_base64(Some("image/png"), IMAGE);
    for (source, name, text) in [SOURCES[0], SOURCES[4]] {
        let conversation = conversation(&read(source, name, text.as_bytes()).entries);
        for target in targets() {
            let files = write(target, &conversation);
            check_files(target.reader, &files, &conversation).unwrap();
            let text = String::from_utf8(files.session_file.bytes.clone()).unwrap();
            assert!(text.contains(IMAGE), "{} of {source}", target.name());
            let entries = written(target, &files).entries;
            let named = entries.iter().filter(|entry| entry.content.contains(&reference)).count();
            let expected = if source == "opencode" { 1 } else { 2 };
            assert_eq!(named, expected, "{} of {source}", target.name());
        }
    }
}

#[test]
fn the_notice_is_first_and_no_prompt() {
    let conversation = conversation(&read("codex", "r.jsonl", CODEX.as_bytes()).entries);
    for target in targets() {
        let transcript = written(target, &write(target, &conversation));
        let first = &transcript.entries[0];
        assert_eq!(
            (&first.role, first.kind),
            (&Role::User, EntryKind::Notice),
            "{}",
            target.name()
        );
        assert!(
            first.content.contains("Continued from Zed, session origin-1."),
            "{}",
            first.content
        );
        let prompts = transcript
            .entries
            .iter()
            .filter(|entry| entry.role == Role::User && entry.kind == EntryKind::Text);
        assert_eq!(prompts.count(), 1, "{}", target.name());
        assert!(matches!(transcript.session.title.as_deref(), Some("Patch it" | "Title")));
    }
}

#[test]
fn a_session_that_began_with_a_hand_off_note_is_continued() {
    let note = "<continued_session agent=\"x\" session=\"y\">\n</continued_session>\n\nGo on";
    let entries = [
        Entry::new(Role::User, EntryKind::Text, note),
        Entry::new(Role::Assistant, EntryKind::Text, "Yes"),
    ];
    let conversation = conversation(&entries);
    for target in targets() {
        let files = write(target, &conversation);
        check_files(target.reader, &files, &conversation).unwrap();
        assert_eq!(written(target, &files).session.parent.as_deref(), Some("origin-1"));
    }
}

#[test]
fn a_changed_copy_is_refused() {
    let conversation = conversation(&read("codex", "r.jsonl", CODEX.as_bytes()).entries);
    for target in targets() {
        let mut files = write(target, &conversation);
        let text = String::from_utf8(files.session_file.bytes).unwrap();
        files.session_file.bytes = text.replace("Exit code: 1", "Exit code: 0").into_bytes();
        let error = check_files(target.reader, &files, &conversation).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("the written session reads differently: item 2:"), "{message}");
    }
}

fn unit(prompt: usize, calls: usize) -> Vec<Entry> {
    let mut entries = vec![Entry::new(Role::User, EntryKind::Text, format!("Prompt {prompt}"))];
    for number in 0..calls {
        let id = format!("c{prompt}-{number}");
        let mut call = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        (call.tool_name, call.tool_call_id) = (Some("Bash".to_owned()), Some(id.clone()));
        call.tool_input = Some(json!({"command": "x"}));
        let mut result = Entry::new(Role::Tool, EntryKind::ToolResult, "y".repeat(800));
        result.tool_call_id = Some(id);
        entries.extend([call, result]);
    }
    entries.push(Entry::new(Role::Assistant, EntryKind::Text, format!("Answer {prompt}")));
    entries
}

fn first_text(conversation: &ContinuedConversation) -> String {
    match &conversation.items[0].kind {
        ContinuedItemKind::Prompt(text) | ContinuedItemKind::Answer(text) => text.clone(),
        ContinuedItemKind::Call(call) => call.name.clone(),
    }
}

#[test]
fn a_long_conversation_is_cut_at_whole_units() {
    let entries: Vec<Entry> = (0..1000).flat_map(|prompt| unit(prompt, 4)).collect();
    assert_eq!(entries.len(), 10_000);
    let mut long = conversation(&entries);
    assert_eq!(long.cut_to_limit(u64::MAX), None);
    let cut = long.cut_to_limit(100_000).unwrap();
    assert_eq!(first_text(&long), format!("Prompt {}", cut.units));
    assert_eq!((cut.items, long.items.len()), (cut.units * 6, 6_000 - cut.items));
    assert!((20..30).contains(&(1000 - cut.units)), "{cut:?}");
    for target in targets() {
        check_files(target.reader, &write(target, &long), &long).unwrap();
    }
    let notice = ContinuationNotice {
        agent: "codex",
        display_name: "Codex",
        session: "s",
        counts: long.counts(),
        cut: Some(&cut),
    };
    let text = notice.to_text();
    assert!(text.contains(&format!("The first {} requests of the user", cut.units)), "{text}");
}

#[test]
fn a_cut_prefers_the_last_compaction() {
    let mut entries: Vec<Entry> = (0..10).flat_map(|prompt| unit(prompt, 4)).collect();
    entries.push(Entry::new(Role::System, EntryKind::Compaction, ""));
    entries.push(Entry::new(Role::User, EntryKind::Notice, "Ten prompts were answered."));
    entries.extend((10..12).flat_map(|prompt| unit(prompt, 4)));
    let mut long = conversation(&entries);
    let cut = long.cut_to_limit(20_000).unwrap();
    assert_eq!((cut.units, first_text(&long).as_str()), (10, "Prompt 10"));
    assert_eq!(cut.summary.as_deref(), Some("Ten prompts were answered."));
    let mut short = conversation(&entries);
    assert_eq!(short.cut_to_limit(6_000).unwrap().units, 11);
    assert_eq!(first_text(&short), "Prompt 11");
}

#[test]
fn a_unit_that_is_too_long_keeps_its_prompt_and_its_end() {
    let mut long = conversation(&unit(0, 50));
    let cut = long.cut_to_limit(5_000).unwrap();
    assert_eq!((cut.units, cut.items), (0, cut.items_in_last_unit));
    assert_eq!(first_text(&long), "Prompt 0");
    assert_eq!(long.items.len() + cut.items, 52);
    assert!(long.items.len() > 4, "{}", long.items.len());
    let mut tiny = conversation(&unit(0, 50));
    tiny.cut_to_limit(1).unwrap();
    assert_eq!(tiny.items.len(), 2);
}

/// Any entry of a session.
fn any_entry() -> impl Strategy<Value = Entry> {
    let text = prop_oneof![
        ".{0,40}",
        "[/?<a-z \n]{0,12}",
        Just("<system-reminder>x</system-reminder>".to_owned())
    ];
    (0..6usize, text, "[a-c]", ".{0,20}").prop_map(|(kind, text, id, word)| {
        let mut entry = match kind {
            0 => Entry::new(Role::User, EntryKind::Text, text),
            1 => Entry::new(Role::Assistant, EntryKind::Text, text),
            2 => Entry::new(Role::Tool, EntryKind::ToolResult, text),
            3 => Entry::new(Role::Assistant, EntryKind::Thinking, text),
            4 => Entry::new(Role::User, EntryKind::Notice, text),
            _ => {
                let mut call = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
                (call.tool_name, call.tool_input) = (Some(word), Some(json!({ "x": text })));
                call
            }
        };
        if matches!(entry.kind, EntryKind::ToolCall | EntryKind::ToolResult) {
            entry.tool_call_id = Some(id);
        }
        entry
    })
}

proptest! {
    #[test]
    fn any_conversation_reads_back_equal(entries in prop::collection::vec(any_entry(), 0..20)) {
        let conversation = conversation(&entries);
        for target in targets() {
            let files = write(target, &conversation);
            if let Err(error) = check_files(target.reader, &files, &conversation) {
                panic!("{}: {error}", target.name());
            }
        }
    }
}
