//! Writes a chat that continues a session of another agent: a header and one message per line, calls with their results.

use std::path::{Path, PathBuf};

use serde_json::json;
use sha2::{Digest, Sha256};

use super::decode::NON_PROMPT_PREFIXES;
use super::{PROJECT_ROOT_FILE, config_folder};
use crate::agent::continuation::conversation::{
    ContinuedCall, ContinuedItem, ContinuedItemKind, PROMPT_MARK,
};
use crate::agent::continuation::{
    ContinuationError, ContinuationFile, ContinuationFiles, ContinuationRequest, utc_millis,
};
use crate::agent::resume::marked_project_folder;
use crate::protocols::gemini_parts::{function_response, text_parts};
use steno_model::json::Value;
use steno_model::timestamp::Timestamp;

/// Makes the chat, and the file that names its project if Gemini CLI does not know the project yet.
pub(super) fn write_session(
    request: &ContinuationRequest<'_>,
) -> Result<ContinuationFiles, ContinuationError> {
    let id = request.random_session_id();
    let parent = config_folder(request.user).join("tmp");
    let known = marked_project_folder(&parent, request.folder, PROJECT_ROOT_FILE);
    let is_new = known.is_none();
    let folder = known.unwrap_or_else(|| new_project_folder(&parent, request.folder));
    let bytes = write_lines(request, &id);
    let at = request.now.instant().to_string()[..16].replace(':', "-");
    let name = format!("session-{at}-{}.jsonl", &id[..8]);
    let path = folder.join("chats").join(name);
    let mut files = ContinuationFiles::with_session_file(id, path, bytes);
    if is_new {
        let bytes = request.folder.to_string_lossy().into_owned().into_bytes();
        let path = folder.join(PROJECT_ROOT_FILE);
        files.other_files.push(ContinuationFile { path, bytes });
    }
    Ok(files)
}

/// A folder of Gemini CLI's that no project has, named as Gemini CLI would name it.
fn new_project_folder(parent: &Path, project: &Path) -> PathBuf {
    let name = project.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let words: Vec<&str> =
        name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let slug = if words.is_empty() { "project".to_owned() } else { words.join("-") };
    let numbered = (1..).map(|number| format!("{slug}-{number}"));
    let names = std::iter::once(slug.clone()).chain(numbered);
    let mut folders = names.map(|name| parent.join(name));
    folders.find(|folder| !folder.exists()).expect("there are endless names")
}

fn write_lines(request: &ContinuationRequest<'_>, id: &str) -> Vec<u8> {
    let now = utc_millis(request.now);
    let hash = Sha256::digest(request.folder.to_string_lossy().as_bytes());
    let header = json!({
        "sessionId": id, "projectHash": format!("{hash:x}"), "startTime": now, "lastUpdated": now, "kind": "main",
    });
    let mut lines = Vec::new();
    push_line(&mut lines, &header);
    let notice = json!([{"text": request.notice}]);
    push_line(&mut lines, &chat_message(request, 0, request.first_time(), "user", notice));
    for ((number, item), at) in (1..).zip(&request.conversation.items).zip(request.item_times()) {
        push_line(&mut lines, &item_message(request, number, item, at));
    }
    lines
}

fn push_line(lines: &mut Vec<u8>, value: &Value) {
    serde_json::to_writer(&mut *lines, value).expect("a JSON value is written to memory");
    lines.push(b'\n');
}

fn item_message(
    request: &ContinuationRequest<'_>,
    number: usize,
    item: &ContinuedItem,
    at: Timestamp,
) -> Value {
    let mut message = match &item.kind {
        ContinuedItemKind::Prompt(text) => {
            return chat_message(request, number, at, "user", prompt_parts(request, text));
        }
        ContinuedItemKind::Answer(text) => chat_message(request, number, at, "gemini", json!(text)),
        ContinuedItemKind::Call(call) => {
            let mut message = chat_message(request, number, at, "gemini", json!(""));
            message["toolCalls"] = json!([tool_call(request, number, call, at)]);
            message
        }
    };
    if let Some(model) = &item.model {
        message["model"] = json!(model);
    }
    message
}

fn chat_message(
    request: &ContinuationRequest<'_>,
    number: usize,
    at: Timestamp,
    kind: &str,
    content: Value,
) -> Value {
    let id = request.unique_uuid(number);
    json!({"id": id, "timestamp": utc_millis(at), "type": kind, "content": content})
}

/// The parts of a prompt. Gemini CLI does not send a prompt again that begins like a command.
fn prompt_parts(request: &ContinuationRequest<'_>, text: &str) -> Value {
    let mut parts = text_parts(text, request.images);
    if NON_PROMPT_PREFIXES.iter().any(|start| text.trim_start().starts_with(start)) {
        parts.insert(0, json!({"text": PROMPT_MARK}));
    }
    Value::Array(parts)
}

fn tool_call(
    request: &ContinuationRequest<'_>,
    number: usize,
    call: &ContinuedCall,
    at: Timestamp,
) -> Value {
    let id = format!("{}-{}", call.name, request.unique_hex(number, 24));
    json!({
        "id": id,
        "name": call.name,
        "args": call.input,
        "result": function_response(&id, call, request.images),
        "status": if call.is_error { "error" } else { "success" },
        "timestamp": utc_millis(at),
    })
}
