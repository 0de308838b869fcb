//! Recognizes the messages that a person typed.
//!
//! A rollout has each prompt twice: as a response item with the role `user`, which injected messages have too, and as
//! an event, which only prompts have. A message with a matching event is a prompt; the duplicate is dropped.

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::find;
use super::record::{CodexLineBody, CodexPayloadHead, CodexRolloutLine, decode_raw};
use crate::decoding::json_lines::JsonLines;
use crate::protocols::responses;
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::Value;
use steno_vault::SessionFile;

/// Prefixes of the texts that Codex and Steno inject with the role `user`.
const INJECTED_PREFIXES: [&str; 13] = [
    "<continued_session ",
    "<environment_context>",
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<skill>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<user_action>",
    "<recommended_plugins>",
];

/// What marks the prompts of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodexPromptMarker {
    /// `user_message` events.
    Events,
    /// `item_completed` events with a `UserMessage`, in paginated history.
    Items,
    /// No events: only the text of the messages.
    Messages,
}

impl CodexPromptMarker {
    /// Scans a rollout for events that mark prompts.
    pub(super) fn detect_in(source: &SessionFile) -> Result<Self, FileError> {
        let (event, item) =
            (memmem::Finder::new("user_message"), memmem::Finder::new("UserMessage"));
        let mut origin = CodexPromptMarker::Messages;
        for line in JsonLines::new(source.path(), find::open_rollout(source)?).flatten() {
            let is_candidate =
                event.find(&line.bytes).is_some() || item.find(&line.bytes).is_some();
            match is_candidate.then(|| Self::from_line(&line.bytes)).flatten() {
                Some(CodexPromptMarker::Events) => return Ok(CodexPromptMarker::Events),
                Some(other) => origin = other,
                None => {}
            }
        }
        Ok(origin)
    }

    fn from_line(line: &[u8]) -> Option<Self> {
        let CodexLineBody::Event(event) = CodexRolloutLine::parse(line, &mut None).ok()?.body
        else {
            return None;
        };
        match decode_raw::<CodexPayloadHead>(event)?.kind?.as_str() {
            "user_message" => Some(CodexPromptMarker::Events),
            "item_completed" => user_message_text(event).map(|_| CodexPromptMarker::Items),
            _ => None,
        }
    }
}

/// The text of a `UserMessage` in an `item_completed` event.
pub(super) fn user_message_text(event: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct CodexItemCompleted {
        item: CodexCompletedItem,
    }
    #[derive(Deserialize)]
    struct CodexCompletedItem {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        content: Value,
    }
    let item = decode_raw::<CodexItemCompleted>(event)?.item;
    (item.kind == "UserMessage").then(|| responses::content_text(&item.content))
}

/// Matches each prompt event with its message.
pub(super) struct CodexPromptMatcher {
    origin: CodexPromptMarker,
    /// The last user message, until its event or another record follows.
    pending_message: Option<Entry>,
    /// The text of the last prompt event, until a user message follows.
    pending_event: Option<String>,
}

impl CodexPromptMatcher {
    pub(super) fn new(origin: CodexPromptMarker) -> Self {
        Self { origin, pending_message: None, pending_event: None }
    }

    /// Adds a user message, and returns the entry to emit now, if any.
    pub(super) fn push_message(&mut self, mut message: Entry) -> Option<Entry> {
        if self.origin == CodexPromptMarker::Messages {
            if INJECTED_PREFIXES.iter().any(|start| message.content.trim_start().starts_with(start))
            {
                message.kind = EntryKind::Notice;
            }
            return Some(message);
        }
        if self.pending_event.take().is_some_and(|prompt| is_same_prompt(&message.content, &prompt))
        {
            return None;
        }
        message.kind = EntryKind::Notice;
        self.pending_message.replace(message)
    }

    /// Adds the text of a prompt event, and returns the entries to emit now, in order.
    ///
    /// Events of a kind that does not mark this rollout's prompts are ignored.
    pub(super) fn push_event(&mut self, from: CodexPromptMarker, text: String) -> Vec<Entry> {
        if self.origin != from {
            return Vec::new();
        }
        match self.pending_message.take() {
            Some(mut message) if is_same_prompt(&message.content, &text) => {
                message.kind = EntryKind::Text;
                vec![message]
            }
            other => {
                self.pending_event = Some(text.clone());
                let prompt = Entry::new(Role::User, EntryKind::Text, text);
                other.into_iter().chain([prompt]).collect()
            }
        }
    }

    /// Takes the pending message, which has no event. It must be emitted before any other entry.
    pub(super) fn take_pending(&mut self) -> Option<Entry> {
        self.pending_message.take()
    }
}

/// Whether a message has the text of a prompt event. Images are ignored.
fn is_same_prompt(message: &str, prompt: &str) -> bool {
    let has_images = message.contains("[image/") || message.contains("[input_image]");
    message.trim() == prompt.trim() || (has_images && message.contains(prompt.trim()))
}
