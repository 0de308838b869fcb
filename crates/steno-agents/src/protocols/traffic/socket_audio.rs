//! Strips audio from the messages of a realtime connection before they are recorded.

use memchr::memmem;

use steno_model::json::{Object, Value};

/// Shorter strings are not audio.
const MIN_AUDIO_CHARS: usize = 64;

/// A message without its audio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortenedMessage {
    /// The message, with a placeholder for the audio.
    pub text: String,
    /// How many bytes of audio were removed.
    pub omitted: u64,
}

/// Strips audio from a message. Returns `None` if it has none.
pub fn strip_audio(message: &[u8]) -> Option<ShortenedMessage> {
    memmem::find(message, b"audio")?;
    let Ok(Value::Object(mut event)) = serde_json::from_slice(message) else { return None };
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
    let mut omitted = 0;
    if kind.ends_with("audio.delta") {
        strip_field(&mut event, "delta", &mut omitted);
    }
    let mut event = Value::Object(event);
    strip_audio_fields(&mut event, &mut omitted);
    (omitted > 0).then(|| ShortenedMessage { text: event.to_string(), omitted })
}

/// Strips every field named `audio`.
fn strip_audio_fields(value: &mut Value, omitted: &mut u64) {
    match value {
        Value::Object(object) => {
            strip_field(object, "audio", omitted);
            object.values_mut().for_each(|value| strip_audio_fields(value, omitted));
        }
        Value::Array(values) => {
            values.iter_mut().for_each(|value| strip_audio_fields(value, omitted))
        }
        _ => {}
    }
}

fn strip_field(object: &mut Object, field: &str, omitted: &mut u64) {
    if let Some(Value::String(sound)) = object.get_mut(field)
        && sound.len() >= MIN_AUDIO_CHARS
    {
        let count = sound.trim_end_matches('=').len() as u64 * 3 / 4;
        *omitted += count;
        *sound = format!("[{count} bytes of audio, not recorded]");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_is_replaced_by_its_size() {
        let sound = "QUJD".repeat(100);
        let shortened = |message: String| strip_audio(message.as_bytes());
        let append =
            shortened(format!(r#"{{"type":"input_audio_buffer.append","audio":"{sound}"}}"#));
        let text =
            r#"{"type":"input_audio_buffer.append","audio":"[300 bytes of audio, not recorded]"}"#;
        assert_eq!(append, Some(ShortenedMessage { text: text.to_owned(), omitted: 300 }));
        let delta = shortened(format!(
            r#"{{"type":"response.output_audio.delta","delta":"{sound}","n":1.50}}"#
        ));
        let text = r#"{"type":"response.output_audio.delta","delta":"[300 bytes of audio, not recorded]","n":1.50}"#;
        assert_eq!(delta.unwrap().text, text);
        let nested = shortened(format!(
            r#"{{"type":"conversation.item.create","item":{{"content":[{{"type":"input_audio","audio":"{sound}"}}]}}}}"#
        ));
        assert_eq!(nested.unwrap().omitted, 300);
        let transcript = r#"{"type":"response.output_audio_transcript.delta","delta":"said"}"#;
        assert_eq!(shortened(transcript.to_owned()), None);
        assert_eq!(shortened("audio, but no JSON".to_owned()), None);
    }
}
