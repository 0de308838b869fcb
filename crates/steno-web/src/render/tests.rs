use serde_json::json;
use steno_model::{EntryKind, Role};
use steno_store::cost::PriceTable;

use super::*;

fn rendered(entries: &[Entry]) -> String {
    let pictures = SessionPictures::default();
    let (zone, lanes) = (&TimeZone::UTC, &SubagentLanes::from_entries(entries));
    let outline = &SessionOutline::new(entries, lanes, &PriceTable::bundled());
    let renderer = EntryRenderer {
        alone: None,
        zone,
        pictures: &pictures,
        base: None,
        lanes,
        notes: &[],
        outline,
        fork: None,
        project: None,
    };
    renderer.render_entries(entries, 0..entries.len())
}

fn entry(role: Role, kind: EntryKind, content: &str) -> Entry {
    let mut entry = Entry::new(role, kind, content);
    entry.created_at = "2026-01-05T09:15:32Z".parse().ok();
    entry
}

#[test]
fn entries_are_rendered_by_kind() {
    let text = rendered(&[
        entry(Role::User, EntryKind::Text, "Fix **it**"),
        entry(Role::Assistant, EntryKind::Thinking, "Hm\nwell"),
        entry(Role::Assistant, EntryKind::Compaction, "So far"),
    ]);
    assert!(text.contains("<h2>Monday, 5 January 2026</h2>"), "{text}");
    assert!(text.contains("<li class=user><a>09:15</a><div class=md>"), "{text}");
    // The script of an exported file adds it to the others.
    assert_eq!(text.matches("09:15").count(), 1, "{text}");
    assert!(text.contains("Fix <strong>it</strong>"), "{text}");
    assert!(text.contains("<details><summary><b>Thought</b><span>Hm</span>"), "{text}");
    assert!(text.contains("<li class=seam>") && text.contains("context was compacted"), "{text}");
}

#[test]
fn a_tool_call_shows_its_summary_and_edit() {
    let mut call = entry(Role::Assistant, EntryKind::ToolCall, "");
    call.tool_name = Some("Edit".to_owned());
    call.tool_input = Some(json!({"file_path": "a.rs", "old_string": "one", "new_string": "two"}));
    let text = rendered(&[call.clone()]);
    assert!(
        text.contains(
            "<details open><summary><b>Edit</b><code>a.rs</code><small class=\"plus\" title=\"Lines added\">+1</small>"
        ),
        "{text}"
    );
    assert!(text.contains("<del>one"), "{text}");
    call.tool_input = Some(json!({"command": "ls -l\nrm <x>"}));
    let text = rendered(&[call]);
    assert!(text.contains("<code>ls -l</code>") && text.contains("language-sh"), "{text}");
    assert!(text.contains("rm &lt;x&gt;"), "{text}");
}

#[test]
fn failures_are_marked_and_long_output_is_folded() {
    let mut failed = entry(Role::Tool, EntryKind::ToolResult, "no such file");
    failed.extra.insert("is_error".to_owned(), json!(true));
    let short = entry(Role::Tool, EntryKind::ToolResult, "one\ntwo\nthree");
    let long = entry(Role::Tool, EntryKind::ToolResult, &"one\n".repeat(40));
    let mut long_failure = entry(Role::Tool, EntryKind::ToolResult, &"bad\n".repeat(40));
    long_failure.extra.insert("is_error".to_owned(), json!(true));
    let text = rendered(&[failed, short, long, long_failure]);
    assert!(text.contains("<li class=\"result bad\">"), "{text}");
    assert!(text.contains("<b>Failed</b><code>no such file</code>"), "{text}");
    for (state, name, first, lines) in [
        ("<details open>", "Result", "one", 3),
        ("<details>", "Result", "one", 40),
        ("<details open>", "Failed", "bad", 40),
    ] {
        let line = format!(
            "{state}<summary><b>{name}</b><code>{first}</code><small>{lines} lines</small>"
        );
        assert!(text.contains(&line), "{line} in {text}");
    }
}

#[test]
fn a_result_names_its_call_and_how_long_it_took() {
    let mut call = entry(Role::Assistant, EntryKind::ToolCall, "");
    call.tool_call_id = Some("t1".to_owned());
    let mut result = entry(Role::Tool, EntryKind::ToolResult, "done");
    (result.tool_call_id, result.tool_name) = (Some("t1".to_owned()), Some("Bash".to_owned()));
    result.created_at = "2026-01-05T09:15:44Z".parse().ok();
    let text = rendered(&[call.clone(), result.clone()]);
    assert!(
        text.contains("<b>Result</b><small title=\"From the call to its result\">12 s</small>"),
        "{text}"
    );
    let text = rendered(&[call, entry(Role::User, EntryKind::Text, "Wait"), result]);
    assert!(text.contains("<b>Result of Bash</b><code>done"), "{text}");
}

#[test]
fn notices_in_a_row_are_folded_into_one_line() {
    let notice = |text: &str| entry(Role::System, EntryKind::Notice, text);
    let all = [
        notice("a"),
        notice("b"),
        notice("c"),
        entry(Role::User, EntryKind::Text, "Go"),
        notice("d"),
    ];
    let text = rendered(&all);
    assert_eq!(text.matches("<b>3 notices</b>").count(), 1, "{text}");
    assert_eq!(
        text.matches("<ol class=entries>").count(),
        text.matches("</ol></details></li>").count()
    );
    assert_eq!(text.matches("<li class=notice>").count(), 4, "{text}");
    assert!(text.find("</ol></details></li>") < text.find("Go"), "{text}");
}

