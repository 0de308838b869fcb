//! Records a running program: each record is on disk when it is acknowledged, and a broken one costs only itself.
//!
//! Run it with `cargo run -p steno-store --example record_a_program`.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use steno_model::{Clock, Entry, EntryKind, Role, SessionStatus};
use steno_store::StoreLocation;
use steno_store::transcript::ReadTranscript;
use steno_store::transcript::record_reader::RECORD_DECODER;
use steno_vault::record::{RecordingClosing, RecordingOpening};
use steno_vault::recorder::Recorder;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    run_example(folder.path(), &Clock::system(), &mut std::io::stdout())
}

/// Runs the example in `folder`.
pub(crate) fn run_example(
    folder: &Path,
    clock: &Clock,
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    let store = StoreLocation::new(folder, clock.clone());
    let dir = store.vault().session_dir(&"my-agent".parse()?, &"run-1".parse()?);
    let opening = RecordingOpening {
        agent: "my-agent".into(),
        project: Some("/home/me/code".into()),
        ..Default::default()
    };
    let recorder = Recorder::open(dir.clone(), &opening, clock.clone(), RECORD_DECODER)?;

    // An entry, a record in a format that Steno knows, and one that nobody can read: all three are kept.
    recorder.record_entry(&Entry::new(Role::User, EntryKind::Text, "Why does the build fail?"))?;
    recorder.record_line(br#"{"role":"assistant","content":"A semicolon is missing."}"#)?;
    let broken = recorder.record_line(br#"{"role":"assist"#)?;
    writeln!(out, "kept, but not readable: {}", broken.entries.is_err())?;

    // `append_line` is not durable before `commit`, so a program can write many records with one sync.
    for number in 1..=3 {
        let text = format!("Attempt {number}");
        let entry = Entry::new(Role::Assistant, EntryKind::Text, text);
        recorder.append_line(&serde_json::to_vec(&entry)?)?;
    }
    recorder.commit()?;
    recorder.close(&RecordingClosing { status: SessionStatus::Completed, reason: None })?;

    let transcript = dir.read_transcript()?;
    for entry in &transcript.entries {
        writeln!(out, "{} {}: {}", entry.sequence, entry.role, entry.content)?;
    }
    writeln!(
        out,
        "problems: {}, status: {}",
        transcript.problems.len(),
        transcript.session.status.as_str()
    )?;
    writeln!(out, "found by search: {}", store.search("semicolon", 10)?.len())?;
    Ok(())
}
