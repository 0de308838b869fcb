//! Decodes calls outside a conversation: embeddings, images, speech, files and batches.
//!
//! Entries describe the request and the response in words. The recording keeps the bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

use super::dialect::Dialect;
use super::event_stream::{ServerSentEvents, is_event_stream};
use super::exchange::Exchange;
use super::reply::Reply;
use super::request::settle;
use crate::agent::api_log::{response_entries, response_usage};
use crate::agent::fields::{count, list, object, text};
use crate::agent::responses::content_text;
use crate::agent::{attachment, repair, usage};
use crate::entry::{Entry, Kind, Role, Usage};
use crate::json::{Object, Style, Value};

/// Limit for the text of an entry. The recording keeps all of it.
const SHOWN_BYTES: usize = 64 << 10;

/// Entries for a request.
pub(super) fn asked_entries(dialect: Dialect, request: &Object) -> Vec<Entry> {
    let content = match dialect {
        Dialect::Embeddings => shortened(&embedding_inputs(request)),
        Dialect::Images => image_prompt(request),
        Dialect::Speech => texts(request, &["instructions", "input"]),
        Dialect::Transcription => texts(request, &["file", "prompt"]),
        Dialect::Files => texts(request, &["file", "purpose"]),
        Dialect::Batches => batch_request(request),
        _ => String::new(),
    };
    if content.is_empty() { Vec::new() } else { vec![Entry::new(Role::User, Kind::Text, content)] }
}

/// Decodes a response.
pub(super) fn reply(dialect: Dialect, exchange: &Exchange, body: &[u8]) -> Reply {
    match dialect {
        Dialect::BatchResults => batch_results(body),
        Dialect::Speech if !is_event_stream(body) => Reply::of_text(named_bytes(exchange, body)),
        Dialect::Speech | Dialect::Transcription if is_event_stream(body) => streamed_audio(body),
        _ => match repair::parse::<Value>(body) {
            Ok(Value::Object(whole)) => whole_reply(dialect, whole),
            // A transcript may be plain text or subtitles.
            _ if dialect == Dialect::Transcription => {
                Reply::of_text(String::from_utf8_lossy(body).trim_end().to_owned())
            }
            _ => Reply { error: Some("the response is not JSON".to_owned()), ..Reply::default() },
        },
    }
}

fn whole_reply(dialect: Dialect, whole: Object) -> Reply {
    let content = match dialect {
        Dialect::Embeddings => embeddings(&whole),
        Dialect::Images => images(&whole),
        Dialect::Transcription => text(&whole, "text").unwrap_or_default().to_owned(),
        Dialect::Files => {
            format!("[file {}]", text(&whole, "id").or(text(&whole, "name")).unwrap_or_default())
        }
        _ => batch_state(&whole),
    };
    let provider_usage =
        ["usage", "meta", "usageMetadata"].iter().find_map(|name| whole.get(*name));
    Reply {
        id: text(&whole, "id").map(str::to_owned),
        model: text(&whole, "model").map(str::to_owned),
        usage: stated_tokens(&whole).filter(|usage| !usage.is_empty()),
        stated_usage: provider_usage.cloned(),
        ..Reply::of_text(content)
    }
}

/// Usage, under any provider's field names.
fn stated_tokens(whole: &Object) -> Option<Usage> {
    if let Some(usage) = object(whole, "usage") {
        return Some(usage::openai(usage));
    }
    if let Some(metadata) = object(whole, "usageMetadata") {
        return Some(usage::gemini(metadata));
    }
    let units = object(whole, "meta").and_then(|meta| object(meta, "billed_units"));
    let units = units.map_or(0, |units| count(units, "input_tokens") + count(units, "images"));
    let input = units + count(whole, "prompt_eval_count") + count(whole, "inputTextTokenCount");
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
            let requests = list(request, "requests").iter().filter_map(|item| item.get("content"));
            requests.chain(request.get("content")).map(of_value).collect()
        }
    }
}

/// Joins texts up to the limit, and counts the rest.
fn shortened(inputs: &[String]) -> String {
    let mut joined = String::new();
    for (at, input) in inputs.iter().enumerate() {
        if !joined.is_empty() && joined.len() + input.len() > SHOWN_BYTES {
            return format!("{joined}\n\n[{} more inputs]", inputs.len() - at);
        }
        if at > 0 {
            joined.push_str("\n\n");
        }
        joined.push_str(input);
    }
    joined
}

