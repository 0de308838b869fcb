//! Redacts the bytes of a session file: lines of JSON, one JSON document, or text.

use std::io::{self, BufRead, Write};

use serde_json::from_slice;
use steno_model::json::Value;

use super::SecretRedactor;

/// The bytes of a file without its secrets. JSON stays JSON; a line without secrets stays as it is.
pub fn redact_file(redactor: &mut SecretRedactor, bytes: &[u8]) -> Vec<u8> {
    let mut redacted = Vec::with_capacity(bytes.len());
    write_redacted_file(redactor, bytes, &mut redacted).expect("a Vec takes all bytes");
    redacted
}

/// As [`redact_file`], but writes the bytes: a file can have many megabytes in one line.
pub fn write_redacted_file(
    redactor: &mut SecretRedactor,
    bytes: &[u8],
    out: &mut dyn Write,
) -> io::Result<()> {
    if let Ok(document) = from_slice::<Value>(bytes) {
        return write_redacted_document(redactor, document, bytes, out);
    }
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.try_for_each(|line| write_redacted_line(redactor, line, out))
}

fn write_redacted_line(
    redactor: &mut SecretRedactor,
    line: &[u8],
    out: &mut dyn Write,
) -> io::Result<()> {
    if let Ok(record) = from_slice::<Value>(line) {
        return write_redacted_document(redactor, record, line, out);
    }
    let before = redactor.count();
    let text = String::from_utf8_lossy(line);
    let redacted = redactor.redact_text(&text);
    // Bytes that are no text stay as they are where there is no secret.
    out.write_all(if redactor.count() > before { redacted.as_bytes() } else { line })
}

/// Writes the JSON value of these bytes. Nothing is rendered unless it has a secret.
fn write_redacted_document(
    redactor: &mut SecretRedactor,
    mut document: Value,
    bytes: &[u8],
    out: &mut dyn Write,
) -> io::Result<()> {
    let before = redactor.count();
    redactor.redact_value(None, &mut document);
    if redactor.count() == before {
        drop(document);
        return out.write_all(bytes);
    }
    let is_pretty = bytes.trim_ascii().contains(&b'\n');
    match is_pretty {
        true => serde_json::to_writer_pretty(&mut *out, &document)?,
        false => serde_json::to_writer(&mut *out, &document)?,
    }
    out.write_all(&bytes[bytes.trim_ascii_end().len()..])
}

/// Counts the secrets in the lines of a file.
pub fn search_file(redactor: &mut SecretRedactor, file: &mut dyn BufRead) -> io::Result<()> {
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line)? > 0 {
        write_redacted_line(redactor, &line, &mut io::sink())?;
        line.clear();
    }
    Ok(())
}
