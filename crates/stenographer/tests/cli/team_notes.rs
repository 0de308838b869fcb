//! Notes travel with their session: to all who may see it, without secrets, until they are removed or the session is.

use serde_json::{Value, json};

use crate::postgres_server::PostgresServer;
use crate::team::{ID, Member, RemoteSetup, below, content, has, member, secret};

/// The texts of the notes that a member sees on the remote.
fn notes(member: &Member) -> Vec<String> {
    let exported = member.steno(&["export", ID, "--from", "team", "--format", "json"]).ok();
    let exported: Value = serde_json::from_str(&exported).unwrap();
    let notes = exported["notes"].as_array().into_iter().flatten();
    let mut texts: Vec<String> =
        notes.map(|note| note["text"].as_str().unwrap().to_owned()).collect();
    texts.sort();
    texts
}

fn add_note(member: &Member, place: &str, text: &str) -> String {
    member.steno(&["annotate", place, text]).ok().trim().to_owned()
}

/// Two machines of ada, and bob, who reads.
fn check_notes(desktop: &Member, laptop: &Member, bob: &Member, remote: &dyn Fn() -> Vec<u8>) {
    for machine in [desktop, laptop] {
        machine.work(ID, &content(ID, &["apricot"]));
    }
    let first = add_note(desktop, ID, "ask again #later");
    add_note(desktop, &format!("{ID}:0"), &format!("uses {} here", secret()));
    desktop.push();
    assert_eq!(desktop.push()["sessions"], 0);
    let seen = notes(bob);
    assert!(seen.len() == 2 && seen[0] == "ask again #later", "{seen:?}");
    assert!(seen[1].starts_with("uses ") && seen[1].ends_with(" here"), "{seen:?}");
    assert!(!has(&remote(), &secret()) && !has(&below(bob.home.path()), &secret()));
    // The entry is the same one there.
    let shown = bob.steno(&["show", ID, "--from", "team", "--json"]).ok();
    let first_entry: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    assert_eq!(first_entry["notes"][0]["text"], seen[1], "{shown}");

    // Each machine adds its own notes and keeps those of the other.
    add_note(laptop, ID, "from the laptop");
    for _ in 0..2 {
        laptop.push();
        desktop.push();
    }
    assert_eq!(
        (laptop.push()["sessions"].clone(), desktop.push()["sessions"].clone()),
        (json!(0), json!(0))
    );
    assert_eq!(notes(bob).len(), 3);
    assert_eq!(desktop.steno(&["annotate", ID, "--json"]).ok().lines().count(), 2, "its own");

    // A removed note is nowhere, and stays removed.
    desktop.steno(&["annotate", ID, "--remove", &first]).ok();
    desktop.push();
    laptop.push();
    assert_eq!(notes(bob).len(), 2);
    assert!(!has(&remote(), "ask again") && !has(&below(bob.home.path()), "ask again"));

    desktop.steno(&["forget", ID, "--yes"]).ok();
    desktop.push();
    bob.pull();
    for text in ["from the laptop", "uses "] {
        assert!(!has(&remote(), text), "{text} on the remote");
        assert!(!has(&below(&bob.home.path().join("store/remotes")), text), "{text} in the mirror");
    }
}

#[test]
fn notes_travel_by_a_shared_folder() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let (desktop, laptop, bob) = (member("ada", &url), member("ada", &url), member("bob", &url));
    desktop.steno(&["remote", "init", "team"]).ok();
    check_notes(&desktop, &laptop, &bob, &|| below(shared.path()));
}

#[test]
fn notes_travel_by_a_database() {
    let Some(server) = PostgresServer::start() else { return };
    member("postgres", &server.url("postgres")).steno(&["remote", "init", "team"]).ok();
    for person in ["ada", "bob"] {
        server.add_member(person, "shop");
    }
    let of = |person: &str| member(person, &server.url(person));
    check_notes(&of("ada"), &of("ada"), &of("bob"), &|| server.dump());
}

#[test]
fn notes_of_private_sessions_are_shown_to_nobody_else() {
    let Some(server) = PostgresServer::start() else { return };
    member("postgres", &server.url("postgres")).steno(&["remote", "init", "team"]).ok();
    for person in ["ada", "bob"] {
        server.add_member(person, "shop");
    }
    let (arguments, variables) = (vec!["--visibility".into(), "private".into()], Vec::new());
    let setup = RemoteSetup { url: server.url("ada"), arguments, variables };
    let (ada, bob) = (Member::with_setup("ada", setup), member("bob", &server.url("bob")));
    ada.work(ID, &content(ID, &["apricot"]));
    add_note(&ada, ID, "for myself");
    ada.push();
    assert_eq!(notes(&ada), ["for myself"]);
    bob.pull();
    assert!(!has(&below(bob.home.path()), "for myself"));
}

#[test]
fn notes_stay_here_if_the_remote_says_so() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let ada = member("ada", &url);
    ada.steno(&["remote", "init", "team"]).ok();
    ada.work(ID, &content(ID, &["apricot"]));
    add_note(&ada, ID, "for myself");
    ada.push();
    assert!(has(&below(shared.path()), "for myself"));
    ada.steno(&["remote", "remove", "team"]).ok();
    ada.steno(&["remote", "add", "team", &url, "--no-notes"]).ok();
    assert_eq!(ada.push()["sessions"], 1, "those that were pushed are removed");
    assert!(!has(&below(shared.path()), "for myself"));
    assert_eq!(ada.push()["sessions"], 0);
}
