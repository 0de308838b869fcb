//! Requests, answers and events of further providers, put into the words of one of the four APIs that are read:
//! Anthropic Messages, OpenAI chat completions and Responses, Gemini.
//!
//! What a provider stated stays beside it: tokens as they came stand in the field [`STATED_USAGE`].

mod chat;
mod cohere;
mod completions;
mod converse;
mod ollama;

use super::dialect::Dialect;
use crate::json::{Object, Value};

/// The field of a translated answer that holds the tokens in the provider's own words.
pub(super) const STATED_USAGE: &str = "stated_usage";

impl Dialect {
    /// The API into whose words a dialect is translated; those that are read as they are stay.
    pub(super) fn translated(self) -> Dialect {
        match self {
            Dialect::Completions
            | Dialect::OllamaChat
            | Dialect::OllamaGenerate
            | Dialect::Cohere => Dialect::Chat,
            Dialect::Converse => Dialect::Messages,
            Dialect::Realtime => Dialect::Responses,
            other => other,
        }
    }
}

/// A request in the words of the API that [`Dialect::translated`] names.
pub(super) fn translate_request(dialect: Dialect, request: Object) -> Object {
    match dialect {
        Dialect::Chat => chat::translate_request(request),
        Dialect::Completions => completions::translate_request(request),
        Dialect::OllamaChat => ollama::translate_chat_request(request),
        Dialect::OllamaGenerate => ollama::translate_generate_request(&request),
        Dialect::Converse => converse::translate_request(request),
        Dialect::Cohere => cohere::translate_request(request),
        _ => request,
    }
}

/// An answer that came in one piece, in those words.
pub(super) fn translate_answer(dialect: Dialect, answer: Object) -> Object {
    match dialect {
        Dialect::Chat => chat::translate_answer(answer),
        Dialect::Completions => completions::translate_answer(answer),
        Dialect::OllamaChat | Dialect::OllamaGenerate => ollama::translate_answer(answer),
        Dialect::Converse => converse::translate_answer(answer),
        Dialect::Cohere => cohere::translate_answer(answer),
        _ => answer,
    }
}

/// Translates the events of one stream.
#[derive(Debug)]
pub(super) struct EventTranslator {
    dialect: Dialect,
    /// How many tool calls have come, where a provider does not number them.
    calls: usize,
}

impl EventTranslator {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, calls: 0 }
    }

    /// The events that an event is; nothing for one that says nothing.
    pub(super) fn translate(&mut self, event: Object) -> Vec<Object> {
        match self.dialect {
            Dialect::Chat => vec![chat::translate_event(event)],
            Dialect::Completions => vec![completions::translate_event(event)],
            Dialect::OllamaChat | Dialect::OllamaGenerate => {
                vec![ollama::translate_event(event, &mut self.calls)]
            }
            Dialect::Converse => converse::translate_event(event),
            Dialect::Cohere => cohere::translate_event(event, &mut self.calls),
            _ => vec![event],
        }
    }
}

/// The object that a value is, for what `json!` has made.
fn into_object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// The same text with more at its end.
fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !line.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}
