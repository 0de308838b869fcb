//! Translates requests, responses and events of further providers into one of four APIs: Anthropic Messages, OpenAI
//! chat completions, OpenAI Responses or Gemini.
//!
//! The provider's own usage object is kept in the field [`PROVIDER_USAGE_FIELD`].

mod chat;
mod cohere;
mod completions;
mod converse;
mod ollama;

use super::dialect::ApiDialect;
use steno_model::json::{Object, Value};

/// The field of a translated response that holds the provider's own usage object.
pub(super) const PROVIDER_USAGE_FIELD: &str = "stated_usage";

impl ApiDialect {
    /// The API that a dialect is translated into; itself if it needs no translation.
    pub(super) fn translation_target(self) -> ApiDialect {
        match self {
            ApiDialect::Completions
            | ApiDialect::OllamaChat
            | ApiDialect::OllamaGenerate
            | ApiDialect::Cohere => ApiDialect::Chat,
            ApiDialect::Converse => ApiDialect::Messages,
            ApiDialect::Realtime => ApiDialect::Responses,
            other => other,
        }
    }
}

/// Translates a request into the API of [`ApiDialect::translation_target`].
pub(super) fn translate_request(dialect: ApiDialect, request: Object) -> Object {
    match dialect {
        ApiDialect::Chat => chat::translate_request(request),
        ApiDialect::Completions => completions::translate_request(request),
        ApiDialect::OllamaChat => ollama::translate_chat_request(request),
        ApiDialect::OllamaGenerate => ollama::translate_generate_request(&request),
        ApiDialect::Converse => converse::translate_request(request),
        ApiDialect::Cohere => cohere::translate_request(request),
        _ => request,
    }
}

/// Translates a response that is not streamed.
pub(super) fn translate_answer(dialect: ApiDialect, answer: Object) -> Object {
    match dialect {
        ApiDialect::Chat => chat::translate_answer(answer),
        ApiDialect::Completions => completions::translate_answer(answer),
        ApiDialect::OllamaChat | ApiDialect::OllamaGenerate => ollama::translate_answer(answer),
        ApiDialect::Converse => converse::translate_answer(answer),
        ApiDialect::Cohere => cohere::translate_answer(answer),
        _ => answer,
    }
}

/// Translates the events of one stream.
#[derive(Debug)]
pub(super) struct EventTranslator {
    dialect: ApiDialect,
    /// Number of tool calls so far, for providers that do not number them.
    call_count: usize,
}

impl EventTranslator {
    pub(super) fn new(dialect: ApiDialect) -> Self {
        Self { dialect, call_count: 0 }
    }

    /// Translates one event into none, one or several.
    pub(super) fn translate(&mut self, event: Object) -> Vec<Object> {
        match self.dialect {
            ApiDialect::Chat => vec![chat::translate_event(event)],
            ApiDialect::Completions => vec![completions::translate_event(event)],
            ApiDialect::OllamaChat | ApiDialect::OllamaGenerate => {
                vec![ollama::translate_event(event, &mut self.call_count)]
            }
            ApiDialect::Converse => converse::translate_event(event),
            ApiDialect::Cohere => cohere::translate_event(event, &mut self.call_count),
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
