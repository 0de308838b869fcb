//! Captures the model calls of a program that makes them itself, and copies them into a weakincentives session.
//!
//! Run it with `cargo run -p steno-store --example capture_model_calls`.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use serde_json::json;
use steno_model::{Clock, Entry};
use steno_seeds::weakincentives::slice::{SliceFactory, SliceFactoryConfig};
use steno_seeds::weakincentives::{SliceSession, format_transcript};
use steno_store::StoreLocation;
use steno_store::model_call_capture::{CaptureSettings, ModelCallCapture, capture_traffic};
use steno_store::transcript::ReadTranscript;
use steno_store::transcript::record_reader::RECORD_DECODER;
use steno_vault::record::RecordingOpening;
use steno_vault::recorder::Recorder;
use uuid::Uuid;

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
    let settings = CaptureSettings { capture_transcript: true, ..CaptureSettings::default() };
    let store = StoreLocation::new(folder.join("store"), clock.clone());
    let dir = store.vault().session_dir(&"my-program".parse()?, &"call-1".parse()?);
    let opening = RecordingOpening::default();
    let recorder = Recorder::open(dir.clone(), &opening, clock.clone(), RECORD_DECODER)?;

    // The request is recorded before it is sent, the response as it arrives.
    let capture = ModelCallCapture::new(&recorder, settings, clock.clone())?;
    let request =
        json!({ "model": "claude-sonnet-4", "messages": [{ "role": "user", "content": "Hello" }] });
    let response = json!({
        "id": "m1", "type": "message", "role": "assistant", "model": "claude-sonnet-4",
        "content": [{ "type": "text", "text": "Hello, how can I help?" }],
        "usage": { "input_tokens": 3, "output_tokens": 7 },
    });
    let mut call = capture.begin_call("/v1/messages", request.to_string().as_bytes())?;
    for chunk in response.to_string().as_bytes().chunks(64) {
        call.append_chunk(200, chunk)?;
    }
    call.finish(None)?;

    // The transcript goes into a LOG slice. Copying it again adds nothing.
    let transcript = dir.read_transcript()?;
    let log = SliceFactory::Jsonl(folder.join("slices"));
    let config = SliceFactoryConfig { log, ..SliceFactoryConfig::default() };
    let mut session = SliceSession::new(Uuid::from_u128(1), clock.clone(), config);
    writeln!(out, "added: {}", capture_traffic(&mut session, settings, &transcript)?)?;
    writeln!(out, "added: {}", capture_traffic(&mut session, settings, &transcript)?)?;
    writeln!(out, "tokens: {}", transcript.session.totals.usage.output)?;
    writeln!(out, "{}", format_transcript(&session.query::<Entry>().read_all()?))?;
    Ok(())
}
