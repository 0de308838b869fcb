//! A chibi context: a message from another context, a conversation with a tool, a compaction, and the lock.
//!
//! Run it with `cargo run -p steno-seeds --example chibi_context`.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::Path;

use steno_model::{Clock, Entry, EntryKind, Role};
use steno_seeds::chibi::{
    ChibiContext, ChibiLogStyle, ContextError, READER, context_lock_status, read_context,
    render_log,
};

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
    let dir = folder.join("contexts/research");
    let context = ChibiContext::open(&dir, clock.clone())?;
    context.push_message("main", "Please look up quantum computing basics")?;
    writeln!(out, "waiting messages: {}", context.waiting_messages()?.len())?;

    // The prompt takes the inbox with it. Each entry is on disk when `append` returns.
    context.append_prompt(Entry::new(Role::User, EntryKind::Text, "Start with the inbox"))?;
    context.append(new_tool_entry(EntryKind::ToolCall, r#"{"query":"qubit"}"#))?;
    context.append(new_tool_entry(EntryKind::ToolResult, "A qubit is a two-state system."))?;
    context.append(Entry::new(Role::Assistant, EntryKind::Text, "A qubit has two states."))?;
    writeln!(out, "waiting messages: {}", context.waiting_messages()?.len())?;
    let (lines, problems) = context.read_lines()?;
    writeln!(out, "{} lines, {} problems", lines.len(), problems.len())?;
    write!(out, "{}", render_log(&lines, ChibiLogStyle::Documented, false))?;

    // A compaction moves old lines to the archive and never separates a tool call from its result.
    let moved = context.compact_entries("main asked what a qubit is", 2)?;
    writeln!(out, "archived lines: {moved}, active lines: {}", context.read_lines()?.0.len())?;
    for bundle in READER.find_at(&dir)? {
        writeln!(out, "entries of the session: {}", read_context(&bundle)?.entries.len())?;
    }

    // chibi holds `.lock` while it works and renews the time in it. A fresh one is respected.
    fs::write(dir.join(".lock"), clock.now().unix_seconds().to_string())?;
    writeln!(out, "lock: {:?}", context_lock_status(&dir, clock))?;
    match context.append(Entry::new(Role::User, EntryKind::Text, "More")) {
        Err(ContextError::Locked(_)) => writeln!(out, "refused: chibi is writing")?,
        other => drop(other?),
    }
    fs::remove_file(dir.join(".lock"))?;
    context.append(Entry::new(Role::User, EntryKind::Text, "More"))?;
    writeln!(out, "active lines: {}", context.read_lines()?.0.len())?;
    Ok(())
}

fn new_tool_entry(kind: EntryKind, content: &str) -> Entry {
    let mut entry = Entry::new(Role::Assistant, kind, content);
    entry.tool_name = Some("web_search".to_owned());
    entry
}
