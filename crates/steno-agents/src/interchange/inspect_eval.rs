//! Inspect: evaluation logs, as ZIP archives (`.eval`) or as one JSON document.
//!
//! Each sample of a log is a session, named `<id>_epoch_<n>`. Entries come from its messages. Its events only supply
//! the times.

mod attachments;
mod log;
mod message;
mod sample;

use self::log::HEADER_MEMBER;
use self::sample::EvalSample;
use crate::agent::Agent;
use crate::decoding::document;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{as_count, owned_text};
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::Usage;
use steno_model::json::Value;
use steno_model::session::{Session, SessionId, SessionStatus};
use steno_vault::SessionBundle;

/// The agent's name.
pub const AGENT_NAME: &str = "inspect";

/// Finds and reads samples.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about Inspect.
pub(crate) const AGENT: Agent = Agent::new("Inspect logs", &READER);

/// Fields of a sample kept in the session's extra fields.
const EXTRA_FIELDS: [&str; 5] = ["id", "epoch", "target", "scores", "limit"];

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        bundles.extend(log::find_samples(file)?);
    }
    Ok(bundles)
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let bundle = &log::extract_sample(bundle)?;
    let source = document::only_file(bundle)?;
    let sample = EvalSample::read(source)?.map_err(FormatError::Invalid)?;
    let uuid = owned_text(&sample.fields["uuid"]);
    let native_id = uuid.unwrap_or_else(|| source.path().display().to_string());
    let mut output = EntryEmitter::new(AGENT_NAME, &native_id, emit);
    sample.emit_entries(&mut output)?;
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, &native_id), AGENT_NAME);
    session.native_id = Some(native_id);
    describe_sample(&mut session, &sample.fields);
    // An unreadable header is ignored, because the sample itself has most of the facts.
    session.thread = bundle
        .file_named(HEADER_MEMBER)
        .and_then(|header| log::read_task_name(header).ok().flatten());
    Ok(session)
}

/// Fills in the facts that a sample states.
fn describe_sample(session: &mut Session, sample: &Value) {
    let time = |value: &Value| value.as_str().and_then(|time| time.parse().ok());
    session.started = time(&sample["started_at"]);
    session.ended = time(&sample["completed_at"]);
    if let Some(reason) = owned_text(&sample["error"]["message"]) {
        session.status = SessionStatus::Failed;
        session.stop_reason = Some(reason);
    } else {
        session.stop_reason = owned_text(&sample["output"]["choices"][0]["stop_reason"]);
    }
    if let Some(billed) = sample["model_usage"].as_object() {
        billed.values().for_each(|counts| session.totals.usage.add(&sample_usage(counts)));
        session.models.extend(billed.keys().cloned());
    }
    for key in EXTRA_FIELDS {
        if let Some(value) = sample.get(key).filter(|value| !value.is_null()) {
            session.extra.insert(key.to_owned(), value.clone());
        }
    }
}

/// Parses usage. For some vendors the input includes cached tokens, which the stated total reveals.
fn sample_usage(counts: &Value) -> Usage {
    let cache_read = as_count(&counts["input_tokens_cache_read"]);
    let cache_write = as_count(&counts["input_tokens_cache_write"]);
    let (input, output) = (as_count(&counts["input_tokens"]), as_count(&counts["output_tokens"]));
    let is_included = input.saturating_add(output) == as_count(&counts["total_tokens"]);
    let cached = if is_included { cache_read.saturating_add(cache_write) } else { 0 };
    Usage {
        input: input.saturating_sub(cached),
        cache_read,
        cache_write,
        output,
        reasoning: as_count(&counts["reasoning_tokens"]),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests;
