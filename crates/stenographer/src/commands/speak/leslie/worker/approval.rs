//! Approval requests for a person: as files in a watched run, else on the terminal.

use std::collections::HashSet;
use std::io::{self, BufRead};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};
use steno_model::{SessionId, durable};
use steno_seeds::thread::Thread;

use super::super::response::LeslieFailure;
use super::runtime::{RuntimeFolder, to_failure};
use super::{LeslieContext, policy};

/// Longest wait for an approval; then the request is denied.
const APPROVAL_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Interval between checks for a response file.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of characters shown of a tool's input.
const MAX_INPUT_CHARS: usize = 200;

/// Writes a request file, and waits for the response file.
pub(super) fn request_approval(
    context: &LeslieContext<'_>,
    runtime: &RuntimeFolder,
    thread: &Thread,
    call: &Value,
) -> Result<bool, LeslieFailure> {
    let (id, tool) = (SessionId::new_unique(context.now()).to_string(), policy::tool_name(call));
    let request = json!({
        "request_id": id,
        "thread_id": thread.id,
        "tool_name": tool,
        "input": call["rawInput"],
        "created_at": context.now(),
    });
    let path = runtime.requests_folder().join(format!("{id}.json"));
    durable::write_atomic(&path, format!("{request:#}\n").as_bytes()).map_err(to_failure)?;
    let fields = json!({ "requestId": id, "toolName": tool });
    runtime.append_event(context, thread, "tool_request", fields)?;
    let answer = runtime.responses_folder().join(format!("{id}.json"));
    let started = Instant::now();
    let is_allowed = loop {
        if let Some(is_allowed) = read_approval(&answer) {
            break is_allowed;
        }
        if started.elapsed() > APPROVAL_TIMEOUT {
            break false;
        }
        thread::sleep(POLL_INTERVAL);
    };
    let decision = if is_allowed { "allow" } else { "deny" };
    let decided = json!({ "requestId": id, "decision": decision });
    runtime.append_event(context, thread, "tool_decision", decided)?;
    Ok(is_allowed)
}

/// Reads the response, once it parses.
fn read_approval(path: &Path) -> Option<bool> {
    let answer: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    Some(answer["behavior"] == "allow")
}

/// Asks on the terminal, if there is one. Returns whether it is allowed.
pub(super) fn ask_on_terminal(context: &mut LeslieContext<'_>, question: &str) -> bool {
    if !context.ui.is_interactive() {
        return false;
    }
    context.ui.print_note(format_args!("{question}\nAllow? (y/n)"));
    let mut line = String::new();
    let _ = io::stdin().lock().read_line(&mut line);
    matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

/// Asks the user about the requests in a run's folder. Without a terminal, another watcher of the folder answers.
pub(super) fn answer_requests(
    context: &mut LeslieContext<'_>,
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
        if !context.ui.is_interactive() {
            context.ui.print_note(format_args!(
                "{question}; waiting for a response in {}",
                runtime.responses_folder().join(&name).display()
            ));
            continue;
        }
        let answer = match ask_on_terminal(context, &question) {
            true => json!({ "behavior": "allow", "updatedInput": request["input"] }),
            false => json!({ "behavior": "deny", "message": format!("Denied by user for {tool}") }),
        };
        let path = runtime.responses_folder().join(&name);
        durable::write_atomic(&path, format!("{answer:#}\n").as_bytes()).map_err(to_failure)?;
    }
    Ok(())
}
