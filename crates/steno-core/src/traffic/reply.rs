//! Decodes the response of an exchange: plain or streamed, complete or truncated.

use super::assemble::{AssembledAnswer, assemble, error_message, refusal_message};
use super::body::{ANSWER_LIMIT, too_large};
use super::dialect::Dialect;
use super::event_stream::is_event_stream;
use super::exchange::Exchange;
use super::translate::STATED_USAGE;
use super::{gemini, request, single_call};
use crate::agent::api_log::{finish_reason, response_entries, response_usage, stream};
use crate::agent::fields::{list, object, text};
use crate::agent::{repair, responses};
use crate::entry::{Entry, Kind, Role, Usage};
use crate::json::{Object, Value};

/// A decoded response.
#[derive(Debug, Default)]
pub(super) struct Reply {
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
    pub(super) stated_usage: Option<Value>,
    /// Items that a later request may refer to, by id.
    pub(super) items: Vec<(String, Option<Entry>)>,
    /// Why the response failed.
    pub(super) error: Option<String>,
    /// A connection error after the model had finished.
    pub(super) connection_error: Option<String>,
    /// How many events of the stream failed to parse.
    pub(super) unread_events: u64,
    /// Answers to earlier batch requests, with ids and usage of their own.
    pub(super) own_entries: Vec<Entry>,
}

impl Reply {
    /// A response that is one text.
    pub(super) fn of_text(content: String) -> Self {
        let entries = vec![Entry::new(Role::Assistant, Kind::Text, content)];
        Self { entries, ..Self::default() }
    }

    /// Decodes the response of an exchange.
    pub(super) fn of(exchange: &Exchange) -> Self {
        let assembled = assemble_answer(exchange);
        let mut reply = match (assembled.whole, assembled.single_call) {
            (Some(whole), _) => Self::whole(exchange.dialect().translated(), whole),
            (None, Some(reply)) => *reply,
            (None, None) => Self::default(),
        };
        reply.usage = reply.usage.or_else(|| counted_by_bedrock(exchange));
        reply.cost = reply.cost.or_else(|| cost_in_headers(exchange));
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

    fn whole(dialect: Dialect, mut whole: Object) -> Self {
        let gemini = dialect == Dialect::Generate;
        let error =
            whole.get("error").filter(|error| !error.is_null()).map(|_| error_message(&whole));
        if !gemini {
            // Errors become an entry of their own.
            whole.shift_remove("error");
        }
        let whole = &whole;
        let mut entries = if gemini { gemini::entries(whole) } else { answered(whole) };
        entries.iter_mut().for_each(request::settle);
        let incomplete = whole.get("incomplete_details").and_then(|details| details.get("reason"));
        let reason = text(whole, "stop_reason")
            .or(if gemini { gemini::finish_reason(whole) } else { finish_reason(whole) })
            .or(incomplete.and_then(Value::as_str))
            .or(text(whole, "status"));
        let usage = if gemini { gemini::billed(whole) } else { response_usage(whole) };
        let usage_fields = [STATED_USAGE, "usage", "usageMetadata"];
        let provider_usage = usage_fields.iter().find_map(|name| whole.get(*name));
        Self {
            entries,
            id: text(whole, "id").or(text(whole, "responseId")).map(str::to_owned),
            model: text(whole, "model").or(text(whole, "modelVersion")).map(str::to_owned),
            finish_reason: reason.map(str::to_owned),
            usage: usage.filter(|usage| !usage.is_empty()),
            cost: object(whole, "usage").and_then(stated_cost),
            stated_usage: provider_usage.cloned(),
            items: items(whole),
            error,
            ..Self::default()
        }
    }
}

/// The error that a server sent in place of a response.
pub(super) fn stated_error(exchange: &Exchange) -> Option<String> {
    let body = exchange.answer_body();
    let mut events = body.bytes.split(|byte| *byte == b'\n').filter_map(stream::data);
    events.find_map(|event| {
        let event: Object = repair::parse(event).ok()?;
        event.get("error").filter(|error| !error.is_null()).map(|_| error_message(&event))
    })
}

/// Assembles the response body.
fn assemble_answer(exchange: &Exchange) -> AssembledAnswer {
    let body = exchange.answer_body();
    let oversize = body.is_too_large.then(|| too_large("response", ANSWER_LIMIT));
    let mut assembled = match exchange.status {
        Some(status) if !(200..300).contains(&status) => AssembledAnswer {
            error: Some(refusal_message(status, &body.bytes)),
            ..AssembledAnswer::default()
        },
        // A truncated JSON document cannot be parsed.
        Some(_) if body.is_too_large && !is_event_stream(&body.bytes) => AssembledAnswer::default(),
        Some(_) if exchange.dialect().is_single_call() => {
            let reply = single_call::reply(exchange.dialect(), exchange, &body.bytes);
            let is_complete = reply.error.is_none() && !body.bytes.is_empty() && is_ended(exchange);
            let single_call = Some(Box::new(reply));
            AssembledAnswer { is_complete, single_call, ..AssembledAnswer::default() }
        }
        Some(_) => assemble(exchange.dialect(), &body.bytes),
        None => AssembledAnswer::default(),
    };
    assembled.error = oversize.or(assembled.error);
    assembled
}

/// The entries of an Anthropic or OpenAI response.
fn answered(whole: &Object) -> Vec<Entry> {
    if !["output", "choices", "content"].iter().any(|field| whole.contains_key(*field)) {
        return Vec::new();
    }
    response_entries(whole)
}

/// The items of a response by id. An item with only ciphertext has no entry.
fn items(whole: &Object) -> Vec<(String, Option<Entry>)> {
    let items = list(whole, "output").iter().filter_map(Value::as_object);
    let named = items.filter_map(|item| {
        let mut entry = responses::entry(item);
        entry.iter_mut().for_each(request::settle);
        Some((text(item, "id")?.to_owned(), entry))
    });
    named.collect()
}

fn is_ended(exchange: &Exchange) -> bool {
    exchange.end.as_ref().is_some_and(|end| end.error.is_none())
}

/// Usage from Bedrock's headers, for models that report none.
fn counted_by_bedrock(exchange: &Exchange) -> Option<Usage> {
    let header = |name| exchange.answer_header(name)?.parse().ok();
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
fn cost_in_headers(exchange: &Exchange) -> Option<f64> {
    exchange.answer_header("x-litellm-response-cost")?.parse().ok()
}

/// The cost that OpenRouter reports: its own charge, plus the provider's if that is paid separately.
fn stated_cost(usage: &Object) -> Option<f64> {
    let own = usage.get("cost")?.as_f64()?;
    let is_paid_apart = usage.get("is_byok") == Some(&Value::Bool(true));
    let provider = object(usage, "cost_details").filter(|_| is_paid_apart);
    let provider = provider.and_then(|details| details.get("upstream_inference_cost")?.as_f64());
    Some(own + provider.unwrap_or_default())
}
