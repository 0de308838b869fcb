//! Parsing, checking and rendering of the two stores.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use steno_model::Timestamp;
use steno_model::json::{JsonStyle, Object};

fn relations() -> Value {
    json!({
        "version": "1.0",
        "metadata": { "last_updated": NOW, "thread_count": 1, "note": 1.0 },
        "threads": { "t": {
            "id": "t", "title": "x", "objective": "o", "created_at": NOW, "status": "active",
            "parent_id": null, "storage_path": ".leslie/threads/t", "executor": "agent",
            "updated_at": NOW, "colour": "red",
        } },
        "operations": [{
            "id": "op", "timestamp": NOW, "command": "dance", "operator": "user",
            "params": { "b": 1.5, "a": [] }, "why": null,
        }],
        "relations": { "t": {
            "children": [], "references_to": [], "referenced_by": [], "depends_on": [], "x": 1,
        } },
        "later": { "z": 1, "a": 2 },
    })
}

#[test]
fn fields_that_nobody_knows_are_kept_in_their_place() {
    let text = JsonStyle::PRETTY.print(&relations()) + "\n";
    let read = ThreadRelations::from_value(serde_json::from_str(&text).unwrap()).unwrap();
    assert_eq!(read.to_json(), text);
}

#[test]
fn a_pending_thread_is_active() {
    let mut value = relations();
    value["threads"]["t"]["status"] = json!("pending");
    let read = ThreadRelations::from_value(value).unwrap();
    assert_eq!(read.threads["t"].status, ThreadStatus::Active);
}

#[test]
fn an_empty_parent_is_none() {
    let mut value = relations();
    value["threads"]["t"]["parent_id"] = json!("");
    assert_eq!(ThreadRelations::from_value(value).unwrap().threads["t"].parent_id, None);
}

#[test]
fn reports_errors_with_their_location() {
    for (pointer, bad, expected) in [
        ("/version", json!(1), "version is not a text"),
        ("/metadata/thread_count", json!(-1), "metadata.thread_count is not a whole number"),
        ("/threads", json!([]), "threads is not an object"),
        ("/threads/t/title", json!(""), "threads.t.title is not a text"),
        ("/threads/t/id", json!("u"), "threads.t.id is not the thread's key"),
        ("/threads/t/status", json!("blocked"), "threads.t.status is not a status"),
        (
            "/threads/t/created_at",
            json!("2026-01-01T00:00:00+01:00"),
            "threads.t.created_at is not a time in UTC",
        ),
        ("/threads/t/updated_at", json!("now"), "threads.t.updated_at is not a time"),
        ("/threads/t/executor", json!("robot"), "threads.t.executor is not human, agent or system"),
        ("/threads/t/parent_id", json!("../up"), "threads.t.parent_id is not an id or null"),
        (
            "/operations/0/operator",
            json!("me"),
            "operations[0].operator is not user, system or agent",
        ),
        ("/operations/0/params", json!([]), "operations[0].params is not an object"),
        ("/relations/t/children", json!([1]), "relations.t.children is not a list of texts"),
        ("/relations/t/depends_on", json!(["a/b"]), "relations.t.depends_on is not a list of ids"),
    ] {
        let mut value = relations();
        *value.pointer_mut(pointer).unwrap() = bad;
        assert_eq!(ThreadRelations::from_value(value).unwrap_err().to_string(), expected);
    }
    let mut value = relations();
    value["threads"]["../../x"] = value["threads"]["t"].clone();
    let error = ThreadRelations::from_value(value).unwrap_err();
    assert_eq!(error.to_string(), "threads.../../x is not an id");
}

fn word<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    (0..all.len()).prop_map(|index| all[index])
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{1,12}", "[\\x00-\\x20\"\\\\/\u{7f}\u{2028}<&é🔧]{1,12}"]
}

fn id() -> impl Strategy<Value = LeslieId> {
    "[a-zé&<\"' ][a-z0-9-]{0,6}".prop_map(|text| text.parse().unwrap())
}

fn time() -> impl Strategy<Value = Timestamp> {
    (0..4_000_000_000_000_i64).prop_map(|millis| {
        Timestamp::from_instant(jiff::Timestamp::from_millisecond(millis).unwrap(), 3)
    })
}

fn extra() -> impl Strategy<Value = Object> {
    let value = prop_oneof![
        Just(json!(null)),
        Just(json!({"b": 1, "a": []})),
        text().prop_map(Value::from)
    ];
    prop::collection::vec(("x_[a-z]{1,4}", value), 0..3)
        .prop_map(|fields| fields.into_iter().collect())
}

prop_compose! {
    fn thread()(
        (id, objective, parent_id) in (id(), id(), prop::option::of(id())),
        (title, tags) in (text(), prop::option::of(prop::collection::vec(text(), 0..3))),
        (created_at, updated_at) in (time(), time()),
        (status, executor) in (word(ThreadStatus::ALL), word(Executor::ALL)),
        session_id in prop::option::of(text()),
        extra in extra(),
    ) -> Thread {
        let storage_path = format!(".leslie/threads/{id}");
        Thread { id, title, objective, created_at, status, tags, parent_id, storage_path, executor, updated_at, session_id, extra }
    }
}

prop_compose! {
    fn operation()(
        (id, command) in (text(), text()),
        timestamp in time(),
        operator in word(Operator::ALL),
        (params, extra) in (extra(), extra()),
    ) -> ThreadOperation {
        ThreadOperation { id, timestamp, command, operator, params, extra }
    }
}

prop_compose! {
    fn links()(
        ids in prop::collection::vec(prop::collection::vec(id(), 0..3), 4),
        extra in extra(),
    ) -> ThreadLinks {
        let [children, references_to, referenced_by, depends_on] = ids.try_into().unwrap();
        ThreadLinks { children, references_to, referenced_by, depends_on, extra }
    }
}

proptest! {
    #[test]
    fn json_survives_a_round_trip(
        threads in prop::collection::vec(thread(), 0..4),
        operations in prop::collection::vec(operation(), 0..4),
        links in prop::collection::vec((id(), links()), 0..4),
        now in time(),
    ) {
        let mut given = ThreadRelations::new(now);
        given.threads = threads.into_iter().map(|thread| (thread.id.clone(), thread)).collect();
        given.operations = operations;
        given.links = links.into_iter().collect();
        given.touch(now);
        let text = given.to_json();
        let read = ThreadRelations::from_value(serde_json::from_str(&text).unwrap()).unwrap();
        prop_assert_eq!(read.to_json(), text);
        prop_assert_eq!(read, given);
    }

    #[test]
    fn objectives_too(
        objectives in prop::collection::vec((id(), text(), time(), prop::collection::vec(id(), 0..4), extra()), 0..4),
        now in time(),
    ) {
        let mut given = ObjectiveList::new(now);
        for (id, title, created_at, thread_ids, extra) in objectives {
            let status = ObjectiveStatus::Completed;
            let objective = Objective { id: id.clone(), title, created_at, updated_at: now, status, thread_ids, extra };
            given.objectives.insert(id, objective);
        }
        given.touch(now);
        let text = given.to_json();
        let read = ObjectiveList::from_value(serde_json::from_str(&text).unwrap()).unwrap();
        prop_assert_eq!(read.to_json(), text);
        prop_assert_eq!(read, given);
    }

    #[test]
    fn reading_never_panics(text in "[\\[{\"a:,0\\]}]{0,40}") {
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            let _ = ThreadRelations::from_value(value.clone());
            let _ = ObjectiveList::from_value(value);
        }
    }
}
