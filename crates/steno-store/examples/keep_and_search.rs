//! Keeps the sessions of a folder, lists and searches them, and reads one back, also as the bytes it was kept from.
//!
//! Run it with `cargo run -p steno-store --example keep_and_search`.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;

use steno_model::Clock;
use steno_store::StoreLocation;
use steno_store::index::ListedSession;
use steno_store::sync::SessionSyncer;
use steno_store::transcript::ReadTranscript;
use steno_store::view::markdown::render_markdown;

/// A session as Claude Code writes it.
const SESSION_FILE: &str = r#"{"type":"user","sessionId":"s1","uuid":"u1","timestamp":"2026-01-05T09:15:32Z","message":{"role":"user","content":"Where is the bug?"}}
{"type":"assistant","sessionId":"s1","uuid":"u2","parentUuid":"u1","timestamp":"2026-01-05T09:15:40Z","message":{"id":"m1","role":"assistant","model":"claude-sonnet-4","content":[{"type":"text","text":"In the parser."}],"usage":{"input_tokens":12,"output_tokens":4}}}
"#;

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
    let sessions = folder.join("projects");
    fs::create_dir(&sessions)?;
    fs::write(sessions.join("s1.jsonl"), SESSION_FILE)?;

    let store = StoreLocation::new(folder.join("store"), clock.clone());
    let mut syncer = SessionSyncer::new(store.clone())?;
    syncer.sync_folder(&sessions)?;
    for (agent, row) in syncer.finish().rows {
        writeln!(out, "{agent}: {} session with {} entries", row.sessions, row.entries)?;
    }
    for ListedSession { session, .. } in store.index().open()?.list_sessions(None, None)? {
        let usage = session.totals.usage;
        writeln!(out, "{}: {} tokens in, {} out", session.id, usage.input, usage.output)?;
    }

    for hit in store.search("parser", 10)? {
        writeln!(out, "entry {} of {}: {}", hit.number, hit.session, hit.text)?;
        let dir = &store.vault().sessions_with_id(hit.session.as_str())?[0];
        write!(out, "{}", render_markdown(&dir.read_transcript()?))?;
        for file in dir.kept_bundle()?.files {
            let is_verbatim = file.read_bytes()? == SESSION_FILE.as_bytes();
            writeln!(out, "{} is kept verbatim: {is_verbatim}", file.name())?;
        }
    }
    Ok(())
}