fn embeddings(whole: &Object) -> String {
    let typed = object(whole, "embeddings").and_then(|by_type| by_type.values().next());
    let single = object(whole, "embedding").and_then(|single| single.get("values"));
    let single = single.or(whole.get("embedding"));
    let list: Vec<&Value> = match (typed.and_then(Value::as_array), single) {
        (Some(typed), _) => typed.iter().collect(),
        (None, Some(single)) => vec![single],
        (None, None) => list(whole, "data").iter().chain(list(whole, "embeddings")).collect(),
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
        list(request, "text_prompts").iter().find_map(|prompt| prompt.get("text")?.as_str());
    let prompt_text = text(request, "prompt").or(weighted).or(nested).unwrap_or_default();
    let files = ["image", "image[]", "mask"].iter().filter_map(|name| text(request, name));
    let parts: Vec<_> =
        std::iter::once(prompt_text).chain(files).filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

fn images(whole: &Object) -> String {
    let lists = ["data", "images", "artifacts"].iter().flat_map(|name| list(whole, name));
    let described = lists.map(|image| {
        let data = image.get("b64_json").or(image.get("base64")).unwrap_or(image).as_str();
        let named = match (data, image.get("url").and_then(Value::as_str)) {
            (Some(data), _) => attachment::media(Some("image"), data),
            (None, Some(url)) => attachment::url("image", url),
            (None, None) => "[image]".to_owned(),
        };
        match image.get("revised_prompt").and_then(Value::as_str) {
            Some(prompt) => format!("{named}\n{prompt}"),
            None => named,
        }
    });
    described.collect::<Vec<_>>().join("\n")
}

fn texts(request: &Object, fields: &[&str]) -> String {
    let texts: Vec<_> = fields.iter().filter_map(|field| text(request, field)).collect();
    texts.join("\n")
}

/// Describes bytes by type, length and hash.
pub(super) fn named_bytes(exchange: &Exchange, bytes: &[u8]) -> String {
    let kind = exchange.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let kind = kind.map_or("data", |(_, value)| value.as_str());
    format!("[{kind}, {} bytes, blake3 {}]", bytes.len(), blake3::hash(bytes))
}

/// Decodes a stream of transcript or speech events: joins texts and counts audio bytes.
fn streamed_audio(body: &[u8]) -> Reply {
    let (mut content, mut audio) = (String::new(), Vec::new());
    let mut reply = Reply::default();
    let mut has_ended = false;
    for event in ServerSentEvents::new(body) {
        let Ok(event) = repair::parse::<Object>(&event.data) else { continue };
        match text(&event, "type").unwrap_or_default() {
            "transcript.text.delta" => content.push_str(text(&event, "delta").unwrap_or_default()),
            "speech.audio.delta" => {
                let encoded = text(&event, "audio").unwrap_or_default();
                audio.extend(BASE64.decode(encoded).unwrap_or_default());
            }
            "transcript.text.done" | "speech.audio.done" => {
                has_ended = true;
                reply.usage = object(&event, "usage").map(usage::openai);
                reply.stated_usage = event.get("usage").cloned();
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
    Reply {
        usage: reply.usage,
        stated_usage: reply.stated_usage,
        error: reply.error,
        ..Reply::of_text(content)
    }
}

fn batch_request(request: &Object) -> String {
    let requests = request.get("requests").or(request.get("batch"));
    match requests.and_then(Value::as_array) {
        Some(requests) => format!("[batch of {} requests]", requests.len()),
        None => Style::COMPACT.print(request),
    }
}

fn batch_state(whole: &Object) -> String {
    let state = ["status", "processing_status", "state"].iter().find_map(|name| text(whole, name));
    let id = text(whole, "id").or(text(whole, "name")).unwrap_or_default();
    format!("[batch {id}: {}]", state.unwrap_or("accepted"))
}

/// Decodes batch results: one per line, each billed under its own id.
fn batch_results(body: &[u8]) -> Reply {
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let results = lines.filter_map(|line| repair::parse::<Object>(line).ok());
    let entries = results.flat_map(|result| batch_result(&result)).collect();
    Reply { own_entries: entries, ..Reply::default() }
}

fn batch_result(result: &Object) -> Vec<Entry> {
    let about = json!({"batch": true, "custom_id": result.get("custom_id")});
    let about = about.as_object().cloned();
    let answer = result.get("result").and_then(|result| result.get("message"));
    let answer = answer.or(result.get("response").and_then(|response| response.get("body")));
    let Some(answer) = answer.and_then(Value::as_object) else {
        let error = result.get("error").or(result.get("result")).filter(|error| !error.is_null());
        let is_result = result.contains_key("custom_id");
        let error = error.filter(|_| is_result).map(|error| {
            let mut entry = Entry::new(Role::System, Kind::Error, Style::COMPACT.print(error));
            entry.metadata = about;
            entry
        });
        return error.into_iter().collect();
    };
    let mut entries = response_entries(answer);
    for entry in &mut entries {
        settle(entry);
        entry.message_id = text(answer, "id").map(str::to_owned);
        entry.model = text(answer, "model").map(str::to_owned);
        entry.metadata.clone_from(&about);
    }
    if let Some(last) = entries.last_mut() {
        last.usage = response_usage(answer);
    }
    entries
}
