//! The worker of a thread, and recovery after it was killed.

use super::*;
use crate::thread::WorkerState;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::session::{Session, Transcript};

#[test]
fn one_works_at_a_time_and_the_next_knows_of_a_kill() {
    let project = Project::new();
    let thread = project.spawn(&project.objective(), "a");
    let mut first = project.store.begin_work(&thread.id, 11, false).unwrap();
    first.record_progress(|state| state.prompts_planned = 3).unwrap();
    let error = project.store.begin_work(&thread.id, 12, false).unwrap_err();
    assert_eq!(error.code(), "T501");
    let expected = format!("Thread '{}' is busy: process 11 works in it since {NOW}", thread.id);
    assert_eq!(error.to_string(), expected);
    assert_eq!(project.store.worker(&thread.id).unwrap().unwrap().pid, 11);
    assert!(project.store.take_over_killed(&thread.id).unwrap().is_none(), "it is at work");
    // The process is killed.
    drop(first);
    assert_eq!(project.store.worker(&thread.id).unwrap(), None);
    let next = project.store.take_over_killed(&thread.id).unwrap().unwrap();
    let killed = next.killed().unwrap();
    assert_eq!((killed.pid, killed.prompts_planned), (11, 3));
    next.finish().unwrap();
    assert!(project.store.take_over_killed(&thread.id).unwrap().is_none());
    assert!(project.store.begin_work(&thread.id, 13, true).unwrap().killed().is_none());
}

#[test]
fn a_torn_note_still_shows_a_kill() {
    let project = Project::new();
    let thread = project.spawn(&project.objective(), "a");
    let mut worker = project.store.begin_work(&thread.id, 11, false).unwrap();
    worker.record_progress(|state| state.prompts_planned = 1).unwrap();
    drop(worker);
    let path = project.store.thread_folder(&thread.id).unwrap().join(".meta/worker.json");
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let next = project.store.take_over_killed(&thread.id).unwrap().unwrap();
    assert_eq!(next.killed(), Some(&WorkerState::default()));
}

#[test]
fn a_completed_thread_is_opened_again_for_work() {
    let project = Project::new();
    let thread = project.spawn(&project.objective(), "a");
    let id = thread.id.as_str();
    project.store.change_status(&lifecycle(&thread, LifecycleAction::Done)).unwrap();
    let objective = || project.store.objective(thread.objective.as_str()).unwrap().status;
    assert_eq!(objective(), ObjectiveStatus::Completed);
    assert_eq!(
        project.store.activate_thread(id, Operator::User).unwrap().status,
        ThreadStatus::Active
    );
    assert_eq!(objective(), ObjectiveStatus::Active);
    project.store.change_status(&lifecycle(&thread, LifecycleAction::Cancel)).unwrap();
    assert_eq!(project.store.activate_thread(id, Operator::User).unwrap_err().code(), "T102");
}

/// A session with prompts at these seconds.
fn session(seconds: &[u32]) -> Transcript {
    let mut transcript = Transcript::new(Session::new("s".parse().unwrap(), "toy"));
    for second in seconds {
        let mut prompt = Entry::new(Role::User, EntryKind::Text, second.to_string());
        prompt.created_at = format!("2026-01-05T09:00:{second:02}Z").parse().ok();
        transcript.push(prompt);
        transcript.push(Entry::new(Role::Assistant, EntryKind::Text, "ok"));
    }
    transcript
}

#[test]
fn the_units_of_a_worker_are_known_by_time_and_by_number() {
    let since = "2026-01-05T09:00:20Z".parse().ok();
    let left = |since, turns_ended, seconds: &[u32]| {
        let mut transcript = session(seconds);
        let state = WorkerState { since, turns_ended, ..WorkerState::default() };
        state.retain_own_units(&mut transcript);
        let prompts = transcript.entries.into_iter().step_by(2).map(|entry| entry.content);
        prompts.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(left(since, 0, &[10, 20, 30]), "20 30");
    assert_eq!(left(since, 1, &[10, 20, 30]), "20 30");
    assert_eq!(left(since, 0, &[10]), "");
    // The clock was set back while it worked.
    assert_eq!(left(since, 2, &[10, 25, 5]), "25 5");
    assert_eq!(left(since, 2, &[10, 4, 5]), "4 5");
    assert_eq!(left(None, 0, &[10, 20]), "10 20");
}
