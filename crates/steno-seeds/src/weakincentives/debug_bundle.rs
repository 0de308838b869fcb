//! Debug bundles: ZIP archives of one request, with its transcript, that later versions write.

use steno_agents::decoding::zip_archive;
use steno_model::durable::FileError;
use steno_model::json::{Object, Value};
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionStatus};
use steno_vault::{SessionBundle, SessionFile};

/// The top folder in the archive.
const ROOT_FOLDER: &str = "debug_bundle/";
/// The manifest: describes the archive and its request.
const MANIFEST_FILE: &str = "manifest.json";
/// The error of a failed request.
const ERROR_FILE: &str = "error.json";
/// Members that may have the transcript, in order of preference.
const TRANSCRIPT_MEMBERS: [&str; 4] =
    ["transcript.jsonl", "session/after.jsonl", "logs/app.jsonl", "session/before.jsonl"];

/// Whether a file is a debug bundle.
pub(super) fn is_debug_bundle(source: &SessionFile) -> bool {
    let is_archive = source.open().ok().is_some_and(|mut input| {
        input.fill_buf().is_ok_and(|start| start.starts_with(zip_archive::ZIP_MAGIC))
    });
    let manifest = || format!("{ROOT_FOLDER}{MANIFEST_FILE}");
    is_archive && zip_archive::member_names(source).is_some_and(|names| names.contains(&manifest()))
}

/// Returns a bundle of the members to read, instead of the archive.
pub(super) fn unpack_members(bundle: &SessionBundle) -> Option<SessionBundle> {
    let [archive] = bundle.files.as_slice() else {
        return None;
    };
    if !is_debug_bundle(archive) {
        return None;
    }
    let names = zip_archive::member_names(archive)?;
    let there = |name: &&&str| names.contains(&format!("{ROOT_FOLDER}{name}"));
    let transcript = TRANSCRIPT_MEMBERS.iter().find(there);
    let members = [MANIFEST_FILE, ERROR_FILE].iter().filter(there).chain(transcript);
    let members = members
        .map(|name| zip_archive::member_file(archive, name, &format!("{ROOT_FOLDER}{name}")));
    Some(SessionBundle::new(bundle.root.clone(), members.collect()))
}

/// The members with lines of a transcript.
pub(super) fn transcript_members(bundle: &SessionBundle) -> impl Iterator<Item = &SessionFile> {
    bundle.files.iter().filter(|source| ![MANIFEST_FILE, ERROR_FILE].contains(&source.name()))
}

/// Adds fields from the manifest and the error to the session.
pub(super) fn describe_session(
    session: &mut Session,
    bundle: &SessionBundle,
) -> Result<Option<Problem>, FileError> {
    let manifest = match read_json_member(bundle, MANIFEST_FILE)? {
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
        Some("error" | "failed" | "failure") => SessionStatus::Failed,
        _ => SessionStatus::Completed,
    };
    for field in ["bundle_id", "prompt", "build"] {
        if let Some(value) = manifest.get(field) {
            session.extra.insert(field.to_owned(), value.clone());
        }
    }
    match read_json_member(bundle, ERROR_FILE)? {
        Some(Ok(error)) => {
            let message = error.get("message").or(error.get("type")).and_then(Value::as_str);
            session.stop_reason = message.map(str::to_owned);
            session.status = SessionStatus::Failed;
            Ok(None)
        }
        Some(Err(problem)) => Ok(Some(problem)),
        None => Ok(None),
    }
}

/// The session id in the manifest.
pub(super) fn session_id(bundle: &SessionBundle) -> Option<String> {
    let manifest = read_json_member(bundle, MANIFEST_FILE).ok()??.ok()?;
    let request = manifest.get("request");
    let id = request.and_then(|request| request.get("session_id")).or(manifest.get("bundle_id"));
    id.and_then(Value::as_str).map(str::to_owned)
}

fn read_json_member(
    bundle: &SessionBundle,
    name: &str,
) -> Result<Option<Result<Object, Problem>>, FileError> {
    let Some(source) = bundle.file_named(name) else {
        return Ok(None);
    };
    let parsed = steno_agents::decoding::json_repair::parse_lenient(&source.read_bytes()?);
    Ok(Some(parsed.map_err(|reason| Problem::for_file(source.path(), reason))))
}
