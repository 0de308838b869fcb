//! Fingerprints of requests, by which a replay finds the recorded exchange that matches a request.

use blake3::Hash;

use super::body_meter::{BodyMeter, MeasuredBody};
use super::conversations::{chain, parts};
use super::dialect::Dialect;
use super::exchange::Exchange;
use super::form_body::BodyFields;
use super::request::Asked;
use crate::json::{Object, Style, Value, sorted};

/// A request reduced to its API and its new messages.
#[derive(Clone, Debug)]
pub struct Question {
    form: Form,
    /// Hash of the messages after the model's last output.
    news: Hash,
    /// Length and hash of the body. They identify a body that was not kept whole.
    body: Option<(u64, String)>,
    /// Whether the body was not kept whole, so only its length and hash can be compared.
    is_body_unknown: bool,
}

impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        let is_same_body = self.body.is_some() && self.body == other.body;
        let is_known = !self.is_body_unknown && !other.is_body_unknown;
        self.form == other.form && if is_known { self.news == other.news } else { is_same_body }
    }
}

/// A request to find in a recording.
#[derive(Clone, Copy, Debug)]
pub struct AskedRequest<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The path and query.
    pub path: &'a str,
    /// The `content-type` header.
    pub content_type: &'a str,
    /// The body as a recording would have it: decompressed and without secrets.
    pub body: &'a [u8],
    /// The body as it was sent.
    pub sent: &'a [u8],
}

/// The form of the response that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Form {
    method: String,
    dialect: Dialect,
    /// Set only for calls outside a conversation.
    path: String,
    is_stream: bool,
}

impl Question {
    /// The fingerprint of a request.
    pub fn new(request: AskedRequest<'_>) -> Self {
        let fields = BodyFields::of_content_type(request.content_type);
        let measured = BodyMeter::measure(&fields, request.sent);
        let body = Some(identity(measured));
        let AskedRequest { method, path, body: bytes, .. } = request;
        Self { body, ..Self::of_fields(method, path, fields.read(bytes).ok_or(bytes)) }
    }

    /// The fingerprint of a recorded exchange.
    pub fn of(exchange: &Exchange) -> Self {
        let (method, path, body) = (&exchange.method, &exchange.path, exchange.request_body());
        let measured = exchange.measured_request.clone();
        let is_body_unknown = measured.as_ref().is_some_and(|measured| measured.omitted > 0);
        let fields = exchange.request_fields().read(&body.bytes);
        let question = Self::of_fields(method, path, fields.ok_or(&body.bytes));
        Self { body: measured.map(identity), is_body_unknown, ..question }
    }

    /// The fingerprint of a request with these fields, or with these bytes if it has none.
    fn of_fields(method: &str, path: &str, request: Result<Object, &[u8]>) -> Self {
        let fields = request.as_ref().ok();
        let dialect = Dialect::of_request(method, path, fields);
        let is_stream = asks_for_stream(dialect, path, fields);
        let is_conversation = dialect != Dialect::Other && !dialect.is_single_call();
        let other = if is_conversation { "" } else { own_path(path) };
        let form = Form { method: method.to_owned(), dialect, path: other.to_owned(), is_stream };
        let news = match request {
            Ok(request) if is_conversation => said_anew(dialect, request),
            Ok(request) => {
                let sorted = sorted(&Value::Object(request));
                blake3::hash(Style::COMPACT.print(&sorted).as_bytes())
            }
            Err(bytes) => blake3::hash(bytes),
        };
        Self { form, news, body: None, is_body_unknown: false }
    }

    /// Whether both requests ask the same API for a response of the same form.
    pub fn is_like(&self, other: &Question) -> bool {
        self.form == other.form
    }
}

/// Identifies a body by its hash and length. The length of a multipart body without its boundaries is not recorded, so
/// only the hash counts there.
fn identity(measured: MeasuredBody) -> (u64, String) {
    match measured.content_blake3 {
        Some(content) => (0, content),
        None => (measured.length, measured.blake3),
    }
}

fn said_anew(dialect: Dialect, request: Object) -> Hash {
    let decoded = Asked::of(dialect, request);
    let parts = parts(&decoded.said);
    let first_new = parts.iter().rposition(|part| part.is_answer).map_or(0, |at| at + 1);
    let points = chain(blake3::hash(b""), &parts[first_new..]);
    points[points.len() - 1]
}

/// Whether the request asks for a stream, by a field or by its path. Ollama streams unless the request says otherwise.
fn asks_for_stream(dialect: Dialect, path: &str, request: Option<&Object>) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let ends = [":streamGenerateContent", ":streamRawPredict", "-stream"];
    let flag = request.and_then(|request| request.get("stream")).and_then(Value::as_bool);
    let is_ollama = matches!(dialect, Dialect::OllamaChat | Dialect::OllamaGenerate);
    flag.unwrap_or(is_ollama) || ends.iter().any(|end| path.ends_with(end))
}

/// The path from its version on. The prefix is for the gateway.
fn own_path(path: &str) -> &str {
    let path = path.split('?').next().unwrap_or_default();
    path.find("/v1").map_or(path, |at| &path[at..])
}