#[test]
fn a_compaction_tells_what_left_the_context() {
    let mut said = entry(Role::Assistant, EntryKind::Text, "Hm");
    said.usage = Some(steno_model::Usage { input: 90_000, ..steno_model::Usage::default() });
    let text = rendered(&[said, entry(Role::System, EntryKind::Compaction, "")]);
    assert!(text.contains("1 entry above left the context"), "{text}");
    assert!(text.contains("was not recorded"), "{text}");
}

#[test]
fn a_fork_shows_where_it_left_its_parent() {
    let pictures = SessionPictures::default();
    let all =
        [entry(Role::User, EntryKind::Text, "One"), entry(Role::User, EntryKind::Text, "Two")];
    let (zone, lanes) = (&TimeZone::UTC, &SubagentLanes::default());
    let fork = ForkPoint {
        place: 1,
        call: None,
        address: "/session/a/b".to_owned(),
        title: "<i>Old</i>".to_owned(),
    };
    let outline = &SessionOutline::default();
    let renderer = EntryRenderer {
        alone: None,
        zone,
        pictures: &pictures,
        base: None,
        lanes,
        notes: &[],
        outline,
        fork: Some(&fork),
        project: None,
    };
    let text = renderer.render_entries(&all, 0..2);
    assert!(text.contains("<a href=\"/session/a/b#e0\">&lt;i&gt;Old&lt;/i&gt;</a>"), "{text}");
    assert!(text.find("The fork begins here") < text.find("Two"), "{text}");
}

#[test]
fn subagents_have_lanes() {
    let mut inner = entry(Role::User, EntryKind::Text, "<b>Look\nthere");
    inner.source = "subagent:<x>".to_owned();
    let text = rendered(&[inner, entry(Role::Assistant, EntryKind::Text, "Done")]);
    assert!(text.contains("title=\"Subagent &lt;x&gt;\">Subagent <b>&lt;b&gt;Look</b>"), "{text}");
    assert!(text.contains("Back to the main agent"), "{text}");
}

#[test]
fn nested_subagents_are_indented_further() {
    let call = |source: &str, prompt: &str| {
        let mut call = entry(Role::Assistant, EntryKind::ToolCall, "");
        call.source = source.to_owned();
        call.tool_input = Some(json!({"prompt": prompt}));
        call
    };
    let mut told = [
        call("primary", "one"),
        entry(Role::User, EntryKind::Text, "two"),
        call("subagent:a", "two"),
    ];
    told[1].source = "subagent:b".to_owned();
    let mut first = entry(Role::User, EntryKind::Text, "one");
    first.source = "subagent:a".to_owned();
    let [outer, inner, inner_call] = told;
    let text = rendered(&[outer, first, inner_call, inner]);
    let at = |class: &str| text.find(class).unwrap_or_else(|| panic!("{class}: {text}"));
    assert!(at("user lane c") < at("call lane") && text.contains(" d2\">"), "{text}");
}

#[test]
fn short_entries_have_minimal_markup() {
    let said: Vec<Entry> =
        (0..100).map(|_| entry(Role::User, EntryKind::Text, "Yes, go on.")).collect();
    let page = rendered(&said).len() / 100;
    assert!(page < 11 + 20, "{page} bytes for 11");
}

#[test]
fn notes_follow_their_entries_and_are_escaped() {
    let pictures = SessionPictures::default();
    let said = entry(Role::User, EntryKind::Text, "Hello");
    let note = Note {
        id: uuid::Uuid::nil(),
        at: "2026-01-05T10:00:00Z".parse().unwrap(),
        entry: Some(said.entry_id),
        text: "See <script>x</script> **here**".to_owned(),
    };
    let (zone, lanes, notes) = (&TimeZone::UTC, &SubagentLanes::default(), &[note]);
    let outline = &SessionOutline::default();
    let renderer = EntryRenderer {
        alone: None,
        zone,
        pictures: &pictures,
        base: None,
        lanes,
        notes,
        outline,
        fork: None,
        project: None,
    };
    let text = renderer.render_entries(&[said], 0..1);
    assert!(text.contains("<aside class=\"note\"") && text.contains("<strong>here"), "{text}");
    assert!(!text.contains("<script"), "{text}");
}

#[test]
fn only_pages_cut_long_output() {
    let pictures = SessionPictures::default();
    let (zone, lanes, base) = (&TimeZone::UTC, &SubagentLanes::default(), Some("/session/a/b"));
    let outline = &SessionOutline::default();
    let renderer = EntryRenderer {
        alone: None,
        zone,
        pictures: &pictures,
        base,
        lanes,
        notes: &[],
        outline,
        fork: None,
        project: None,
    };
    let long = entry(Role::Tool, EntryKind::ToolResult, &"line\n".repeat(10_000));
    let page = renderer.render_entries(std::slice::from_ref(&long), 0..1);
    assert!(page.len() < 30_000 && page.contains("href=\"/session/a/b/entry/0\""));
    assert!(rendered(&[long]).len() > 50_000);
}

#[test]
fn empty_notices_are_hidden_and_not_counted() {
    let notice = |text: &str| entry(Role::System, EntryKind::Notice, text);
    let page = rendered(&[notice(""), notice("one"), notice(" "), notice("two")]);
    assert_eq!(page.matches("<li class=notice hidden>").count(), 2, "{page}");
    assert!(!page.contains("notices"), "{page}");
    let page = rendered(&[notice("one"), notice(""), notice("two"), notice("three")]);
    assert!(page.contains("<b>3 notices</b>"), "{page}");
}
