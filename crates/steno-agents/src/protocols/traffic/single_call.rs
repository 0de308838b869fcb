//! Decodes calls outside a conversation: embeddings, images, speech, files and batches.
//!
//! Entries describe the request and the response in words. The recording keeps the bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

use super::decoded_request::normalize_entry;
use super::decoded_response::DecodedResponse;
use super::dialect::ApiDialect;
use super::event_stream::{ServerSentEvents, is_event_stream};
use super::exchange::ApiExchange;
use crate::decoding::json_fields::{count_field, list_field, object_field, text_field};
use crate::decoding::{attachment, json_repair, usage};
use crate::protocols::api_log::{response_entries, response_usage};
use crate::protocols::responses::content_text;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{JsonStyle, Object, Value};

/// Limit for the text of an entry. The recording keeps all of it.
const MAX_SHOWN_BYTES: usize = 64 << 10;

/// Entries for a request.
pub(super) fn request_entries(dialect: ApiDialect, request: &Object) -> Vec<Entry> {
    let content = match dialect {
        ApiDialect::Embeddings => join_inputs(&embedding_inputs(request)),
        ApiDialect::Images => image_prompt(request),
        ApiDialect::Speech => join_fields(request, &["instructions", "input"]),
        ApiDialect::Transcription => join_fields(request, &["file", "prompt"]),
        ApiDialect::Files => join_fields(request, &["file", "purpose"]),
        ApiDialect::Batches => describe_batch_request(request),
        _ => String::new(),
    };
    if content.is_empty() {
        Vec::new()
    } else {
        vec![Entry::new(Role::User, EntryKind::Text, content)]
    }
}

/// Decodes a response.
pub(super) fn decode_single_response(
    dialect: ApiDialect,
    exchange: &ApiExchange,
    body: &[u8],
) -> DecodedResponse {
    match dialect {
        ApiDialect::BatchResults => decode_batch_results(body),
        ApiDialect::Speech if !is_event_stream(body) => {
            DecodedResponse::from_text(describe_bytes(exchange, body))
        }
        ApiDialect::Speech | ApiDialect::Transcription if is_event_stream(body) => {
            decode_audio_stream(body)
        }
        _ => match json_repair::parse_lenient::<Value>(body) {
            Ok(Value::Object(whole)) => decode_object(dialect, whole),
            // A transcript may be plain text or subtitles.
            _ if dialect == ApiDialect::Transcription => {
                DecodedResponse::from_text(String::from_utf8_lossy(body).trim_end().to_owned())
            }
            _ => DecodedResponse {
                error: Some("the response is not JSON".to_owned()),
                ..DecodedResponse::default()
            },
        },
    }
}

fn decode_object(dialect: ApiDialect, whole: Object) -> DecodedResponse {
    let content = match dialect {
        ApiDialect::Embeddings => describe_embeddings(&whole),
        ApiDialect::Images => describe_images(&whole),
        ApiDialect::Transcription => text_field(&whole, "text").unwrap_or_default().to_owned(),
        ApiDialect::Files => {
            format!(
                "[file {}]",
                text_field(&whole, "id").or(text_field(&whole, "name")).unwrap_or_default()
            )
        }
        _ => describe_batch_state(&whole),
    };
    let provider_usage =
        ["usage", "meta", "usageMetadata"].iter().find_map(|name| whole.get(*name));
    DecodedResponse {
        id: text_field(&whole, "id").map(str::to_owned),
        model: text_field(&whole, "model").map(str::to_owned),
        usage: response_tokens(&whole).filter(|usage| !usage.is_empty()),
        provider_usage: provider_usage.cloned(),
        ..DecodedResponse::from_text(content)
    }
}

/// Usage, under any provider's field names.
fn response_tokens(whole: &Object) -> Option<Usage> {
    if let Some(usage) = object_field(whole, "usage") {
        return Some(usage::openai_usage(usage));
    }
    if let Some(metadata) = object_field(whole, "usageMetadata") {
        return Some(usage::gemini_usage(metadata));
    }
    let units = object_field(whole, "meta").and_then(|meta| object_field(meta, "billed_units"));
    let units =
        units.map_or(0, |units| count_field(units, "input_tokens") + count_field(units, "images"));
    let input =
        units + count_field(whole, "prompt_eval_count") + count_field(whole, "inputTextTokenCount");
    Some(Usage { input, ..Usage::default() })
}

