//! Recognises logs of model APIs by their first lines.

use std::io::{BufRead, Read};

use super::stream::{self, ApiStreamAssembler};
use crate::decoding::json_fields::text_field;
use crate::decoding::json_repair;
use steno_model::durable::{FileError, OnPath};
use steno_model::json::{Object, Value, value_limit};
use steno_model::lines::LineReader;
use steno_vault::SessionFile;

/// Number of lines to probe.
const MAX_PROBED_LINES: usize = 5;

/// Longest line or document to probe, in bytes.
const MAX_PROBED_BYTES: usize = 8 << 20;

/// Bytes of a document to search before it is parsed as a whole.
const DOCUMENT_HEAD_BYTES: u64 = 16 << 10;

/// The fields of API requests. An object with any other field is not a request.
const REQUEST_PARAMETERS: [&str; 46] = [
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "temperature",
    "top_p",
    "top_k",
    "stop",
    "stop_sequences",
    "stream",
    "stream_options",
    "metadata",
    "thinking",
    "n",
    "seed",
    "user",
    "response_format",
    "logprobs",
    "top_logprobs",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "parallel_tool_calls",
    "reasoning_effort",
    "reasoning",
    "input",
    "instructions",
    "store",
    "include",
    "text",
    "truncation",
    "previous_response_id",
    "prompt_cache_key",
    "service_tier",
    "output_config",
    "betas",
    "anthropic_version",
    "context_management",
    "container",
    "safety_identifier",
    "functions",
    "function_call",
];

/// Whether a file is an API log.
pub(super) fn is_api_log(source: &SessionFile) -> bool {
    let Ok(true) = has_lines(source) else {
        return is_api_document(source);
    };
    let Ok(input) = source.open() else {
        return false;
    };
    let lines = LineReader::with_limit(input, MAX_PROBED_BYTES)
        .take(MAX_PROBED_LINES)
        .map_while(Result::ok);
    let mut objects = lines.filter_map(|line| {
        let object: Option<Object> =
            value_limit::parse_limited(stream::event_data(&line.bytes)?).ok();
        object
    });
    objects.any(|object| is_api_record(&object))
}

/// Whether the first line is a whole record or an event stream field. Otherwise the file is one document.
pub(super) fn has_lines(source: &SessionFile) -> Result<bool, FileError> {
    let mut input = source.open()?;
    let start = input.fill_buf().on("read", source.path())?.trim_ascii_start();
    if [&b"data:"[..], b"event:", b":"].iter().any(|field| start.starts_with(field)) {
        return Ok(true);
    }
    if !start.starts_with(b"{") {
        return Ok(false);
    }
    let first = LineReader::with_limit(input, MAX_PROBED_BYTES).map_while(Result::ok);
    let first = first.take(MAX_PROBED_LINES).find(|line| !line.bytes.trim_ascii().is_empty());
    Ok(first
        .is_some_and(|line| serde_json::from_slice::<serde::de::IgnoredAny>(&line.bytes).is_ok()))
}

fn is_api_document(source: &SessionFile) -> bool {
    let Ok(input) = source.open() else {
        return false;
    };
    let mut head = Vec::new();
    if input.take(DOCUMENT_HEAD_BYTES).read_to_end(&mut head).is_err() || !may_be_document(&head) {
        return false;
    }
    match source.read_bytes().map(|bytes| json_repair::parse_lenient(&bytes)) {
        Ok(Ok(Value::Object(object))) => is_api_record(&object),
        Ok(Ok(Value::Array(records))) => {
            let mut objects = records.iter().take(MAX_PROBED_LINES).filter_map(Value::as_object);
            objects.any(is_api_record)
        }
        _ => false,
    }
}

fn may_be_document(head: &[u8]) -> bool {
    let head: Vec<u8> = head.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let has = |part: &str| memchr::memmem::find(&head, part.as_bytes()).is_some();
    let opens = head.starts_with(b"{") || head.starts_with(b"[{");
    let answer = has("\"object\":\"chat.completion\"")
        || has("\"object\":\"response\"")
        || (has("\"type\":\"message\"") && has("\"role\":\"assistant\""));
    opens && (answer || (has("\"model\":") && (has("\"messages\":[") || has("\"input\":"))))
}

fn is_api_record(object: &Object) -> bool {
    let part = |name| object.get(name).and_then(Value::as_object).map(super::part_body);
    ApiStreamAssembler::is_stream_event(object)
        || is_api_response(object)
        || is_api_request(object)
        || part("request").is_some_and(is_api_request)
        || part("response").is_some_and(is_api_response)
}

/// Whether an object is a whole response of one of the APIs.
pub(super) fn is_api_response(object: &Object) -> bool {
    let anthropic = text_field(object, "type") == Some("message")
        && text_field(object, "role") == Some("assistant")
        && text_field(object, "id").is_some()
        && text_field(object, "model").is_some()
        && object.get("content").is_some_and(Value::is_array)
        && object.get("usage").is_some_and(Value::is_object);
    match text_field(object, "object") {
        Some("chat.completion") => object.get("choices").is_some_and(Value::is_array),
        Some("response") => object.get("output").is_some_and(Value::is_array),
        _ => anthropic,
    }
}

/// Whether an object is a request to one of the APIs.
pub(super) fn is_api_request(object: &Object) -> bool {
    let has_messages = match (object.get("messages"), object.get("input")) {
        (Some(Value::Array(messages)), _) => {
            messages.iter().all(|message| message.get("role").is_some_and(Value::is_string))
        }
        (None, Some(Value::Array(_) | Value::String(_))) => true,
        _ => false,
    };
    has_messages
        && text_field(object, "model").is_some()
        && object.keys().all(|name| is_request_parameter(name))
}

/// Whether a field of this name belongs to a request.
pub(crate) fn is_request_parameter(name: &str) -> bool {
    REQUEST_PARAMETERS.contains(&name)
}
