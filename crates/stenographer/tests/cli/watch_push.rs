//! Tests of `steno watch` with remotes that it pushes to.

use std::fs;

use serde_json::json;

use crate::team::{Member, below, content, has, member, place};
use crate::watch::Watch;

const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
const OTHER: &str = "2b4e28ba-2fa1-41d2-883f-0016d3cca427";

/// Adds a line to the settings of the remote.
fn set(member: &Member, line: &str) {
    let path = member.home.path().join("store/config.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{}\n{line}\n", text.trim_end())).unwrap();
}

fn watch(member: &Member) -> Watch {
    let mut command = member.home.command(&["watch", "--json", "--debounce", "50"]);
    command.env("USER", &member.user);
    Watch::of(command)
}

#[test]
fn what_is_kept_is_pushed_in_the_background() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let (ada, bob) = (member("ada", &url), member("bob", &url));
    ada.steno(&["remote", "init", "team"]).ok();
    set(&ada, "every = \"now\"");
    ada.home.file(&place(ID), content(ID, &["apricot"]));
    let running = watch(&ada);
    let pushed = json!({"event": "pushed", "remote": "team", "sessions": 1});
    running.until(|event| *event == pushed);
    assert_eq!(bob.ids(&["list", "--from", "team", "--json"]), [ID]);
    ada.home.file(&place(OTHER), content(OTHER, &["plum"]));
    running.until(|event| *event == pushed);
    assert_eq!(bob.ids(&["list", "--from", "team", "--json"]), [ID, OTHER]);
    assert_eq!(running.stop().1, "");
}

#[test]
fn a_note_alone_is_pushed_and_so_is_a_removal() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let (ada, bob) = (member("ada", &url), member("bob", &url));
    ada.steno(&["remote", "init", "team"]).ok();
    set(&ada, "every = \"now\"");
    for (id, word) in [(ID, "apricot"), (OTHER, "plum")] {
        ada.home.file(&place(id), content(id, &[word]));
    }
    let running = watch(&ada);
    let pushed = |sessions: u64| json!({"event": "pushed", "remote": "team", "sessions": sessions});
    running.until(|event| *event == pushed(2));
    ada.steno(&["annotate", ID, "ask again #later"]).ok();
    running.until(|event| *event == pushed(1));
    assert!(has(&below(shared.path()), "ask again"));
    // A private session is removed from the remote, and a forgotten one.
    let removed = json!({"event": "pushed", "remote": "team", "sessions": 0, "removed": 1});
    ada.steno(&["annotate", ID, "mine #private"]).ok();
    running.until(|event| *event == removed);
    assert_eq!(bob.ids(&["list", "--from", "team", "--json"]), [OTHER]);
    ada.steno(&["forget", OTHER, "--yes"]).ok();
    running.until(|event| *event == removed);
    assert_eq!(bob.ids(&["list", "--from", "team", "--json"]), [""; 0]);
    assert_eq!(running.stop().1, "");
}

#[test]
fn a_remote_that_fails_is_reported_once_and_the_watch_goes_on() {
    let shared = tempfile::tempdir().unwrap();
    // Nobody has initialised it.
    let ada = member("ada", &format!("file://{}", shared.path().join("none").display()));
    set(&ada, "every = \"now\"");
    ada.home.file(&place(ID), content(ID, &["apricot"]));
    let running = watch(&ada);
    for at in 0..3 {
        let id = format!("{at}c4e28ba-2fa1-41d2-883f-0016d3cca427");
        ada.home.file(&place(&id), content(&id, &["plum"]));
        running.until(|event| event["event"] == "kept" && event["session"] == id.as_str());
    }
    let messages = running.stop().1;
    assert!(messages.matches("could not push to team").count() == 1, "{messages}");
    assert_eq!(ada.ids(&["list", "--json"]).len(), 4);
}

#[test]
fn a_wrong_interval_is_an_error() {
    let ada = member("ada", "file:///nowhere");
    set(&ada, "every = \"sometimes\"");
    let refused = ada.steno(&["watch"]);
    let expected = "every is not a time such as now, 30s, 10m or 1h: sometimes";
    assert!(refused.code == 1 && refused.stderr.contains(expected), "{refused}");
}
