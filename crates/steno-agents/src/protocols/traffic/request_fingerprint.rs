//! Fingerprints of requests, by which a replay finds the recorded exchange that matches a request.

use blake3::Hash;

use super::body_format::BodyFormat;
use super::body_meter::{BodyMeter, MeasuredBody};
use super::conversations::{comparable_parts, prefix_hashes};
use super::decoded_request::DecodedRequest;
use super::dialect::ApiDialect;
use super::exchange::ApiExchange;
use steno_model::json::{JsonStyle, Object, Value, sort_keys};

/// A request reduced to its API and its new messages.
#[derive(Clone, Debug)]
pub struct RequestFingerprint {
    shape: RequestShape,
    /// Hash of the messages after the model's last output.
    new_messages_hash: Hash,
    /// Length and hash of the body. They identify a body that was not kept whole.
    body_identity: Option<(u64, String)>,
    /// Whether the body was not kept whole, so only its length and hash can be compared.
    is_body_omitted: bool,
}

impl PartialEq for RequestFingerprint {
    fn eq(&self, other: &Self) -> bool {
        let is_same_body =
            self.body_identity.is_some() && self.body_identity == other.body_identity;
        let is_known = !self.is_body_omitted && !other.is_body_omitted;
        self.shape == other.shape
            && if is_known {
                self.new_messages_hash == other.new_messages_hash
            } else {
                is_same_body
            }
    }
}

/// A request to find in a recording.
#[derive(Clone, Copy, Debug)]
pub struct IncomingRequest<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The path and query.
    pub path: &'a str,
    /// The `content-type` header.
    pub content_type: &'a str,
    /// The body as a recording would have it: decompressed and without secrets.
    pub body: &'a [u8],
    /// The body as it was sent.
    pub sent_body: &'a [u8],
}

/// The form of the response that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RequestShape {
    method: String,
    dialect: ApiDialect,
    /// Set only for calls outside a conversation.
    path: String,
    is_stream: bool,
}

impl RequestFingerprint {
    /// The fingerprint of a request.
    pub fn new(request: IncomingRequest<'_>) -> Self {
        let fields = BodyFormat::from_content_type(request.content_type);
        let measured = BodyMeter::measure_body(&fields, request.sent_body);
        let body = Some(body_identity(measured));
        let IncomingRequest { method, path, body: bytes, .. } = request;
        Self {
            body_identity: body,
            ..Self::from_fields(method, path, fields.parse_fields(bytes).ok_or(bytes))
        }
    }

    /// The fingerprint of a recorded exchange.
    pub fn from_exchange(exchange: &ApiExchange) -> Self {
        let (method, path, body) =
            (&exchange.method, &exchange.path, exchange.decode_request_body());
        let measured = exchange.measured_request.clone();
        let is_body_unknown = measured.as_ref().is_some_and(|measured| measured.omitted > 0);
        let fields = exchange.request_format().parse_fields(&body.bytes);
        let question = Self::from_fields(method, path, fields.ok_or(&body.bytes));
        Self {
            body_identity: measured.map(body_identity),
            is_body_omitted: is_body_unknown,
            ..question
        }
    }

    /// The fingerprint of a request with these fields, or with these bytes if it has none.
    fn from_fields(method: &str, path: &str, request: Result<Object, &[u8]>) -> Self {
        let fields = request.as_ref().ok();
        let dialect = ApiDialect::from_request(method, path, fields);
        let is_stream = is_stream_requested(dialect, path, fields);
        let is_conversation = dialect != ApiDialect::Other && !dialect.is_single_call();
        let other = if is_conversation { "" } else { path_from_version(path) };
        let form =
            RequestShape { method: method.to_owned(), dialect, path: other.to_owned(), is_stream };
        let news = match request {
            Ok(request) if is_conversation => hash_new_messages(dialect, request),
            Ok(request) => {
                let sorted = sort_keys(&Value::Object(request));
                blake3::hash(JsonStyle::COMPACT.print(&sorted).as_bytes())
            }
            Err(bytes) => blake3::hash(bytes),
        };
        Self { shape: form, new_messages_hash: news, body_identity: None, is_body_omitted: false }
    }

    /// Whether both requests ask the same API for a response of the same form.
    pub fn has_same_shape(&self, other: &RequestFingerprint) -> bool {
        self.shape == other.shape
    }
}

/// Identifies a body by its hash and length. The length of a multipart body without its boundaries is not recorded, so
/// only the hash counts there.
fn body_identity(measured: MeasuredBody) -> (u64, String) {
    match measured.content_blake3 {
        Some(content) => (0, content),
        None => (measured.length, measured.blake3),
    }
}

fn hash_new_messages(dialect: ApiDialect, request: Object) -> Hash {
    let decoded = DecodedRequest::from_object(dialect, request);
    let parts = comparable_parts(&decoded.messages);
    let first_new = parts.iter().rposition(|part| part.is_answer).map_or(0, |at| at + 1);
    let points = prefix_hashes(blake3::hash(b""), &parts[first_new..]);
    points[points.len() - 1]
}

/// Whether the request asks for a stream, by a field or by its path. Ollama streams unless the request says otherwise.
fn is_stream_requested(dialect: ApiDialect, path: &str, request: Option<&Object>) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let ends = [":streamGenerateContent", ":streamRawPredict", "-stream"];
    let flag = request.and_then(|request| request.get("stream")).and_then(Value::as_bool);
    let is_ollama = matches!(dialect, ApiDialect::OllamaChat | ApiDialect::OllamaGenerate);
    flag.unwrap_or(is_ollama) || ends.iter().any(|end| path.ends_with(end))
}

/// The path from its version on. The prefix is for the gateway.
fn path_from_version(path: &str) -> &str {
    let path = path.split('?').next().unwrap_or_default();
    path.find("/v1").map_or(path, |at| &path[at..])
}
