//! Tests of `init` and the block in `AGENTS.md`.

use super::*;

const OLD: &str =
    "mine\n<leslie_system_guide version=\"1.9.0\">\nold\n</leslie_system_guide>\nbelow\n";

#[test]
fn repeated_init_changes_nothing() {
    let project = Project::new();
    fs::write(project.path("AGENTS.md"), "# Mine").unwrap();
    assert_eq!(project.data(&["init"])["status"], "appended");
    let text = project.text("AGENTS.md");
    assert!(
        text.starts_with("# Mine\n\n<leslie_system_guide ") && text.ends_with("guide>\n"),
        "{text}"
    );
    let stamp = |path: &str| fs::metadata(project.path(path)).unwrap().modified().unwrap();
    let files = ["AGENTS.md", ".leslie/thread_relations.json", ".leslie/objectives.json"];
    let before = files.map(stamp);
    for _ in 0..3 {
        let again = project.data(&["init", "--yes"]);
        let expected =
            json!({ "status": "updated", "previous_version": "2.0.0", "next_version": "2.0.0" });
        assert_eq!(again, expected);
    }
    assert_eq!(project.text("AGENTS.md"), text);
    assert_eq!(files.map(stamp), before);
}

#[test]
fn a_major_update_is_asked_about() {
    let project = Project::new();
    fs::write(project.path("AGENTS.md"), OLD).unwrap();
    for input in ["n\n", "", "maybe\n"] {
        let answer = project.call_with(&["init"], input);
        let expected =
            json!({ "status": "skipped", "previous_version": "1.9.0", "next_version": "2.0.0" });
        assert_eq!((answer.code, &answer.envelope["data"]), (0, &expected));
        let question = "Major guide update detected (1.9.0 -> 2.0.0). Continue? [y/N] ";
        assert_eq!(answer.stderr, question);
        assert_eq!(project.text("AGENTS.md"), OLD);
    }
    let answer = project.call_with(&["init"], "Y\n");
    assert_eq!(answer.envelope["data"]["status"], "updated");
    let text = project.text("AGENTS.md");
    assert!(text.starts_with("mine\n<leslie_system_guide version=\"2.0.0\""), "{text}");
    assert!(text.ends_with("</leslie_system_guide>\nbelow\n"), "{text}");
}

#[test]
fn yes_asks_nothing_and_going_back_does() {
    let project = Project::new();
    fs::write(project.path("AGENTS.md"), OLD).unwrap();
    let answer = project.call(&["init", "--yes"]);
    assert_eq!(
        (answer.stderr.as_str(), &answer.envelope["data"]["status"]),
        ("", &json!("updated"))
    );
    fs::write(project.path("AGENTS.md"), OLD.replace("1.9.0", "2.1.0")).unwrap();
    let answer = project.call(&["init"]);
    assert_eq!(answer.envelope["data"]["status"], "skipped");
    assert_eq!(answer.stderr, "Older guide ahead (2.1.0 -> 2.0.0). Continue? [y/N] ");
}

#[test]
fn an_unreadable_version_is_reported_and_left_alone() {
    let project = Project::new();
    let text = OLD.replace("1.9.0", "two");
    fs::write(project.path("AGENTS.md"), &text).unwrap();
    let expected = ("T902".to_owned(), "Invalid Version: two".to_owned());
    assert_eq!(project.error(&["init", "--yes"]), expected);
    assert_eq!(project.text("AGENTS.md"), text);
    fs::remove_file(project.path("AGENTS.md")).unwrap();
    fs::create_dir(project.path("AGENTS.md")).unwrap();
    let (code, message) = project.error(&["init"]);
    assert_eq!(code, "T902");
    assert!(message.starts_with("could not read $HOME/AGENTS.md: "), "{message}");
}
