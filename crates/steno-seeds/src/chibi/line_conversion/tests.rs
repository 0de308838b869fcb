//! Round trips of lines of all releases and entries of all formats.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use steno_model::entry::Usage;
use steno_model::timestamp::Timestamp;

fn line(text: &str) -> ContextLine {
    ContextLine::from_object(serde_json::from_str(text).unwrap()).unwrap()
}

fn typed(entry_type: &str, from: &str, to: &str, role: Option<&str>) -> ContextLine {
    ContextLine {
        id: "550e8400-e29b-41d4-a716-446655440000".to_owned(),
        timestamp: 1705123456.into(),
        from: from.to_owned(),
        to: to.to_owned(),
        entry_type: entry_type.to_owned(),
        role: role.map(str::to_owned),
        ..ContextLine::default()
    }
}

#[test]
fn roles_are_stated_or_derived_from_the_speakers() {
    for (entry_type, from, to, stated, role) in [
        ("message", "alice", "default", None, Role::User),
        ("message", "default", "user", None, Role::Assistant),
        ("message", "default", "alice", Some("agent"), Role::Assistant),
        ("message", "system", "default", Some("system"), Role::System),
        ("message", "system", "default", None, Role::User),
        ("tool_call", "default", "read", None, Role::Assistant),
        ("tool_result", "read", "default", None, Role::Tool),
        ("compaction", "system", "default", None, Role::System),
        ("context_created", "system", "default", None, Role::System),
        ("system_prompt", "system", "default", None, Role::System),
        ("control_transfer", "default", "user", None, Role::Assistant),
    ] {
        let entry = entry_from_line(typed(entry_type, from, to, stated));
        assert_eq!(entry.role, role, "{entry_type} {from} {to}");
    }
}

#[test]
fn a_compaction_has_its_summary() {
    let given = concat!(
        r#"{"id":"550e8400-e29b-41d4-a716-446655440004","timestamp":1705123500,"from":"system","#,
        r#""to":"default","content":"","entry_type":"compaction","metadata":{"summary":"All of it"}}"#,
        "\n"
    );
    let entry = entry_from_line(line(given));
    assert_eq!((entry.kind, entry.content.as_str()), (EntryKind::Compaction, "All of it"));
    assert_eq!(entry.metadata, None);
    assert_eq!(line_from_entry(&entry, "default", 0).to_line(), given);
    let mut foreign = Entry::new(Role::System, EntryKind::Compaction, "Short");
    foreign.entry_id = entry.entry_id;
    foreign.created_at = entry.created_at;
    let expected = given.replace("All of it", "Short");
    assert_eq!(line_from_entry(&foreign, "default", 0).to_line(), expected);
}

#[test]
fn only_fields_that_a_line_lacks_go_into_metadata() {
    let mut entry = Entry::new(Role::Assistant, EntryKind::Text, "hi");
    entry.entry_id = Uuid::from_u128(7);
    entry.created_at = "2026-01-05T09:15:32Z".parse().ok();
    assert_eq!(line_from_entry(&entry, "work", 0).metadata, None);
    entry.created_at = "2026-01-05T09:15:32.5+01:00".parse().ok();
    entry.model = Some("m".to_owned());
    entry.usage = Some(Usage { output: 3, ..Usage::default() });
    let line = line_from_entry(&entry, "work", 0);
    let ours = json!({"steno": {"created_at": "2026-01-05T09:15:32.5+01:00", "model": "m",
        "usage": {"input": 0, "cache_read": 0, "cache_write": 0, "cache_write_5m": 0, "cache_write_1h": 0, "output": 3, "reasoning": 0}}});
    assert_eq!(line.metadata, ours.as_object().cloned());
    assert_eq!(line.timestamp, 1767600932.into());
}

#[test]
fn keeps_invalid_metadata_under_our_key() {
    let mut given = typed("message", "a", "b", None);
    given.metadata = json!({"steno": {"role": 5}, "x": 1}).as_object().cloned();
    let entry = entry_from_line(given);
    assert_eq!(entry.metadata.unwrap()["steno"], json!({"role": 5}));
}

fn maybe<T: Clone + std::fmt::Debug>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    prop::option::of(value)
}

