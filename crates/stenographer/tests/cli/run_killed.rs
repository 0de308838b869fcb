//! `steno run` killed at every step: the stores open again and agree, nothing recorded is lost, and the thread can
//! continue.

use std::fs;
use std::process::Stdio;

use steno_model::Clock;
use steno_seeds::thread::{IdSource, ThreadStatus, ThreadStore};

use crate::harness::Home;
use crate::run::{end, home};

/// The message at which the agent kills steno; or seconds after the agent has ended.
const STEPS: [&str; 15] = [
    "initialize",
    "new",
    "prompt",
    "asked",
    "decided",
    "said",
    "stopped",
    "end",
    "0.001",
    "0.005",
    "0.01",
    "0.02",
    "0.03",
    "0.05",
    "0.08",
];

#[test]
fn every_step_of_a_run_can_be_the_last() {
    for step in STEPS {
        let home = home();
        let mut steno =
            home.command(&["run", "--agent", "sh agent.sh", "--permission", "allow", "Look"]);
        steno.env("KILL", step).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        let (thread, status) = only_thread(&home);
        home.steno(&["verify"]).ok();
        let sessions = home.vault().list_sessions().unwrap();
        if !matches!(step, "initialize" | "new") {
            assert_eq!(sessions.len(), 1, "{step}");
            let said = home.steno(&["show", "sess-0001", "--json"]).ok();
            assert!(said.contains("\\n\\nLook\""), "{step}: {said}");
        }
        let mut resumed = home.command(&["resume", &thread, "--permission", "allow", "--json"]);
        resumed.env("LOADS", "true");
        let end = end(&home.finish(resumed, b"").ok());
        assert_eq!(end["status"], "completed", "{step}, after {status}");
        assert_eq!(only_thread(&home), (thread.clone(), ThreadStatus::Completed));
        let folder = home.path().join(".leslie/threads").join(&thread).join(".meta/transcripts");
        let transcripts = fs::read_dir(folder).unwrap().count();
        let is_early = matches!(step, "initialize" | "new");
        assert_eq!(transcripts, if is_early { 1 } else { 2 }, "{step}");
        let sessions = home.vault().list_sessions().unwrap();
        let ids: Vec<_> = sessions.iter().map(|session| session.id().as_str()).collect();
        assert_eq!(ids, ["sess-0001"], "{step}");
        home.steno(&["verify"]).ok();
    }
}

/// Returns the only thread, after checking that both stores agree on it.
fn only_thread(home: &Home) -> (String, ThreadStatus) {
    let store = ThreadStore::new(home.path(), Clock::system(), IdSource::random());
    assert_eq!(store.problems().unwrap(), []);
    let [thread] = store.list_threads(None).unwrap().try_into().unwrap();
    let [objective] = store.list_objectives().unwrap().try_into().unwrap();
    assert_eq!(objective.thread_ids, std::slice::from_ref(&thread.id));
    (thread.id.to_string(), thread.status)
}