fn embedding_inputs(request: &Object) -> Vec<String> {
    let fields = ["input", "texts", "inputText", "prompt", "inputs", "images"];
    let input = fields.iter().find_map(|name| request.get(*name));
    let of_value = |value: &Value| match value {
        Value::Array(items) if items.iter().all(Value::is_number) => {
            format!("[{} tokens]", items.len())
        }
        Value::Object(content) => content_text(content.get("parts").unwrap_or(value)),
        other => content_text(other),
    };
    match input {
        Some(Value::Array(items)) if !items.iter().all(Value::is_number) => {
            items.iter().map(of_value).collect()
        }
        Some(value) => vec![of_value(value)],
        // Gemini: one content, or a list of requests with one each.
        None => {
            let requests =
                list_field(request, "requests").iter().filter_map(|item| item.get("content"));
            requests.chain(request.get("content")).map(of_value).collect()
        }
    }
}

/// Joins texts up to the limit, and counts the rest.
fn join_inputs(inputs: &[String]) -> String {
    let mut joined = String::new();
    for (at, input) in inputs.iter().enumerate() {
        if !joined.is_empty() && joined.len() + input.len() > MAX_SHOWN_BYTES {
            return format!("{joined}\n\n[{} more inputs]", inputs.len() - at);
        }
        if at > 0 {
            joined.push_str("\n\n");
        }
        joined.push_str(input);
    }
    joined
}

fn describe_embeddings(whole: &Object) -> String {
    let typed = object_field(whole, "embeddings").and_then(|by_type| by_type.values().next());
    let single = object_field(whole, "embedding").and_then(|single| single.get("values"));
    let single = single.or(whole.get("embedding"));
    let list: Vec<&Value> = match (typed.and_then(Value::as_array), single) {
        (Some(typed), _) => typed.iter().collect(),
        (None, Some(single)) => vec![single],
        (None, None) => {
            list_field(whole, "data").iter().chain(list_field(whole, "embeddings")).collect()
        }
    };
    let vector = |item: &Value| match item.get("embedding").or(item.get("values")).unwrap_or(item) {
        Value::Array(numbers) => numbers.len(),
        // Each number takes four bytes.
        Value::String(base64) => BASE64.decode(base64).map_or(0, |bytes| bytes.len() / 4),
        _ => 0,
    };
    let numbers = list.first().map_or(0, |first| vector(first));
    format!("[{} embeddings of {numbers} numbers]", list.len())
}

