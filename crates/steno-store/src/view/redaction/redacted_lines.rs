//! Redacts the bytes of a session file: lines of JSON, one JSON document, or text.

use std::io::{self, BufRead};

use serde_json::from_slice;
use steno_model::json::Value;

use super::SecretRedactor;

/// The bytes of a file without its secrets. JSON stays JSON; a line without secrets stays as it is.
pub fn redact_file(redactor: &mut SecretRedactor, bytes: &[u8]) -> Vec<u8> {
    if let Ok(mut document) = from_slice::<Value>(bytes) {
        let before = redactor.count();
        redactor.redact_value(None, &mut document);
        let is_pretty = bytes.trim_ascii().contains(&b'\n');
        let rendered = match is_pretty {
            true => serde_json::to_vec_pretty(&document),
            false => serde_json::to_vec(&document),
        };
        return match rendered {
            Ok(mut rendered) if redactor.count() > before => {
                rendered.extend_from_slice(&bytes[bytes.trim_ascii_end().len()..]);
                rendered
            }
            _ => bytes.to_vec(),
        };
    }
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .flat_map(|line| redact_line(redactor, line))
        .collect()
}

fn redact_line(redactor: &mut SecretRedactor, line: &[u8]) -> Vec<u8> {
    let before = redactor.count();
    let Ok(mut record) = from_slice::<Value>(line) else {
        let text = String::from_utf8_lossy(line);
        let redacted = redactor.redact_text(&text).into_owned();
        // Bytes that are no text stay as they are where there is no secret.
        return if redactor.count() > before { redacted.into_bytes() } else { line.to_vec() };
    };
    redactor.redact_value(None, &mut record);
    match serde_json::to_vec(&record) {
        Ok(mut rendered) if redactor.count() > before => {
            rendered.extend_from_slice(&line[line.trim_ascii_end().len()..]);
            rendered
        }
        _ => line.to_vec(),
    }
}

/// Counts the secrets in the lines of a file.
pub fn search_file(redactor: &mut SecretRedactor, file: &mut dyn BufRead) -> io::Result<()> {
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line)? > 0 {
        redact_line(redactor, &line);
        line.clear();
    }
    Ok(())
}
