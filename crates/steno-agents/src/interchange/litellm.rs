//! LiteLLM: calls logged by its proxy, as `StandardLoggingPayload` or as rows of its spend table.
//!
//! A file is a list of calls, or has one call per line. Calls with the same session or trace id are one conversation.

mod call;

use std::collections::HashSet;
use std::io::{BufRead, Read};

use crate::agent::Agent;
use crate::agent::record_format::RecordFormat;
use crate::decoding::json_lines::{self, JsonLines};
use crate::decoding::record_list::RecordList;
use crate::decoding::{document, json_repair};
use crate::protocols::api_log::ApiConversation;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink, ReaderItem};
use call::LiteLlmCall;
use steno_model::durable::FileError;
use steno_model::json::{Object, Value, value_limit};
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_vault::{SessionBundle, SessionFile};

/// The agent's name.
pub const AGENT_NAME: &str = "litellm";

/// Finds and reads its logs.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about LiteLLM.
pub(crate) const AGENT: Agent = Agent {
    lines: Some(RecordFormat::by_sessions(split_conversations).with_api_calls()),
    ..Agent::new("LiteLLM logs", &READER)
};

/// Bytes to search before a file is taken for another format.
const PROBED_BYTES: u64 = 1 << 20;

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        let bundle = SessionBundle::from_file(file);
        bundles.extend(split_conversations(bundle)?);
    }
    Ok(bundles)
}

/// One bundle for each conversation in a file; no key where there is only one.
pub fn split_conversations(bundle: SessionBundle) -> Result<Vec<SessionBundle>, FileError> {
    if !may_be_litellm_log(&bundle.files[0]) {
        return Ok(Vec::new());
    }
    let (mut keys, mut seen) = (Vec::new(), HashSet::new());
    for_each_call(&bundle.files[0], &mut |call| {
        let key = call.map(|call| call.conversation_id().to_owned());
        keys.extend(key.ok().filter(|key| seen.insert(key.clone())));
    })?;
    if keys.len() < 2 {
        return Ok(keys.into_iter().map(|_| bundle.clone()).collect());
    }
    let keyed = keys.into_iter().map(|key| SessionBundle { key: Some(key), ..bundle.clone() });
    Ok(keyed.collect())
}

fn may_be_litellm_log(source: &SessionFile) -> bool {
    let Ok(mut input) = source.open() else {
        return false;
    };
    let opens = |start: &[u8]| start.starts_with(b"{") || start.starts_with(b"[");
    if !input.fill_buf().is_ok_and(|start| opens(start.trim_ascii_start())) {
        return false;
    }
    let mut head = Vec::new();
    let read = input.take(PROBED_BYTES).read_to_end(&mut head);
    read.is_ok() && memchr::memmem::find(&head, b"\"call_type\"").is_some()
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let source = document::only_file(bundle)?;
    let mut conversation: Option<ApiConversation> = None;
    let mut emitted_ids = HashSet::new();
    let is_own =
        |call: &LiteLlmCall| bundle.key.as_deref().is_none_or(|key| key == call.conversation_id());
    // A rotated log continues the one before it. A rewritten log may repeat calls.
    for earlier in &bundle.earlier_files {
        let mut ids = Vec::new();
        for_each_call(earlier, &mut |call| {
            let Ok(call) = call else { return };
            if is_own(&call) && !emitted_ids.contains(call.id()) {
                ids.push(call.id().to_owned());
                call.add_to_conversation(
                    conversation.get_or_insert_with(|| begin_conversation(&call)),
                    &mut *emit,
                );
            }
        })?;
        emitted_ids.extend(ids);
    }
    for_each_call(source, &mut |call| match call {
        Ok(call) if is_own(&call) && !emitted_ids.contains(call.id()) => {
            call.add_to_conversation(
                conversation.get_or_insert_with(|| begin_conversation(&call)),
                &mut *emit,
            );
        }
        Ok(_) => {}
        Err(problem) => emit(ReaderItem::Problem(problem)),
    })?;
    match conversation {
        Some(conversation) => Ok(conversation.finish()),
        None => Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no LiteLLM calls"))),
    }
}

fn begin_conversation(first: &LiteLlmCall) -> ApiConversation {
    let name = match first.conversation_id() {
        "" => first.id(),
        name => name,
    };
    let mut conversation = ApiConversation::new(AGENT_NAME, name);
    conversation.session().native_id = Some(name.to_owned());
    conversation
}

/// Passes each call of a file to `take`, or a problem if it cannot be read.
fn for_each_call(
    source: &SessionFile,
    take: &mut dyn FnMut(Result<LiteLlmCall, Problem>),
) -> Result<(), FileError> {
    match detect_layout(source)? {
        CallFileLayout::Lines => {}
        CallFileLayout::List => return for_each_listed_call(source, take),
        CallFileLayout::Document => {
            match json_repair::parse_lenient::<Value>(&source.read_bytes()?) {
                Ok(call) => {
                    LiteLlmCall::from_json(call).into_iter().for_each(|call| take(Ok(call)))
                }
                Err(reason) => take(Err(Problem::for_file(source.path(), reason))),
            }
            return Ok(());
        }
    }
    for line in JsonLines::open(source)? {
        let parsed = line.and_then(|line| {
            json_lines::parse_object(&line.bytes)
                .map_err(|reason| Problem::at_line(source.path(), line.number, reason))
        });
        if let Some(call) = parsed.map(|object| LiteLlmCall::from_json(object.into())).transpose() {
            take(call);
        }
    }
    Ok(())
}

/// Passes each call of a single-list file to `take`.
fn for_each_listed_call(
    source: &SessionFile,
    take: &mut dyn FnMut(Result<LiteLlmCall, Problem>),
) -> Result<(), FileError> {
    match RecordList::open(source, &[])? {
        Ok(listing) => listing.for_each_record(|call| match call {
            Ok(call) => LiteLlmCall::from_json(call).into_iter().for_each(|call| take(Ok(call))),
            Err(reason) => take(Err(Problem::for_file(source.path(), reason))),
        }),
        Err(problem) => {
            take(Err(problem));
            Ok(())
        }
    }
}

/// How a file stores its calls.
enum CallFileLayout {
    /// One call per line.
    Lines,
    /// A list of calls.
    List,
    /// One call, over several lines.
    Document,
}

fn detect_layout(source: &SessionFile) -> Result<CallFileLayout, FileError> {
    let first = JsonLines::open(source)?.flatten().next();
    let first = first.map(|line| line.bytes).unwrap_or_default();
    let is_call = value_limit::parse_limited::<Object>(&first).is_ok();
    Ok(match first.trim_ascii() {
        _ if is_call => CallFileLayout::Lines,
        b"{" => CallFileLayout::Document,
        first if first.starts_with(b"[") => CallFileLayout::List,
        _ => CallFileLayout::Lines,
    })
}

#[cfg(test)]
mod tests;
