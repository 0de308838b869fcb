//! Which messages a person wrote.
//!
//! Each prompt stands in a file twice: as a response item, among others that the program wrote in the user's name,
//! and as an event that only prompts have. The event makes it a prompt; its twin is left out.

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::find;
use super::record::{Body, Head, Record, decode};
use crate::agent::json_lines::JsonLines;
use crate::agent::responses;
use crate::durable::FileError;
use crate::entry::{Entry, Kind, Role};
use crate::json::Value;
use steno_vault::Source;

/// How texts begin that the program writes in the user's name.
const INJECTED: [&str; 12] = [
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

/// What tells prompts in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// `user_message` events.
    Events,
    /// `item_completed` events with a `UserMessage`: paginated history.
    Items,
    /// Nothing but the messages themselves.
    Messages,
}

impl Origin {
    /// Looks through a file for events that tell prompts.
    pub(super) fn of(source: &Source) -> Result<Self, FileError> {
        let (event, item) =
            (memmem::Finder::new("user_message"), memmem::Finder::new("UserMessage"));
        let mut origin = Origin::Messages;
        for line in JsonLines::new(source.path(), find::open(source)?).flatten() {
            let told = event.find(&line.bytes).is_some() || item.find(&line.bytes).is_some();
            match told.then(|| Self::told_by(&line.bytes)).flatten() {
                Some(Origin::Events) => return Ok(Origin::Events),
                Some(other) => origin = other,
                None => {}
            }
        }
        Ok(origin)
    }

    fn told_by(line: &[u8]) -> Option<Self> {
        let Body::Event(event) = Record::parse(line, &mut None).ok()?.body else {
            return None;
        };
        match decode::<Head>(event)?.kind?.as_str() {
            "user_message" => Some(Origin::Events),
            "item_completed" => user_message(event).map(|_| Origin::Items),
            _ => None,
        }
    }
}

/// The text of a `UserMessage` in an `item_completed` event.
pub(super) fn user_message(event: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Completed {
        item: Item,
    }
    #[derive(Deserialize)]
    struct Item {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        content: Value,
    }
    let item = decode::<Completed>(event)?.item;
    (item.kind == "UserMessage").then(|| responses::content_text(&item.content))
}

/// Joins each prompt to its twin.
pub(super) struct Prompts {
    origin: Origin,
    /// A message in the user's name whose event may follow.
    waiting: Option<Entry>,
    /// A prompt whose message may follow.
    said: Option<String>,
}

impl Prompts {
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, waiting: None, said: None }
    }

    /// Takes a response item in the user's name; gives back what is to be shown now.
    pub(super) fn message(&mut self, mut message: Entry) -> Option<Entry> {
        if self.origin == Origin::Messages {
            if INJECTED.iter().any(|start| message.content.trim_start().starts_with(start)) {
                message.kind = Kind::Notice;
            }
            return Some(message);
        }
        if self.said.take().is_some_and(|said| is_twin(&message.content, &said)) {
            return None;
        }
        message.kind = Kind::Notice;
        self.waiting.replace(message)
    }

    /// Takes an event of the kind `from` that tells a prompt; gives back what is to be shown now, in order.
    pub(super) fn told(&mut self, from: Origin, text: String) -> Vec<Entry> {
        if self.origin != from {
            return Vec::new();
        }
        match self.waiting.take() {
            Some(mut twin) if is_twin(&twin.content, &text) => {
                twin.kind = Kind::Text;
                vec![twin]
            }
            other => {
                self.said = Some(text.clone());
                let prompt = Entry::new(Role::User, Kind::Text, text);
                other.into_iter().chain([prompt]).collect()
            }
        }
    }

    /// The message that waited in vain, to be shown before anything else is.
    pub(super) fn release(&mut self) -> Option<Entry> {
        self.waiting.take()
    }
}

/// Whether a message says what a prompt says, pictures aside.
fn is_twin(message: &str, prompt: &str) -> bool {
    let pictures = message.contains("[image/") || message.contains("[input_image]");
    message.trim() == prompt.trim() || (pictures && message.contains(prompt.trim()))
}
