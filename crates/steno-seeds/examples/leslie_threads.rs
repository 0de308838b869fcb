//! Threads of leslie: an objective, two threads with assets and a transcript, and a merge into one of them.
//!
//! Run it with `cargo run -p steno-seeds --example leslie_threads`.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;

use steno_model::{Clock, Entry, EntryKind, Role, Session, Transcript};
use steno_seeds::thread::{
    ConflictStrategy, IdSource, LifecycleAction, MergeRequest, Operator, SpawnRequest,
    StatusChange, Thread, ThreadStore,
};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    run_example(folder.path(), &Clock::system(), &mut std::io::stdout())
}

/// Runs the example in the project `folder`.
pub(crate) fn run_example(
    folder: &Path,
    clock: &Clock,
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    let store = ThreadStore::new(folder, clock.clone(), IdSource::random());
    store.init()?;
    let objective = store.create_objective("Build the API")?;
    let spawn = |intent: &str| -> Result<Thread, Box<dyn Error>> {
        Ok(store.spawn_thread(&SpawnRequest::new(intent, objective.id.as_str()))?.thread)
    };
    let (server, client) = (spawn("Write the server")?, spawn("Write the client")?);

    // An agent writes its assets into the folder of its thread.
    for (thread, plan) in [(&server, "1. Routes\n"), (&client, "1. Requests\n")] {
        fs::write(store.thread_folder(&thread.id)?.join("plan.md"), plan)?;
    }
    let (assets, _) = store.assets_and_warnings(server.id.as_str())?;
    for asset in assets.iter().filter(|asset| asset.path.ends_with(".md")) {
        writeln!(out, "{}: {}", server.title, asset.kind.as_str())?;
    }

    let written = store.write_transcript(client.id.as_str(), &new_transcript(clock)?)?;
    for path in &written {
        writeln!(out, "transcript of {} lines", fs::read_to_string(path)?.lines().count())?;
    }

    merge_plans(&store, [&server, &client], out)?;
    let change = StatusChange {
        thread: client.id.to_string(),
        action: LifecycleAction::Done,
        reason: None,
        operator: Operator::User,
    };
    writeln!(out, "{} is {}", client.title, store.change_status(&change)?.status.as_str())?;
    for thread in store.list_threads(None)? {
        writeln!(out, "thread: {} ({})", thread.title, thread.status.as_str())?;
    }
    Ok(())
}

/// Merges both plans into a third thread. A strict merge refuses files that differ; else the last one wins.
fn merge_plans(
    store: &ThreadStore,
    sources: [&Thread; 2],
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    let request = SpawnRequest::new("Release", sources[0].objective.as_str());
    let target = store.spawn_thread(&request)?.thread;
    let strict = MergeRequest {
        sources: sources.map(|thread| thread.id.to_string()).into(),
        target: target.id.to_string(),
        scope: Vec::new(),
        strategy: ConflictStrategy::Strict,
        operator: Operator::User,
    };
    if let Err(error) = store.merge_threads(&strict) {
        writeln!(out, "refused: {error}")?;
    }
    let merge = MergeRequest { strategy: ConflictStrategy::Interactive, ..strict };
    let merged = store.merge_threads(&merge)?;
    let plan = fs::read_to_string(store.thread_folder(&target.id)?.join("plan.md"))?;
    writeln!(out, "merged, conflicts in {:?}, plan: {}", merged.conflicts, plan.trim_end())?;
    Ok(())
}

fn new_transcript(clock: &Clock) -> Result<Transcript, Box<dyn Error>> {
    let mut session = Session::new("chat-1".parse()?, "claude-code");
    session.started = Some(clock.now());
    let mut transcript = Transcript::new(session);
    for (role, text) in [(Role::User, "Write the client"), (Role::Assistant, "It is written.")] {
        let mut entry = Entry::new(role, EntryKind::Text, text);
        entry.created_at = Some(clock.now());
        transcript.push(entry);
    }
    Ok(transcript)
}
