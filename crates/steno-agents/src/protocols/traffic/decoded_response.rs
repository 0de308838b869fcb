//! Decodes the response of an exchange: plain or streamed, complete or truncated.

use super::assembly::{AssembledResponse, assemble_body, error_message, refusal_message};
use super::decoded_body::{MAX_RESPONSE_BYTES, too_large_message};
use super::dialect::ApiDialect;
use super::event_stream::is_event_stream;
use super::exchange::ApiExchange;
use super::translation::PROVIDER_USAGE_FIELD;
use super::{decoded_request, gemini, single_call};
use crate::decoding::json_fields::{list_field, object_field, text_field};
use crate::decoding::json_repair;
use crate::protocols::api_log::{finish_reason, response_entries, response_usage, stream};
use crate::protocols::responses;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{Object, Value};

/// A decoded response.
#[derive(Debug, Default)]
pub(super) struct DecodedResponse {
    /// The model's texts, tool calls and thoughts.
    pub(super) entries: Vec<Entry>,
    /// The provider's id for the response.
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) finish_reason: Option<String>,
    pub(super) usage: Option<Usage>,
    /// The cost in dollars that the provider reported.
    pub(super) cost: Option<f64>,
    /// The provider's own usage object.
    pub(super) provider_usage: Option<Value>,
    /// Items that a later request may refer to, by id.
    pub(super) response_items: Vec<(String, Option<Entry>)>,
    /// Why the response failed.
    pub(super) error: Option<String>,
    /// A connection error after the model had finished.
    pub(super) connection_error: Option<String>,
    /// How many events of the stream failed to parse.
    pub(super) unread_events: u64,
    /// Answers to earlier batch requests, with ids and usage of their own.
    pub(super) batch_entries: Vec<Entry>,
}

/// The fields of a response that identify and bill it.
#[derive(Debug)]
pub struct ResponseSummary {
    /// The provider's id for the response.
    pub id: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// The provider's own usage object.
    pub provider_usage: Option<Value>,
}

impl ResponseSummary {
    /// Decodes the response of an exchange.
    pub fn from_exchange(exchange: &ApiExchange) -> Self {
        let DecodedResponse { id, model, provider_usage, .. } =
            DecodedResponse::from_exchange(exchange);
        Self { id, model, provider_usage }
    }
}

impl DecodedResponse {
    /// A response that is one text.
    pub(super) fn from_text(content: String) -> Self {
        let entries = vec![Entry::new(Role::Assistant, EntryKind::Text, content)];
        Self { entries, ..Self::default() }
    }

    /// Only the usage of a response without a message, and the error.
    pub(super) fn without_entries(self, error: Option<String>) -> Self {
        let Self { usage, provider_usage, .. } = self;
        Self { error, usage, provider_usage, ..Self::default() }
    }

    /// Decodes the response of an exchange.
    pub(super) fn from_exchange(exchange: &ApiExchange) -> Self {
        let assembled = assemble_response(exchange);
        let mut reply = match (assembled.object, assembled.single_call) {
            (Some(whole), _) => Self::from_object(exchange.dialect().translation_target(), whole),
            (None, Some(reply)) => *reply,
            (None, None) => Self::default(),
        };
        reply.usage = reply.usage.or_else(|| bedrock_header_usage(exchange));
        reply.cost = reply.cost.or_else(|| litellm_cost(exchange));
        let cut = match &exchange.end {
            Some(end) => end.error.clone(),
            None => Some("the recording ended in the middle of it".to_owned()),
        };
        reply.unread_events = assembled.unread_events;
        if assembled.is_failed_by_provider {
            reply.usage = None;
        }
        let is_refused = exchange.status.is_some_and(|status| !(200..300).contains(&status));
        if assembled.is_complete || is_refused {
            // Many clients close the connection after the last event or on an error status, before the body ends.
            reply.connection_error = cut;
            reply.error = reply.error.or(assembled.error);
        } else {
            // The connection error explains why the stream has no end.
            reply.error = cut.or(reply.error).or(assembled.error);
        }
        reply
    }

