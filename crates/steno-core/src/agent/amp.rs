//! Reads Amp's threads: one JSON document each, with the usage of each answer and sometimes a ledger of all calls.
//!
//! Usage comes from the answers. The ledger is used only for answers without usage.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use super::fields;
use super::head::Head;
use super::listing::Listing;
use super::record::{self, blocks};
use super::telling::Telling;
use crate::durable::FileError;
use crate::entry::{Entry, Kind, Role, Usage};
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::session::Session;
use crate::timestamp::Timestamp;
use steno_vault::Bundle;

/// The agent's name.
pub const AGENT: &str = "amp";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    record::candidates(tree, recognises)
}

/// Whether a file starts as a thread does.
pub(crate) fn recognises(head: &Head) -> bool {
    let fields = head.fields();
    let has_thread_id = fields::text(&fields, "id").is_some_and(|id| id.starts_with("T-"));
    has_thread_id && fields.contains_key("v") && fields.contains_key("created")
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let Some(source) = bundle.sources.first() else {
        return Err(FormatError::Invalid(Problem::of(&bundle.root, "no file in it")));
    };
    let mut listing = match Listing::of(source, &["messages"])? {
        Ok(listing) => listing,
        Err(problem) => {
            let mut emitter = Telling::new(AGENT, record::stem(source), emit);
            emitter.problem(problem);
            return Ok(emitter.session);
        }
    };
    let thread = std::mem::take(&mut listing.fields);
    let id = fields::text(&thread, "id").unwrap_or(record::stem(source));
    let mut emitter = Telling::new(AGENT, id, emit);
    describe(&mut emitter, &thread);
    let ledger = Ledger::of(&thread);
    ledger.times.iter().for_each(|at| emitter.time(Some(*at)));
    let mut number = 0;
    listing.each(|message| {
        number += 1;
        let reason = match message {
            Ok(Value::Object(message)) => return tell(&mut emitter, &message, &ledger),
            Ok(_) => "not a JSON object".to_owned(),
            Err(reason) => reason,
        };
        emitter.problem(Problem::of(source.path(), format!("message {number}: {reason}")));
    })?;
    Ok(emitter.session)
}

/// Fills in the session from the thread's metadata.
fn describe(emitter: &mut Telling<'_>, thread: &Object) {
    emitter.time(fields::time(thread, "created"));
    let session = &mut emitter.session;
    session.title = fields::text(thread, "title").map(str::to_owned);
    let initial = fields::object(thread, "env").and_then(|env| fields::object(env, "initial"));
    let trees = initial.map_or(&[][..], |initial| fields::list(initial, "trees"));
    let Some(tree) = trees.first().and_then(Value::as_object) else { return };
    let folder = fields::text(tree, "uri");
    session.project = folder.map(|uri| uri.strip_prefix("file://").unwrap_or(uri).to_owned());
    let branch = fields::object(tree, "repository").and_then(|it| fields::text(it, "ref"));
    session.branch = branch.map(|name| name.strip_prefix("refs/heads/").unwrap_or(name).to_owned());
}

fn tell(emitter: &mut Telling<'_>, message: &Object, ledger: &Ledger<'_>) {
    let id = message.get("messageId").map(record::said);
    let role = Role::from(fields::text(message, "role").unwrap_or("user"));
    let mut entries = blocks::entries(message, &role);
    let mut at = fields::object(message, "meta").and_then(|meta| fields::time(meta, "sentAt"));
    emitter.time(at);
    if role == Role::Assistant {
        if entries.is_empty() {
            entries.push(Entry::new(Role::Assistant, Kind::Text, ""));
        }
        let call = ledger.call(id.as_deref());
        let own = fields::object(message, "usage");
        let model = [own, call].into_iter().flatten().find_map(|it| fields::text(it, "model"));
        at = [own, call].into_iter().flatten().find_map(|it| fields::time(it, "timestamp"));
        entries.iter_mut().for_each(|entry| entry.model = model.map(str::to_owned));
        entries[0].usage = match own {
            Some(tokens) => Some(usage(tokens)),
            None => call.map(ledger_usage),
        };
    }
    for mut entry in entries {
        entry.created_at = at;
        entry.message_id.clone_from(&id);
        emitter.entry(entry);
    }
}

/// The model calls in the ledger, by the id of the message that each produced.
struct Ledger<'a> {
    calls: HashMap<String, &'a Object>,
    /// The times of all calls. Answers may have no times.
    times: Vec<Timestamp>,
}

impl<'a> Ledger<'a> {
    fn of(thread: &'a Object) -> Self {
        let events = fields::object(thread, "usageLedger");
        let events = events.map_or(&[][..], |ledger| fields::list(ledger, "events"));
        let times = events.iter().filter_map(|event| fields::time(event.as_object()?, "timestamp"));
        let times = times.collect();
        let calls = events.iter().filter_map(|event| {
            let event = event.as_object()?;
            let is_inference = fields::text(event, "operationType") == Some("inference");
            is_inference.then(|| Some((record::said(event.get("toMessageId")?), event)))?
        });
        Self { calls: calls.collect(), times }
    }

    fn call(&self, message_id: Option<&str>) -> Option<&'a Object> {
        self.calls.get(message_id?).copied()
    }
}

fn usage(tokens: &Object) -> Usage {
    let count = |field| fields::count(tokens, field);
    Usage {
        input: count("inputTokens"),
        cache_read: count("cacheReadInputTokens"),
        cache_write: count("cacheCreationInputTokens"),
        output: count("outputTokens"),
        ..Usage::default()
    }
}

/// Parses the usage of a ledger event, which counts neither cache reads nor cache writes.
fn ledger_usage(event: &Object) -> Usage {
    let count = |field| fields::object(event, "tokens").map_or(0, |it| fields::count(it, field));
    Usage { input: count("input"), output: count("output"), ..Usage::default() }
}
