//! What waits to be told to a thread's agent: what was injected, and the messages in its inbox. Nothing of it is removed
//! when it is told; `.meta/delivered.json` notes how far that has come.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::context::escape;
use super::error::ThreadError;
use super::store::{THREADS, ThreadStore, read};
use crate::format::chibi::Message;
use crate::json::{Style, Value};
use crate::timestamp::Timestamp;

/// Where a thread's messages are, one to a line as chibi writes them.
const INBOX: &str = ".meta/inbox.jsonl";

/// How far telling has come.
const DELIVERED: &str = ".meta/delivered.json";

/// What waits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waiting {
    /// What was injected, oldest first.
    pub injections: Vec<Injection>,
    /// The messages in the inbox, oldest first.
    pub messages: Vec<Message>,
}

/// Something that was injected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection {
    /// The operation that did it.
    pub operation: String,
    /// When.
    pub at: Timestamp,
    /// What it is, such as `constraint`.
    pub kind: String,
    /// The text.
    pub content: String,
}

/// The last of each that was told.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Delivered {
    #[serde(default)]
    injection: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

impl Waiting {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.injections.is_empty() && self.messages.is_empty()
    }

    /// What an agent is told, each with an empty line after it.
    pub fn text(&self) -> String {
        let injections = self.injections.iter().map(|it| {
            let (kind, content) = (escape(&it.kind), escape(&it.content));
            format!("  <injection type=\"{kind}\" time=\"{}\">{content}</injection>\n", it.at)
        });
        let messages = self.messages.iter().map(|message| {
            let (from, content) = (escape(&message.from), escape(&message.content));
            format!("  <message from=\"{from}\">{content}</message>\n")
        });
        block("thread_injections", injections.collect())
            + &block("thread_inbox", messages.collect())
    }
}

fn block(name: &str, lines: String) -> String {
    if lines.is_empty() { lines } else { format!("<{name}>\n{lines}</{name}>\n\n") }
}

impl ThreadStore {
    /// What the thread's agent was not told yet.
    pub fn waiting(&self, id: &str) -> Result<Waiting, ThreadError> {
        let relations = self.relations()?;
        let Some(thread) = relations.threads.get(id) else {
            return Err(ThreadError::ThreadNotFound(id.to_owned()));
        };
        let folder = self.folder(&thread.id)?;
        let told = read(&folder.join(DELIVERED))?;
        let told: Delivered =
            told.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let text = |params: &crate::json::Object, name: &str| {
            params.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let injected = relations.operations.into_iter().filter(|operation| {
            operation.command == "inject" && text(&operation.params, "thread_id") == id
        });
        let injections: Vec<_> = injected
            .map(|operation| Injection {
                kind: text(&operation.params, "type"),
                content: text(&operation.params, "content"),
                at: operation.timestamp,
                operation: operation.id,
            })
            .collect();
        let messages = messages(&folder.join(INBOX))?;
        Ok(Waiting {
            injections: after(injections, |it| Some(&it.operation) == told.injection.as_ref()),
            messages: after(messages, |it| Some(&it.id) == told.message.as_ref()),
        })
    }

    /// Notes that the thread's agent was told what waited.
    pub fn delivered(&self, id: &str, waiting: &Waiting) -> Result<(), ThreadError> {
        if waiting.is_empty() {
            return Ok(());
        }
        self.change(|draft| {
            let id = draft.thread(id)?.id.clone();
            let folder = draft.folder(&id)?;
            let told = read(&folder.join(DELIVERED))?;
            let mut told: Delivered =
                told.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
            let injection = waiting.injections.last().map(|it| it.operation.clone());
            let message = waiting.messages.last().map(|it| it.id.clone());
            told = Delivered {
                injection: injection.or(told.injection.take()),
                message: message.or(told.message.take()),
            };
            let place = PathBuf::from(THREADS).join(id.as_str()).join(DELIVERED);
            Ok(draft.staging.write(&place, (Style::PRETTY.print(&told) + "\n").as_bytes())?)
        })
    }
}

/// The messages in an inbox; what is none is left alone.
fn messages(path: &Path) -> Result<Vec<Message>, ThreadError> {
    let bytes = read(path)?.unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    let objects = lines.filter_map(|line| serde_json::from_slice(line).ok());
    Ok(objects.filter_map(|object| Message::from_object(object).ok()).collect())
}

/// What follows the last that was told; everything where that is not there.
fn after<T>(mut all: Vec<T>, is_told: impl Fn(&T) -> bool) -> Vec<T> {
    let begin = all.iter().rposition(is_told).map_or(0, |at| at + 1);
    all.split_off(begin)
}