fn a_line() -> impl Strategy<Value = ContextLine> {
    let types = prop_oneof![
        Just("message"),
        Just("tool_call"),
        Just("tool_result"),
        Just("compaction"),
        Just("archival"),
        Just("flow_control_call"),
        Just("thinking"),
        Just("novelty"),
    ];
    let metadata = prop_oneof![
        Just(json!({})),
        Just(json!({"summary": "s"})),
        Just(json!({"summary": "", "hash": 1.0})),
        Just(json!({"summary": 4, "mood": null})),
    ];
    let id = prop_oneof![
        any::<u128>().prop_map(|id| Uuid::from_u128(id).to_string()),
        Just("550E8400-E29B-41D4-A716-446655440000".to_owned()),
        "[a-z]{0,4}",
    ];
    let content = prop_oneof![Just("{\"a\":[1.0]}".to_owned()), "\\PC{0,9}"];
    let names = ("[a-z]{0,3}|user|system", "[a-z]{0,3}|user");
    let seconds = prop_oneof![Just(1705123456), any::<i64>()];
    let late =
        (maybe("user|agent|system|x"), maybe(any::<bool>()), maybe("[a-z]{1,3}"), maybe(metadata));
    (id, seconds, names, content, types, late, any::<bool>()).prop_map(
        |(id, timestamp, (from, to), content, entry_type, late, unknown)| {
            let mut line = ContextLine {
                id,
                timestamp: timestamp.into(),
                from,
                to,
                content,
                ..ContextLine::default()
            };
            line.entry_type = entry_type.to_owned();
            (line.role, line.flow_control, line.tool_call_id) = (late.0, late.1, late.2);
            line.metadata = late.3.and_then(|value| value.as_object().cloned());
            if unknown {
                line.extra.insert("usage".to_owned(), json!({"x": [1]}));
            }
            line
        },
    )
}

fn a_kind() -> impl Strategy<Value = EntryKind> {
    use EntryKind::{Compaction, Error, Notice, Other, Text, Thinking, ToolCall, ToolResult};
    let tools = vec![ToolCall, ToolResult, Compaction];
    let texts = vec![Text, Thinking, Error, Notice, Other];
    prop_oneof![prop::sample::select(tools), prop::sample::select(texts)]
}

fn a_role() -> impl Strategy<Value = Role> {
    "system|user|assistant|tool|judge".prop_map(Role::from)
}

fn a_time() -> impl Strategy<Value = Option<Timestamp>> {
    let texts = "2026-01-05T09:15:32Z|2026-01-05T09:15:32.120\\+08:00|1965-01-05T09:15:32|never";
    texts.prop_map(|text: String| text.parse().ok())
}

fn an_entry() -> impl Strategy<Value = Entry> {
    let input = prop::sample::select(vec![Value::Null, json!({"a": 1}), json!([true])]);
    let metadata =
        prop::sample::select(vec![Value::Null, json!({"summary": "x"}), json!({"k": {}})]);
    let content = prop_oneof![Just("{\"a\": 1}".to_owned()), "\\PC{0,9}"];
    let name = || maybe("[a-z]{1,4}");
    let names = (name(), name(), name(), name());
    let parts = (a_kind(), a_role(), a_time(), content, names);
    (parts, input, metadata, any::<(u128, bool)>()).prop_map(
        |(parts, input, metadata, (id, rich))| {
            let (kind, role, at, content, names) = parts;
            let mut entry = Entry::new(role, kind, content);
            entry.entry_id = Uuid::from_u128(id | 1);
            entry.created_at = at;
            entry.tool_input = Some(input).filter(|input| !input.is_null());
            entry.metadata = metadata.as_object().cloned();
            (entry.tool_name, entry.tool_call_id, entry.model, entry.message_id) = names;
            if rich {
                entry.source = "subagent:1".to_owned();
                entry.usage = Some(Usage { input: 5, ..Usage::default() });
                entry.parent_id = Some("p".to_owned());
                entry.extra.insert("cwd".to_owned(), json!("/x"));
            }
            entry
        },
    )
}

proptest! {
    #[test]
    fn lines_survive_as_entries(line in a_line()) {
        let entry = entry_from_line(line.clone());
        prop_assert_eq!(line_from_entry(&entry, "default", 0), line.clone());
        let again = Entry::from_object(entry.to_object()).unwrap();
        prop_assert_eq!(line_from_entry(&again, "default", 0), line);
    }

    #[test]
    fn entries_survive_as_lines(entry in an_entry()) {
        let written = line_from_entry(&entry, "default", 9).to_line();
        let mut back = entry_from_line(line(&written));
        prop_assert_eq!(line_from_entry(&back, "default", 9).to_line(), written);
        back.extra.shift_remove(CHIBI_KEY);
        prop_assert_eq!(back, entry);
    }
}