fn image_prompt(request: &Object) -> String {
    let nested = request.values().find_map(|value| value.get("text")?.as_str());
    let weighted =
        list_field(request, "text_prompts").iter().find_map(|prompt| prompt.get("text")?.as_str());
    let prompt_text = text_field(request, "prompt").or(weighted).or(nested).unwrap_or_default();
    let files = ["image", "image[]", "mask"].iter().filter_map(|name| text_field(request, name));
    let parts: Vec<_> =
        std::iter::once(prompt_text).chain(files).filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

fn describe_images(whole: &Object) -> String {
    let lists = ["data", "images", "artifacts"].iter().flat_map(|name| list_field(whole, name));
    let described = lists.map(|image| {
        let data = image.get("b64_json").or(image.get("base64")).unwrap_or(image).as_str();
        let named = match (data, image.get("url").and_then(Value::as_str)) {
            (Some(data), _) => attachment::describe_base64(Some("image"), data),
            (None, Some(url)) => attachment::describe_url("image", url),
            (None, None) => "[image]".to_owned(),
        };
        match image.get("revised_prompt").and_then(Value::as_str) {
            Some(prompt) => format!("{named}\n{prompt}"),
            None => named,
        }
    });
    described.collect::<Vec<_>>().join("\n")
}

fn join_fields(request: &Object, fields: &[&str]) -> String {
    let texts: Vec<_> = fields.iter().filter_map(|field| text_field(request, field)).collect();
    texts.join("\n")
}

/// Describes bytes by type, length and hash.
pub(super) fn describe_bytes(exchange: &ApiExchange, bytes: &[u8]) -> String {
    let kind = exchange.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let kind = kind.map_or("data", |(_, value)| value.as_str());
    format!("[{kind}, {} bytes, blake3 {}]", bytes.len(), blake3::hash(bytes))
}

/// Decodes a stream of transcript or speech events: joins texts and counts audio bytes.
fn decode_audio_stream(body: &[u8]) -> DecodedResponse {
    let (mut content, mut audio) = (String::new(), Vec::new());
    let mut reply = DecodedResponse::default();
    let mut has_ended = false;
    for event in ServerSentEvents::new(body) {
        let Ok(event) = json_repair::parse_lenient::<Object>(&event.data) else { continue };
        match text_field(&event, "type").unwrap_or_default() {
            "transcript.text.delta" => {
                content.push_str(text_field(&event, "delta").unwrap_or_default())
            }
            "speech.audio.delta" => {
                let encoded = text_field(&event, "audio").unwrap_or_default();
                audio.extend(BASE64.decode(encoded).unwrap_or_default());
            }
            "transcript.text.done" | "speech.audio.done" => {
                has_ended = true;
                reply.usage = object_field(&event, "usage").map(usage::openai_usage);
                reply.provider_usage = event.get("usage").cloned();
            }
            _ => {}
        }
    }
    if !audio.is_empty() {
        content = format!("[audio, {} bytes, blake3 {}]", audio.len(), blake3::hash(&audio));
    }
    if !has_ended {
        reply.error = Some("the stream ended before its last event".to_owned());
    }
    DecodedResponse {
        usage: reply.usage,
        provider_usage: reply.provider_usage,
        error: reply.error,
        ..DecodedResponse::from_text(content)
    }
}

fn describe_batch_request(request: &Object) -> String {
    let requests = request.get("requests").or(request.get("batch"));
    match requests.and_then(Value::as_array) {
        Some(requests) => format!("[batch of {} requests]", requests.len()),
        None => JsonStyle::COMPACT.print(request),
    }
}

fn describe_batch_state(whole: &Object) -> String {
    let state =
        ["status", "processing_status", "state"].iter().find_map(|name| text_field(whole, name));
    let id = text_field(whole, "id").or(text_field(whole, "name")).unwrap_or_default();
    format!("[batch {id}: {}]", state.unwrap_or("accepted"))
}

/// Decodes batch results: one per line, each billed under its own id.
fn decode_batch_results(body: &[u8]) -> DecodedResponse {
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let results = lines.filter_map(|line| json_repair::parse_lenient::<Object>(line).ok());
    let entries = results.flat_map(|result| decode_batch_result(&result)).collect();
    DecodedResponse { batch_entries: entries, ..DecodedResponse::default() }
}

fn decode_batch_result(result: &Object) -> Vec<Entry> {
    let about = json!({"batch": true, "custom_id": result.get("custom_id")});
    let about = about.as_object().cloned();
    let answer = result.get("result").and_then(|result| result.get("message"));
    let answer = answer.or(result.get("response").and_then(|response| response.get("body")));
    let Some(answer) = answer.and_then(Value::as_object) else {
        let error = result.get("error").or(result.get("result")).filter(|error| !error.is_null());
        let is_result = result.contains_key("custom_id");
        let error = error.filter(|_| is_result).map(|error| {
            let mut entry =
                Entry::new(Role::System, EntryKind::Error, JsonStyle::COMPACT.print(error));
            entry.metadata = about;
            entry
        });
        return error.into_iter().collect();
    };
    let mut entries = response_entries(answer);
    for entry in &mut entries {
        normalize_entry(entry);
        entry.message_id = text_field(answer, "id").map(str::to_owned);
        entry.model = text_field(answer, "model").map(str::to_owned);
        entry.metadata.clone_from(&about);
    }
    if let Some(last) = entries.last_mut() {
        last.usage = response_usage(answer);
    }
    entries
}
