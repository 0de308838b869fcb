//! A weakincentives session: events of an adapter become a transcript, a plan is a STATE slice, and a snapshot restores
//! the plan but never the transcript.
//!
//! Run it with `cargo run -p steno-seeds --example weakincentives_sessions`.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use serde_json::json;
use steno_model::json::Object;
use steno_model::{Clock, Entry, Role};
use steno_seeds::weakincentives::capture::{CaptureSettings, capture_events};
use steno_seeds::weakincentives::events::{
    PromptExecuted, PromptMessage, PromptRendered, ToolInvoked,
};
use steno_seeds::weakincentives::reducers::upsert_by;
use steno_seeds::weakincentives::slice::{
    SliceFactory, SliceFactoryConfig, SliceItem, SlicePolicy,
};
use steno_seeds::weakincentives::snapshot::SessionSnapshot;
use steno_seeds::weakincentives::{SliceSession, TRANSCRIPT_FILE, format_transcript};
use uuid::Uuid;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    run_example(folder.path(), &Clock::system(), &mut std::io::stdout())
}

/// A step of the plan, one per name.
#[derive(Clone, Debug, PartialEq)]
struct PlanStep {
    name: String,
    is_done: bool,
}

impl SliceItem for PlanStep {
    const TYPE_ID: &'static str = "example:PlanStep";

    fn to_json(&self) -> Object {
        let object = json!({ "name": self.name, "is_done": self.is_done });
        object.as_object().cloned().unwrap_or_default()
    }

    fn from_json(object: Object) -> Result<Self, serde_json::Error> {
        let invalid = || serde::de::Error::custom("not a step");
        let name = object.get("name").and_then(|name| name.as_str()).ok_or_else(invalid)?;
        let is_done = object.get("is_done").and_then(|done| done.as_bool()).ok_or_else(invalid)?;
        Ok(Self { name: name.to_owned(), is_done })
    }
}

/// Runs the example in `folder`.
pub(crate) fn run_example(
    folder: &Path,
    clock: &Clock,
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    // LOG slices are files; STATE slices are in memory.
    let config = SliceFactoryConfig {
        state: SliceFactory::Memory,
        log: SliceFactory::Jsonl(folder.to_owned()),
    };
    let mut session = SliceSession::new(Uuid::from_u128(1), clock.clone(), config);

    // Capture is opt-in. It turns the events of an adapter into entries.
    let settings = CaptureSettings { capture_transcript: true, ..CaptureSettings::default() };
    capture_events(&mut session, settings)?;
    session.register_reducer(SlicePolicy::State, upsert_by(|step: &PlanStep| step.name.clone()))?;

    dispatch_conversation(&mut session)?;
    session.dispatch(PlanStep { name: "read".to_owned(), is_done: false })?;
    let snapshot = session.snapshot(false)?.to_json();
    session.dispatch(PlanStep { name: "read".to_owned(), is_done: true })?;
    writeln!(out, "plan: {:?}", session.query::<PlanStep>().read_all()?)?;

    session.restore(&SessionSnapshot::from_json(&snapshot)?)?;
    writeln!(out, "plan after a restore: {:?}", session.query::<PlanStep>().read_all()?)?;
    let answers = session.query::<Entry>().filter_items(|entry| entry.role == Role::Assistant)?;
    writeln!(
        out,
        "entries: {}, of the assistant: {}",
        session.query::<Entry>().len()?,
        answers.len()
    )?;
    if let Err(error) = session.clear::<Entry>() {
        writeln!(out, "refused: {error}")?;
    }

    let lines = std::fs::read_to_string(folder.join(TRANSCRIPT_FILE))?;
    writeln!(out, "lines in {TRANSCRIPT_FILE}: {}", lines.lines().count())?;
    writeln!(out, "{}", format_transcript(&session.query::<Entry>().read_all()?))?;
    Ok(())
}

/// Dispatches what an adapter does: it sends a prompt, the model calls a tool, and then answers.
fn dispatch_conversation(session: &mut SliceSession) -> Result<(), Box<dyn Error>> {
    let created_at = session.clock().now();
    let (prompt_name, adapter) = ("review".to_owned(), "openai".to_owned());
    let message = |role: &str, content: &str| PromptMessage {
        role: role.to_owned(),
        content: Some(content.to_owned()),
    };
    session.dispatch(PromptRendered {
        prompt_name: prompt_name.clone(),
        adapter: adapter.clone(),
        messages: vec![
            message("system", "You are a helpful coding assistant."),
            message("user", "Please review src/main.py"),
        ],
        created_at,
    })?;
    session.dispatch(ToolInvoked {
        prompt_name: prompt_name.clone(),
        adapter: adapter.clone(),
        text: Some("Let me read the file first.".to_owned()),
        name: Some("Read".to_owned()),
        arguments: Some(r#"{"path":"src/main.py"}"#.to_owned()),
        call_id: Some("call_1".to_owned()),
        output: "print('hello')".to_owned(),
        success: true,
        created_at,
    })?;
    session.dispatch(PromptExecuted {
        prompt_name,
        adapter,
        text: Some("It prints a greeting.".to_owned()),
        has_structured_output: false,
        usage: None,
        created_at,
    })?;
    Ok(())
}
