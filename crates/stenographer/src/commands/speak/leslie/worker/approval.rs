//! Questions that a person has to answer: as files, where a run is watched, else on the terminal.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steno_core::SessionId;
use steno_core::durable;
use steno_core::thread::Thread;

use super::super::response::LeslieFailure;
use super::runtime::{RuntimeFolder, to_failure};
use super::{LeslieCall, policy};

/// How long an agent waits for an answer.
const APPROVAL_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How often one looks for an answer.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Bytes of what a tool is given that are shown.
const MAX_INPUT_CHARS: usize = 200;

/// Asks by a file, and waits for another one with the answer.
pub(super) fn request_approval(
    desk: &LeslieCall<'_>,
    runtime: &RuntimeFolder,
    thread: &Thread,
    call: &Value,
) -> Result<bool, LeslieFailure> {
    let (id, tool) = (SessionId::fresh().to_string(), policy::tool_name(call));
    let request = json!({
        "request_id": id,
        "thread_id": thread.id,
        "tool_name": tool,
        "input": call["rawInput"],
        "created_at": desk.now(),
    });
    let path = runtime.requests_folder().join(format!("{id}.json"));
    durable::write_atomic(&path, format!("{request:#}\n").as_bytes()).map_err(to_failure)?;
    let asked = json!({ "requestId": id, "toolName": tool });
    runtime.append_event(desk, thread, "tool_request", asked)?;
    let answer = runtime.responses_folder().join(format!("{id}.json"));
    let begun = Instant::now();
    let is_allowed = loop {
        if let Some(is_allowed) = read_approval(&answer) {
            break is_allowed;
        }
        if begun.elapsed() > APPROVAL_TIMEOUT {
            break false;
        }
        thread::sleep(POLL_INTERVAL);
    };
    let decision = if is_allowed { "allow" } else { "deny" };
    let decided = json!({ "requestId": id, "decision": decision });
    runtime.append_event(desk, thread, "tool_decision", decided)?;
    Ok(is_allowed)
}

/// The answer, once it is whole.
fn read_approval(path: &Path) -> Option<bool> {
    let answer: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    Some(answer["behavior"] == "allow")
}

/// Asks a person on the terminal, if there is one; whether it is allowed.
pub(super) fn ask_on_terminal(desk: &mut LeslieCall<'_>, question: &str) -> bool {
    if !desk.ui.is_interactive() {
        return false;
    }
    desk.ui.print_note(format_args!("{question}\nAllow? (y/n)"));
    let mut line = String::new();
    let _ = io::stdin().lock().read_line(&mut line);
    matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

/// Puts the questions that wait in a run's folder to a person. Where there is none, whoever else watches the folder answers.
pub(super) fn answer_requests(
    desk: &mut LeslieCall<'_>,
    runtime: &RuntimeFolder,
    known: &mut HashSet<String>,
) -> Result<(), LeslieFailure> {
    let Ok(requests) = fs::read_dir(runtime.requests_folder()) else { return Ok(()) };
    let mut names: Vec<_> =
        requests.flatten().map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    for name in names.into_iter().filter(|name| name.ends_with(".json")) {
        if !known.insert(name.clone()) {
            continue;
        }
        let bytes = fs::read(runtime.requests_folder().join(&name)).unwrap_or_default();
        let Ok(request) = serde_json::from_slice::<Value>(&bytes) else { continue };
        let (thread, tool) = (&request["thread_id"], &request["tool_name"]);
        let input: String = request["input"].to_string().chars().take(MAX_INPUT_CHARS).collect();
        let question = format!("thread {thread} wants to use {tool}: {input}");
        if !desk.ui.is_interactive() {
            desk.ui.print_note(format_args!(
                "{question}; an answer is awaited in {}",
                runtime.responses_folder().join(&name).display()
            ));
            continue;
        }
        let answer = match ask_on_terminal(desk, &question) {
            true => json!({ "behavior": "allow", "updatedInput": request["input"] }),
            false => json!({ "behavior": "deny", "message": format!("Denied by user for {tool}") }),
        };
        let path = runtime.responses_folder().join(&name);
        durable::write_atomic(&path, format!("{answer:#}\n").as_bytes()).map_err(to_failure)?;
    }
    Ok(())
}
