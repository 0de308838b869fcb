//! Translates requests, responses and events of further providers into one of four APIs: Anthropic Messages, OpenAI
//! chat completions, OpenAI Responses or Gemini.
//!
//! The provider's own usage object is kept in the field [`STATED_USAGE`].

mod chat;
mod cohere;
mod completions;
mod converse;
mod ollama;

use super::dialect::Dialect;
use crate::json::{Object, Value};

/// The field of a translated response that holds the provider's own usage object.
pub(super) const STATED_USAGE: &str = "stated_usage";

impl Dialect {
    /// The API that a dialect is translated into; itself if it needs no translation.
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

/// Translates a request into the API of [`Dialect::translated`].
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

/// Translates a response that is not streamed.
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
    /// Number of tool calls so far, for providers that do not number them.
    calls: usize,
}

impl EventTranslator {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, calls: 0 }
    }

    /// Translates one event into none, one or several.
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

/// Unwraps an object made by `json!`.
fn into_object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// Appends a line to a text.
fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !line.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}