    fn from_object(dialect: ApiDialect, mut whole: Object) -> Self {
        let gemini = dialect == ApiDialect::Generate;
        let error =
            whole.get("error").filter(|error| !error.is_null()).map(|_| error_message(&whole));
        if !gemini {
            // Errors become an entry of their own.
            whole.shift_remove("error");
        }
        let whole = &whole;
        let mut entries =
            if gemini { gemini::candidate_entries(whole) } else { decode_entries(whole) };
        entries.iter_mut().for_each(decoded_request::normalize_entry);
        let incomplete = whole.get("incomplete_details").and_then(|details| details.get("reason"));
        let reason = text_field(whole, "stop_reason")
            .or(if gemini { gemini::finish_reason(whole) } else { finish_reason(whole) })
            .or(incomplete.and_then(Value::as_str))
            .or(text_field(whole, "status"));
        let usage = if gemini { gemini::response_usage(whole) } else { response_usage(whole) };
        let usage_fields = [PROVIDER_USAGE_FIELD, "usage", "usageMetadata"];
        let provider_usage = usage_fields.iter().find_map(|name| whole.get(*name));
        Self {
            entries,
            id: text_field(whole, "id").or(text_field(whole, "responseId")).map(str::to_owned),
            model: text_field(whole, "model")
                .or(text_field(whole, "modelVersion"))
                .map(str::to_owned),
            finish_reason: reason.map(str::to_owned),
            usage: usage.filter(|usage| !usage.is_empty()),
            cost: object_field(whole, "usage").and_then(openrouter_cost),
            provider_usage: provider_usage.cloned(),
            response_items: decode_items(whole),
            error,
            ..Self::default()
        }
    }
}

/// The error that a server sent in place of a response.
pub(super) fn find_response_error(exchange: &ApiExchange) -> Option<String> {
    let body = exchange.decode_response_body();
    let mut events = body.bytes.split(|byte| *byte == b'\n').filter_map(stream::event_data);
    events.find_map(|event| {
        let event: Object = json_repair::parse_lenient(event).ok()?;
        event.get("error").filter(|error| !error.is_null()).map(|_| error_message(&event))
    })
}

/// Assembles the response body.
fn assemble_response(exchange: &ApiExchange) -> AssembledResponse {
    let body = exchange.decode_response_body();
    let oversize = body.is_too_large.then(|| too_large_message("response", MAX_RESPONSE_BYTES));
    let mut assembled = match exchange.status {
        Some(status) if !(200..300).contains(&status) => AssembledResponse {
            error: Some(refusal_message(status, &body.bytes)),
            ..AssembledResponse::default()
        },
        // A truncated JSON document cannot be parsed.
        Some(_) if body.is_too_large && !is_event_stream(&body.bytes) => {
            AssembledResponse::default()
        }
        Some(_) if exchange.dialect().is_single_call() => {
            let reply =
                single_call::decode_single_response(exchange.dialect(), exchange, &body.bytes);
            let is_complete =
                reply.error.is_none() && !body.bytes.is_empty() && has_ended(exchange);
            let single_call = Some(Box::new(reply));
            AssembledResponse { is_complete, single_call, ..AssembledResponse::default() }
        }
        Some(_) => assemble_body(exchange.dialect(), &body.bytes),
        None => AssembledResponse::default(),
    };
    assembled.error = oversize.or(assembled.error);
    assembled
}

/// The entries of an Anthropic or OpenAI response.
fn decode_entries(whole: &Object) -> Vec<Entry> {
    if !["output", "choices", "content"].iter().any(|field| whole.contains_key(*field)) {
        return Vec::new();
    }
    response_entries(whole)
}

/// The items of a response by id. An item with only ciphertext has no entry.
fn decode_items(whole: &Object) -> Vec<(String, Option<Entry>)> {
    let items = list_field(whole, "output").iter().filter_map(Value::as_object);
    let named = items.filter_map(|item| {
        let mut entry = responses::item_entry(item);
        entry.iter_mut().for_each(decoded_request::normalize_entry);
        Some((text_field(item, "id")?.to_owned(), entry))
    });
    named.collect()
}

fn has_ended(exchange: &ApiExchange) -> bool {
    exchange.end.as_ref().is_some_and(|end| end.error.is_none())
}

/// Usage from Bedrock's headers, for models that report none.
fn bedrock_header_usage(exchange: &ApiExchange) -> Option<Usage> {
    let header = |name| exchange.response_header(name)?.parse().ok();
    let input = header("x-amzn-bedrock-input-token-count");
    let output = header("x-amzn-bedrock-output-token-count");
    let usage = Usage {
        input: input.unwrap_or_default(),
        output: output.unwrap_or_default(),
        ..Usage::default()
    };
    (!usage.is_empty()).then_some(usage)
}

/// The cost that LiteLLM reports.
fn litellm_cost(exchange: &ApiExchange) -> Option<f64> {
    exchange.response_header("x-litellm-response-cost")?.parse().ok()
}

/// The cost that OpenRouter reports: its own charge, plus the provider's if that is paid separately.
fn openrouter_cost(usage: &Object) -> Option<f64> {
    let own = usage.get("cost")?.as_f64()?;
    let is_paid_apart = usage.get("is_byok") == Some(&Value::Bool(true));
    let provider = object_field(usage, "cost_details").filter(|_| is_paid_apart);
    let provider = provider.and_then(|details| details.get("upstream_inference_cost")?.as_f64());
    Some(own + provider.unwrap_or_default())
}
