//! What an agent receives that cannot load its session.

use super::*;

#[test]
fn the_second_recovery_includes_the_whole_conversation() {
    let project = Project::new();
    let long = format!("{}the end of a long request", "word ".repeat(2000));
    let first = project.run(&[&long, "please crash"]);
    assert_eq!(first.code, 1);
    let id = project.thread_id();
    let second = project.steno(&["resume", &id, "--json", "two", "again crash"]);
    assert_eq!(second.code, 1);
    project.steno(&["resume", &id, "--json"]).ok();
    let printed = project.heard().pop().unwrap();
    for tag in ["thread_context", "thread_conversation"] {
        assert_eq!(printed.matches(&format!("<{tag}")).count(), 1, "{tag}: {printed}");
        assert_eq!(printed.matches(&format!("</{tag}>")).count(), 1, "{tag}: {printed}");
    }
    let parts = [
        &*format!("user:\n{long}\n"),
        "assistant:\nWell done.\n",
        "user:\nplease crash\n",
        "assistant:\nGoing down.\n",
        "user:\ntwo\n",
        "user:\nagain crash\n",
        "</thread_conversation>\n\nGo on where you stopped.",
    ];
    let mut rest = printed.as_str();
    for part in parts {
        let at =
            rest.find(part).unwrap_or_else(|| panic!("{part} is not in its place:\n{printed}"));
        rest = &rest[at + part.len()..];
    }
    assert_eq!(rest, "");
    assert_eq!(project.transcripts(&id).len(), 5);
}

#[test]
fn an_agent_that_loads_its_session_gets_no_history() {
    let project = Project::new();
    project.run(&["one", "please crash"]);
    let id = project.thread_id();
    let mut resume = project.command(&["resume", &id, "--json"]);
    resume.env("LOADS", "true");
    project.home.finish(resume, b"").ok();
    let printed = project.heard().pop().unwrap();
    assert!(
        printed.starts_with("<thread_context") && !printed.contains("thread_conversation"),
        "{printed}"
    );
    assert!(printed.ends_with("</thread_context>\n\nGo on where you stopped."), "{printed}");
}
