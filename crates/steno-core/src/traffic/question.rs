//! What is new in a request, by which it is found again in a record.

use blake3::Hash;

use super::conversations::{chain, parts};
use super::dialect::Dialect;
use super::exchange::Exchange;
use super::request::Asked;
use crate::agent::repair;
use crate::json::{Object, Style, Value, sorted};

/// A request, reduced to its API and to what it says that was not said before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    form: Form,
    /// The sum over all that follows the model's last words.
    news: Hash,
}

/// What the answer will look like.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Form {
    method: String,
    dialect: Dialect,
    /// Where the API is none that is understood.
    path: String,
    is_stream: bool,
}

impl Question {
    /// The question of a request.
    pub fn new(method: &str, path: &str, body: &[u8]) -> Self {
        let request: Option<Object> = repair::parse(body).ok();
        let dialect = Dialect::of_request(method, path, request.as_ref());
        let is_stream = asks_for_stream(dialect, path, request.as_ref());
        let other = if dialect == Dialect::Other { own_path(path) } else { "" };
        let form = Form { method: method.to_owned(), dialect, path: other.to_owned(), is_stream };
        let news = match request {
            Some(request) if dialect != Dialect::Other => said_anew(dialect, request),
            Some(request) => {
                let sorted = sorted(&Value::Object(request));
                blake3::hash(Style::COMPACT.print(&sorted).as_bytes())
            }
            None => blake3::hash(body),
        };
        Self { form, news }
    }

    /// The question of a recorded exchange.
    pub fn of(exchange: &Exchange) -> Self {
        Self::new(&exchange.method, &exchange.path, &exchange.request_body().bytes)
    }

    /// Whether both ask the same API for an answer of the same form.
    pub fn is_like(&self, other: &Question) -> bool {
        self.form == other.form
    }
}

fn said_anew(dialect: Dialect, request: Object) -> Hash {
    let asked = Asked::of(dialect, request);
    let parts = parts(&asked.said);
    let news = parts.iter().rposition(|part| part.is_answer).map_or(0, |at| at + 1);
    let points = chain(blake3::hash(b""), &parts[news..]);
    points[points.len() - 1]
}

/// Whether the answer is to come in pieces: a field says so, or the path. Ollama streams unless it is told not to.
fn asks_for_stream(dialect: Dialect, path: &str, request: Option<&Object>) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let ends = [":streamGenerateContent", ":streamRawPredict", "-stream"];
    let flag = request.and_then(|request| request.get("stream")).and_then(Value::as_bool);
    let is_ollama = matches!(dialect, Dialect::OllamaChat | Dialect::OllamaGenerate);
    flag.unwrap_or(is_ollama) || ends.iter().any(|end| path.ends_with(end))
}

/// The path from its version on: what stands in front is for the gateway.
fn own_path(path: &str) -> &str {
    let path = path.split('?').next().unwrap_or_default();
    path.find("/v1").map_or(path, |at| &path[at..])
}
