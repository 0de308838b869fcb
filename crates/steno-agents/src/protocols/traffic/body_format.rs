//! Parses the fields of a request's body: JSON, forms, and multipart forms with files.

use serde_json::json;

use super::piece::HttpHeaders;
use crate::decoding::json_repair;
use steno_model::json::{Object, Value};

/// The format of a body's fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BodyFormat {
    /// JSON, or unknown.
    #[default]
    Json,
    /// `name=value&name=value`.
    Form,
    /// Parts separated by this boundary.
    Multipart(String),
}

impl BodyFormat {
    /// The format for a `content-type`.
    pub fn from_content_type(content_type: &str) -> Self {
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            "application/x-www-form-urlencoded" => BodyFormat::Form,
            "multipart/form-data" => {
                parse_boundary(content_type).map_or(BodyFormat::Json, BodyFormat::Multipart)
            }
            _ => BodyFormat::Json,
        }
    }

    /// The format for a request's headers.
    pub(super) fn from_headers(headers: &HttpHeaders) -> Self {
        let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-type");
        headers
            .iter()
            .find(named)
            .map_or(BodyFormat::Json, |(_, value)| Self::from_content_type(value))
    }

    /// Parses the fields of a body. A file is described by its type, length and hash.
    pub(super) fn parse_fields(&self, body: &[u8]) -> Option<Object> {
        match self {
            BodyFormat::Json => json_repair::parse_lenient(body).ok(),
            BodyFormat::Form => Some(parse_form_fields(body)),
            BodyFormat::Multipart(boundary) => {
                let parts = parse_parts(boundary, body);
                (!parts.is_empty()).then(|| fields_from_parts(&parts))
            }
        }
    }
}

fn parse_boundary(content_type: &str) -> Option<String> {
    let parameters = content_type.split(';').skip(1).filter_map(|field| field.split_once('='));
    let mut named = parameters.filter(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"));
    let boundary = named.next()?.1.trim().trim_matches('"');
    (!boundary.is_empty()).then(|| boundary.to_owned())
}

/// One part of a multipart body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MultipartSection<'a> {
    pub(super) name: String,
    pub(super) file_name: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) bytes: &'a [u8],
}

/// Parses the parts of a multipart body. A truncated body gives the parts that had begun.
pub(super) fn parse_parts<'a>(boundary: &str, body: &'a [u8]) -> Vec<MultipartSection<'a>> {
    let delimiter = [b"--", boundary.as_bytes()].concat();
    let starts: Vec<usize> = memchr::memmem::find_iter(body, &delimiter)
        .filter(|at| *at == 0 || body[..*at].ends_with(b"\n"))
        .collect();
    let ends = starts.iter().skip(1).copied().chain([body.len()]);
    let parts = starts.iter().zip(ends).filter_map(|(start, end)| {
        let part = &body[start + delimiter.len()..end];
        // The last delimiter ends with two more dashes.
        let part = if part.starts_with(b"--") { return None } else { part };
        parse_part(part.strip_suffix(b"\r\n").or(part.strip_suffix(b"\n")).unwrap_or(part))
    });
    parts.collect()
}

fn parse_part(part: &[u8]) -> Option<MultipartSection<'_>> {
    let crlf = memchr::memmem::find(part, b"\r\n\r\n").map(|at| (at, at + 4));
    let lf = memchr::memmem::find(part, b"\n\n").map(|at| (at, at + 2));
    let (head, start) = [crlf, lf].into_iter().flatten().min()?;
    let mut read = MultipartSection {
        name: String::new(),
        file_name: None,
        content_type: None,
        bytes: &part[start..],
    };
    for line in String::from_utf8_lossy(&part[..head]).lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-type") {
            read.content_type = Some(value.trim().to_owned());
        } else if name.eq_ignore_ascii_case("content-disposition") {
            read.name = quoted_parameter(value, "name").unwrap_or_default();
            read.file_name = quoted_parameter(value, "filename");
        }
    }
    Some(read)
}

/// The value of a parameter such as `name="file"`.
fn quoted_parameter(disposition: &str, parameter: &str) -> Option<String> {
    let mut fields = disposition.split(';').filter_map(|field| field.trim().split_once('='));
    let (_, value) = fields.find(|(name, _)| name.eq_ignore_ascii_case(parameter))?;
    Some(value.trim_matches('"').to_owned())
}

fn fields_from_parts(parts: &[MultipartSection<'_>]) -> Object {
    let mut fields = Object::new();
    for part in parts {
        let text = std::str::from_utf8(part.bytes).ok().filter(|_| part.file_name.is_none());
        let value = text.map_or_else(|| describe_file(part), str::to_owned);
        add_field(&mut fields, &part.name, value);
    }
    fields
}

fn describe_file(part: &MultipartSection<'_>) -> String {
    let name = part.file_name.as_deref().unwrap_or("file");
    let kind = part.content_type.as_deref().unwrap_or("data");
    format!("[{name}, {kind}, {} bytes, blake3 {}]", part.bytes.len(), blake3::hash(part.bytes))
}

fn parse_form_fields(body: &[u8]) -> Object {
    let mut fields = Object::new();
    for pair in body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let mut half = || decode_form_text(halves.next().unwrap_or_default());
        let (name, value) = (half(), half());
        add_field(&mut fields, &name, value);
    }
    fields
}

/// Adds a field. A repeated name gets a list of values.
fn add_field(fields: &mut Object, name: &str, value: String) {
    match fields.get_mut(name) {
        None => drop(fields.insert(name.to_owned(), value.into())),
        Some(Value::Array(values)) => values.push(value.into()),
        Some(first) => *first = json!([first.take(), value]),
    }
}

/// Decodes form text: `+` is a space, `%` starts two hex digits.
pub(super) fn decode_form_text(text: &[u8]) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let digits = text.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (text[at], byte) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 2;
            }
            (b'+', _) => decoded.push(b' '),
            (other, _) => decoded.push(other),
        }
        at += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_are_read_whatever_the_boundary() {
        let body = |boundary: &str| {
            format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n\
                 --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.mp3\"\r\n\
                 Content-Type: audio/mpeg\r\n\r\n\u{1}\r\n--\r\n--{boundary}--\r\n"
            )
        };
        let read = |boundary: &str| {
            let kind = format!("multipart/form-data; boundary=\"{boundary}\"");
            BodyFormat::from_content_type(&kind).parse_fields(body(boundary).as_bytes()).unwrap()
        };
        let fields = read("x");
        assert_eq!(fields["model"], "whisper");
        let hash = blake3::hash(b"\x01\r\n--");
        assert_eq!(fields["file"], format!("[a.mp3, audio/mpeg, 5 bytes, blake3 {hash}]"));
        assert_eq!(read("another-one"), fields);
    }

    #[test]
    fn forms_are_decoded() {
        let form = BodyFormat::from_content_type("application/x-www-form-urlencoded;charset=utf-8");
        let fields = form.parse_fields(b"a=1+2%26&b&a=%C3%BC&%zz=x").unwrap();
        assert_eq!(Value::Object(fields), json!({"a": ["1 2&", "\u{fc}"], "b": "", "%zz": "x"}));
    }

    proptest! {
        #[test]
        fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..60), at in 0..60_usize) {
            let mut body = body;
            body.splice(at.min(body.len())..at.min(body.len()), b"--b\r\n".iter().copied());
            for fields in [BodyFormat::Form, BodyFormat::Multipart("b".to_owned())] {
                fields.parse_fields(&body);
            }
        }
    }
}
