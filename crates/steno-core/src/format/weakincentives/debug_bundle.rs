//! Debug bundles: ZIP archives of one request, with its transcript, that later versions write.

use crate::agent::zip_archive;
use crate::durable::FileError;
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::session::{Session, Status};
use steno_vault::{Bundle, Source};

/// The top folder in the archive.
const ROOT: &str = "debug_bundle/";
/// The manifest: describes the archive and its request.
const MANIFEST: &str = "manifest.json";
/// The error of a failed request.
const ERROR: &str = "error.json";
/// Members that may have the transcript, in order of preference.
const TRANSCRIPTS: [&str; 4] =
    ["transcript.jsonl", "session/after.jsonl", "logs/app.jsonl", "session/before.jsonl"];

/// Whether a file is a debug bundle.
pub(super) fn is_debug_bundle(source: &Source) -> bool {
    let is_archive = source.open().ok().is_some_and(|mut input| {
        input.fill_buf().is_ok_and(|start| start.starts_with(zip_archive::MAGIC))
    });
    let manifest = || format!("{ROOT}{MANIFEST}");
    is_archive && zip_archive::names(source).is_some_and(|names| names.contains(&manifest()))
}

/// Returns a bundle of the members to read, instead of the archive.
pub(super) fn unpack(bundle: &Bundle) -> Option<Bundle> {
    let [archive] = bundle.sources.as_slice() else {
        return None;
    };
    if !is_debug_bundle(archive) {
        return None;
    }
    let names = zip_archive::names(archive)?;
    let there = |name: &&&str| names.contains(&format!("{ROOT}{name}"));
    let transcript = TRANSCRIPTS.iter().find(there);
    let members = [MANIFEST, ERROR].iter().filter(there).chain(transcript);
    let members = members.map(|name| zip_archive::member(archive, name, &format!("{ROOT}{name}")));
    Some(Bundle::new(bundle.root.clone(), members.collect()))
}

/// The members with lines of a transcript.
pub(super) fn transcripts(bundle: &Bundle) -> impl Iterator<Item = &Source> {
    bundle.sources.iter().filter(|source| ![MANIFEST, ERROR].contains(&source.name()))
}

/// Adds fields from the manifest and the error to the session.
pub(super) fn describe(
    session: &mut Session,
    bundle: &Bundle,
) -> Result<Option<Problem>, FileError> {
    let manifest = match document(bundle, MANIFEST)? {
        Some(Ok(manifest)) => manifest,
        Some(Err(problem)) => return Ok(Some(problem)),
        None => return Ok(None),
    };
    let request = manifest.get("request").and_then(Value::as_object);
    let text = |field: &str| request?.get(field)?.as_str();
    let time = |field: &str| text(field).and_then(|time| time.parse().ok());
    session.started = time("started_at").or(session.started);
    session.ended = time("ended_at").or(session.ended);
    session.status = match text("status") {
        Some("error" | "failed" | "failure") => Status::Failed,
        _ => Status::Completed,
    };
    for field in ["bundle_id", "prompt", "build"] {
        if let Some(value) = manifest.get(field) {
            session.extra.insert(field.to_owned(), value.clone());
        }
    }
    match document(bundle, ERROR)? {
        Some(Ok(error)) => {
            let message = error.get("message").or(error.get("type")).and_then(Value::as_str);
            session.stop_reason = message.map(str::to_owned);
            session.status = Status::Failed;
            Ok(None)
        }
        Some(Err(problem)) => Ok(Some(problem)),
        None => Ok(None),
    }
}

/// The session id in the manifest.
pub(super) fn session_id(bundle: &Bundle) -> Option<String> {
    let manifest = document(bundle, MANIFEST).ok()??.ok()?;
    let request = manifest.get("request");
    let id = request.and_then(|request| request.get("session_id")).or(manifest.get("bundle_id"));
    id.and_then(Value::as_str).map(str::to_owned)
}

fn document(bundle: &Bundle, name: &str) -> Result<Option<Result<Object, Problem>>, FileError> {
    let Some(source) = bundle.get(name) else {
        return Ok(None);
    };
    let parsed = crate::agent::repair::parse(&source.bytes()?);
    Ok(Some(parsed.map_err(|reason| Problem::of(source.path(), reason))))
}
