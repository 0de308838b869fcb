//! `transcript`: writes a prompt and its answer to a text file of the thread.

use std::fs;

use serde_json::json;
use steno_model::{Entry, EntryKind, Role, Session, SessionId, Timestamp, Transcript, durable};
use steno_seeds::leslie;

use super::LeslieContext;
use super::response::{LeslieFailure, LeslieResponse, join_causes};

pub(super) fn run(context: &mut LeslieContext<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let thread = context.flags.required_text("thread")?;
    let transcript = build_transcript(context, thread)?;
    let written = context.store.write_transcript(thread, &transcript)?;
    let path =
        written.first().ok_or_else(|| LeslieFailure::without_code("There is nothing to write"))?;
    if fs::read(path).is_ok_and(|text| !text.ends_with(b"\n")) {
        let full = leslie::untruncated_path(path);
        let lines = transcript.entries.iter().map(|entry| format!("{}\n", json!(entry)));
        durable::write_atomic(&full, lines.collect::<String>().as_bytes())
            .map_err(|error| LeslieFailure::without_code(join_causes(&error)))?;
        let (limit, full) = (leslie::MAX_FILE_BYTES, full.display());
        context.ui.warning(format_args!("transcript cut at {limit} bytes; full text in {full}"));
    }
    Ok(LeslieResponse::new(json!({ "transcript_path": path })))
}

fn build_transcript(
    context: &LeslieContext<'_>,
    thread: &str,
) -> Result<Transcript, LeslieFailure> {
    let flags = &context.flags;
    let chat = flags.required_text("chat")?;
    let query = new_entry(Role::User, flags.required_text("query")?, parse_time(context, "start")?);
    let answer =
        new_entry(Role::Assistant, flags.required_text("assistant")?, parse_time(context, "end")?);
    let mut session =
        Session::new(SessionId::for_native(leslie::AGENT_NAME, chat), leslie::AGENT_NAME);
    session.native_id = Some(chat.to_owned());
    session.thread = Some(thread.to_owned());
    let mode = flags.optional_text("mode")?.unwrap_or("agent");
    session.extra.insert(leslie::AGENT_MODE_KEY.to_owned(), mode.into());
    session.stop_reason =
        Some(flags.optional_text("stop_reason")?.unwrap_or("end_turn").to_owned());
    let mut transcript = Transcript::new(session);
    transcript.push(query);
    transcript.push(answer);
    Ok(transcript)
}

fn new_entry(role: Role, text: &str, at: Timestamp) -> Entry {
    Entry { created_at: Some(at), ..Entry::new(role, EntryKind::Text, text) }
}

/// Parses the time in a flag; without it, returns the local time.
fn parse_time(context: &LeslieContext<'_>, name: &str) -> Result<Timestamp, LeslieFailure> {
    let Some(text) = context.flags.optional_text(name)? else {
        return Ok(context.now().to_local_seconds(&context.env.zone));
    };
    let invalid = |_| {
        LeslieFailure::without_code(format!("Invalid value of flag --{name}: not a time: {text}"))
    };
    text.parse().map_err(invalid)
}
