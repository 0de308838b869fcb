//! Texts and messages that a thread's agent has not received yet: injections, and its inbox.
//!
//! They are not removed after delivery; `.meta/delivered.json` stores the last of each that was delivered.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::context::escape_xml;
use super::error::ThreadError;
use super::store::{THREADS_FOLDER, ThreadStore, read_if_exists};
use crate::chibi::InboxMessage;
use steno_model::json::{JsonStyle, Value};
use steno_model::timestamp::Timestamp;

/// Path of a thread's inbox: one message per line, as chibi writes them.
const INBOX_FILE: &str = ".meta/inbox.jsonl";

/// Path of the file that marks what was delivered.
const DELIVERED_FILE: &str = ".meta/delivered.json";

/// The undelivered injections and messages of a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UndeliveredMessages {
    /// The injections, oldest first.
    pub injections: Vec<WaitingInjection>,
    /// The messages, oldest first.
    pub messages: Vec<InboxMessage>,
}

/// A text that was injected into the thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingInjection {
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
struct DeliveryMark {
    #[serde(default)]
    injection: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

impl UndeliveredMessages {
    /// Whether there is nothing to deliver.
    pub fn is_empty(&self) -> bool {
        self.injections.is_empty() && self.messages.is_empty()
    }

    /// Renders the prompt text for the agent, with an empty line after each block.
    pub fn to_prompt_text(&self) -> String {
        let injections = self.injections.iter().map(|it| {
            let (kind, content) = (escape_xml(&it.kind), escape_xml(&it.content));
            format!("  <injection type=\"{kind}\" time=\"{}\">{content}</injection>\n", it.at)
        });
        let messages = self.messages.iter().map(|message| {
            let (from, content) = (escape_xml(&message.from), escape_xml(&message.content));
            format!("  <message from=\"{from}\">{content}</message>\n")
        });
        xml_block("thread_injections", injections.collect())
            + &xml_block("thread_inbox", messages.collect())
    }
}

fn xml_block(name: &str, lines: String) -> String {
    if lines.is_empty() { lines } else { format!("<{name}>\n{lines}</{name}>\n\n") }
}

impl ThreadStore {
    /// Returns what the thread's agent has not received yet.
    pub fn undelivered_messages(&self, id: &str) -> Result<UndeliveredMessages, ThreadError> {
        let relations = self.load_relations()?;
        let Some(thread) = relations.threads.get(id) else {
            return Err(ThreadError::ThreadNotFound(id.to_owned()));
        };
        let folder = self.thread_folder(&thread.id)?;
        let delivered = read_if_exists(&folder.join(DELIVERED_FILE))?;
        let delivered: DeliveryMark =
            delivered.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let text = |params: &steno_model::json::Object, name: &str| {
            params.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let injected = relations.operations.into_iter().filter(|operation| {
            operation.command == "inject" && text(&operation.params, "thread_id") == id
        });
        let injections: Vec<_> = injected
            .map(|operation| WaitingInjection {
                kind: text(&operation.params, "type"),
                content: text(&operation.params, "content"),
                at: operation.timestamp,
                operation: operation.id,
            })
            .collect();
        let messages = read_inbox(&folder.join(INBOX_FILE))?;
        Ok(UndeliveredMessages {
            injections: skip_delivered(injections, |it| {
                Some(&it.operation) == delivered.injection.as_ref()
            }),
            messages: skip_delivered(messages, |it| Some(&it.id) == delivered.message.as_ref()),
        })
    }

    /// Marks the injections and messages as delivered.
    pub fn mark_delivered(
        &self,
        id: &str,
        waiting: &UndeliveredMessages,
    ) -> Result<(), ThreadError> {
        if waiting.is_empty() {
            return Ok(());
        }
        self.change_stores(|draft| {
            let id = draft.thread_mut(id)?.id.clone();
            let folder = draft.thread_folder(&id)?;
            let delivered = read_if_exists(&folder.join(DELIVERED_FILE))?;
            let mut delivered: DeliveryMark =
                delivered.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
            let injection = waiting.injections.last().map(|it| it.operation.clone());
            let message = waiting.messages.last().map(|it| it.id.clone());
            delivered = DeliveryMark {
                injection: injection.or(delivered.injection.take()),
                message: message.or(delivered.message.take()),
            };
            let path = PathBuf::from(THREADS_FOLDER).join(id.as_str()).join(DELIVERED_FILE);
            Ok(draft
                .staging
                .write_file(&path, (JsonStyle::PRETTY.print(&delivered) + "\n").as_bytes())?)
        })
    }
}

/// Reads the messages in an inbox. Lines that are not messages are skipped.
fn read_inbox(path: &Path) -> Result<Vec<InboxMessage>, ThreadError> {
    let bytes = read_if_exists(path)?.unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    let objects = lines.filter_map(|line| serde_json::from_slice(line).ok());
    Ok(objects.filter_map(|object| InboxMessage::from_object(object).ok()).collect())
}

/// Drops everything up to the last delivered item; keeps all if that item is missing.
fn skip_delivered<T>(mut all: Vec<T>, is_delivered: impl Fn(&T) -> bool) -> Vec<T> {
    let begin = all.iter().rposition(is_delivered).map_or(0, |at| at + 1);
    all.split_off(begin)
}
