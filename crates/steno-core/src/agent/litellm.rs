//! LiteLLM: calls logged by its proxy, as `StandardLoggingPayload` or as rows of its spend table.
//!
//! A file is a list of calls, or has one call per line. Calls with the same session or trace id are one conversation.

mod call;

use std::collections::HashSet;
use std::io::{BufRead, Read};

use crate::agent::api_log::Conversation;
use crate::agent::json_lines::JsonLines;
use crate::agent::listing::Listing;
use crate::agent::{document, json_lines, repair};
use crate::durable::FileError;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Item, Reader};
use crate::json::{Object, Value, bounds};
use crate::problem::Problem;
use crate::session::Session;
use call::Call;
use steno_vault::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "litellm";

/// Finds and reads its logs.
pub const READER: Reader = Reader { agent: AGENT, find, read };

/// Bytes to search before a file is taken for another format.
const HEAD: u64 = 1 << 20;

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        let bundle = Bundle::file(file);
        bundles.extend(conversations(bundle)?);
    }
    Ok(bundles)
}

/// One bundle for each conversation in a file; no key where there is only one.
pub(crate) fn conversations(bundle: Bundle) -> Result<Vec<Bundle>, FileError> {
    if !may_be_log(&bundle.sources[0]) {
        return Ok(Vec::new());
    }
    let (mut keys, mut seen) = (Vec::new(), HashSet::new());
    for_each_call(&bundle.sources[0], &mut |call| {
        let key = call.map(|call| call.conversation().to_owned());
        keys.extend(key.ok().filter(|key| seen.insert(key.clone())));
    })?;
    if keys.len() < 2 {
        return Ok(keys.into_iter().map(|_| bundle.clone()).collect());
    }
    let keyed = keys.into_iter().map(|key| Bundle { key: Some(key), ..bundle.clone() });
    Ok(keyed.collect())
}

fn may_be_log(source: &Source) -> bool {
    let Ok(mut input) = source.open() else {
        return false;
    };
    let opens = |start: &[u8]| start.starts_with(b"{") || start.starts_with(b"[");
    if !input.fill_buf().is_ok_and(|start| opens(start.trim_ascii_start())) {
        return false;
    }
    let mut head = Vec::new();
    let read = input.take(HEAD).read_to_end(&mut head);
    read.is_ok() && memchr::memmem::find(&head, b"\"call_type\"").is_some()
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let source = document::only_source(bundle)?;
    let mut conversation: Option<Conversation> = None;
    let mut emitted_ids = HashSet::new();
    let is_own = |call: &Call| bundle.key.as_deref().is_none_or(|key| key == call.conversation());
    // A rotated log continues the one before it. A rewritten log may repeat calls.
    for earlier in &bundle.earlier {
        let mut ids = Vec::new();
        for_each_call(earlier, &mut |call| {
            let Ok(call) = call else { return };
            if is_own(&call) && !emitted_ids.contains(call.id()) {
                ids.push(call.id().to_owned());
                call.tell(conversation.get_or_insert_with(|| begin(&call)), &mut *emit);
            }
        })?;
        emitted_ids.extend(ids);
    }
    for_each_call(source, &mut |call| match call {
        Ok(call) if is_own(&call) && !emitted_ids.contains(call.id()) => {
            call.tell(conversation.get_or_insert_with(|| begin(&call)), &mut *emit);
        }
        Ok(_) => {}
        Err(problem) => emit(Item::Problem(problem)),
    })?;
    match conversation {
        Some(conversation) => Ok(conversation.finish()),
        None => Err(FormatError::Invalid(Problem::of(&bundle.root, "no LiteLLM calls"))),
    }
}

fn begin(first: &Call) -> Conversation {
    let name = match first.conversation() {
        "" => first.id(),
        name => name,
    };
    let mut conversation = Conversation::new(AGENT, name);
    conversation.session().native_id = Some(name.to_owned());
    conversation
}

/// Passes each call of a file to `take`, or a problem if it cannot be read.
fn for_each_call(
    source: &Source,
    take: &mut dyn FnMut(Result<Call, Problem>),
) -> Result<(), FileError> {
    match form(source)? {
        Form::Lines => {}
        Form::List => return each_of_list(source, take),
        Form::Document => {
            match repair::parse::<Value>(&source.bytes()?) {
                Ok(call) => Call::new(call).into_iter().for_each(|call| take(Ok(call))),
                Err(reason) => take(Err(Problem::of(source.path(), reason))),
            }
            return Ok(());
        }
    }
    for line in JsonLines::of(source)? {
        let parsed = line.and_then(|line| {
            json_lines::object(&line.bytes)
                .map_err(|reason| Problem::at(source.path(), line.number, reason))
        });
        if let Some(call) = parsed.map(|object| Call::new(object.into())).transpose() {
            take(call);
        }
    }
    Ok(())
}

/// Passes each call of a single-list file to `take`.
fn each_of_list(
    source: &Source,
    take: &mut dyn FnMut(Result<Call, Problem>),
) -> Result<(), FileError> {
    match Listing::of(source, &[])? {
        Ok(listing) => listing.each(|call| match call {
            Ok(call) => Call::new(call).into_iter().for_each(|call| take(Ok(call))),
            Err(reason) => take(Err(Problem::of(source.path(), reason))),
        }),
        Err(problem) => {
            take(Err(problem));
            Ok(())
        }
    }
}

/// How a file stores its calls.
enum Form {
    /// One call per line.
    Lines,
    /// A list of calls.
    List,
    /// One call, over several lines.
    Document,
}

fn form(source: &Source) -> Result<Form, FileError> {
    let first = JsonLines::of(source)?.flatten().next();
    let first = first.map(|line| line.bytes).unwrap_or_default();
    let is_call = bounds::from_slice::<Object>(&first).is_ok();
    Ok(match first.trim_ascii() {
        _ if is_call => Form::Lines,
        b"{" => Form::Document,
        first if first.starts_with(b"[") => Form::List,
        _ => Form::Lines,
    })
}

#[cfg(test)]
mod tests;
