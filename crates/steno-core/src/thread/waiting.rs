//! Texts and messages that a thread's agent has not received yet: injections, and its inbox.
//!
//! They are not removed after delivery; `.meta/delivered.json` stores the last of each that was delivered.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::context::escape;
use super::error::ThreadError;
use super::store::{THREADS, ThreadStore, read};
use crate::format::chibi::Message;
use crate::json::{Style, Value};
use crate::timestamp::Timestamp;

/// Path of a thread's inbox: one message per line, as chibi writes them.
const INBOX: &str = ".meta/inbox.jsonl";

/// Path of the file that marks what was delivered.
const DELIVERED: &str = ".meta/delivered.json";

/// The undelivered injections and messages of a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waiting {
    /// The injections, oldest first.
    pub injections: Vec<Injection>,
    /// The messages, oldest first.
    pub messages: Vec<Message>,
}

/// A text that was injected into the thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection {
    /// The id of the operation.
    pub operation: String,
    /// When it was injected.
    pub at: Timestamp,
    /// The kind of text, such as `constraint`.
    pub kind: String,
    /// The text.
    pub content: String,
}

/// The last injection and message that were delivered.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Delivered {
    #[serde(default)]
    injection: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

impl Waiting {
    /// Whether there is nothing to deliver.
    pub fn is_empty(&self) -> bool {
        self.injections.is_empty() && self.messages.is_empty()
    }

    /// Renders the prompt text for the agent, with an empty line after each block.
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
    /// Returns what the thread's agent has not received yet.
    pub fn waiting(&self, id: &str) -> Result<Waiting, ThreadError> {
        let relations = self.relations()?;
        let Some(thread) = relations.threads.get(id) else {
            return Err(ThreadError::ThreadNotFound(id.to_owned()));
        };
        let folder = self.folder(&thread.id)?;
        let delivered = read(&folder.join(DELIVERED))?;
        let delivered: Delivered =
            delivered.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
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
            injections: after(injections, |it| Some(&it.operation) == delivered.injection.as_ref()),
            messages: after(messages, |it| Some(&it.id) == delivered.message.as_ref()),
        })
    }

    /// Marks the injections and messages as delivered.
    pub fn delivered(&self, id: &str, waiting: &Waiting) -> Result<(), ThreadError> {
        if waiting.is_empty() {
            return Ok(());
        }
        self.change(|draft| {
            let id = draft.thread(id)?.id.clone();
            let folder = draft.folder(&id)?;
            let delivered = read(&folder.join(DELIVERED))?;
            let mut delivered: Delivered =
                delivered.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
            let injection = waiting.injections.last().map(|it| it.operation.clone());
            let message = waiting.messages.last().map(|it| it.id.clone());
            delivered = Delivered {
                injection: injection.or(delivered.injection.take()),
                message: message.or(delivered.message.take()),
            };
            let path = PathBuf::from(THREADS).join(id.as_str()).join(DELIVERED);
            Ok(draft.staging.write(&path, (Style::PRETTY.print(&delivered) + "\n").as_bytes())?)
        })
    }
}

/// Reads the messages in an inbox. Lines that are not messages are skipped.
fn messages(path: &Path) -> Result<Vec<Message>, ThreadError> {
    let bytes = read(path)?.unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    let objects = lines.filter_map(|line| serde_json::from_slice(line).ok());
    Ok(objects.filter_map(|object| Message::from_object(object).ok()).collect())
}

/// Drops everything up to the last delivered item; keeps all if that item is missing.
fn after<T>(mut all: Vec<T>, is_delivered: impl Fn(&T) -> bool) -> Vec<T> {
    let begin = all.iter().rposition(is_delivered).map_or(0, |at| at + 1);
    all.split_off(begin)
}
