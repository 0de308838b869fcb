//! Detects the API that a request speaks: by a table of path suffixes, and by the body's fields where a path serves
//! several APIs.

use crate::agent::fields::text;
use crate::json::{Object, Value};

/// A model API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Anthropic Messages.
    Messages,
    /// OpenAI chat completions and compatible APIs.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Realtime, over WebSocket.
    Realtime,
    /// Gemini generateContent.
    Generate,
    /// Text completions: OpenAI's older API, and Bedrock models that take a prompt.
    Completions,
    /// Ollama's chat API.
    OllamaChat,
    /// Ollama's generate API.
    OllamaGenerate,
    /// Bedrock Converse.
    Converse,
    /// Cohere chat, versions 1 and 2.
    Cohere,
    /// A Bedrock or Vertex path that forwards to any model. No exchange keeps this value: the body's fields decide the
    /// API.
    Invoke,
    /// Embeddings of texts.
    Embeddings,
    /// Image generation and editing.
    Images,
    /// Text to speech.
    Speech,
    /// Speech to text.
    Transcription,
    /// File uploads.
    Files,
    /// Batch submissions.
    Batches,
    /// Results of a batch.
    BatchResults,
    /// Any other API: forwarded and recorded, but not decoded.
    #[default]
    Other,
}

/// A path suffix and its API.
struct ApiPath {
    end: &'static str,
    dialect: Dialect,
}

const fn path(end: &'static str, dialect: Dialect) -> ApiPath {
    ApiPath { end, dialect }
}

/// The first row with a matching suffix wins.
const API_PATHS: [ApiPath; 39] = [
    path("/chat/completions", Dialect::Chat),
    path("/fim/completions", Dialect::Completions),
    path("/completions", Dialect::Completions),
    path("/responses", Dialect::Responses),
    path("/realtime", Dialect::Realtime),
    path("/messages/batches", Dialect::Batches),
    path("/messages", Dialect::Messages),
    path(":generateContent", Dialect::Generate),
    path(":streamGenerateContent", Dialect::Generate),
    path("/api/chat", Dialect::OllamaChat),
    path("/api/generate", Dialect::OllamaGenerate),
    path("/api/embed", Dialect::Embeddings),
    path("/converse", Dialect::Converse),
    path("/converse-stream", Dialect::Converse),
    path("/invoke", Dialect::Invoke),
    path("/invoke-with-response-stream", Dialect::Invoke),
    path(":rawPredict", Dialect::Invoke),
    path(":streamRawPredict", Dialect::Invoke),
    path("/v1/chat", Dialect::Cohere),
    path("/v2/chat", Dialect::Cohere),
    path("/embeddings", Dialect::Embeddings),
    path("/v1/embed", Dialect::Embeddings),
    path("/v2/embed", Dialect::Embeddings),
    path(":embedContent", Dialect::Embeddings),
    path(":batchEmbedContents", Dialect::Embeddings),
    path("/images/generations", Dialect::Images),
    path("/images/edits", Dialect::Images),
    path("/images/variations", Dialect::Images),
    path("/audio/speech", Dialect::Speech),
    path("/audio/transcriptions", Dialect::Transcription),
    path("/audio/translations", Dialect::Transcription),
    path("/files", Dialect::Files),
    path("/v1/batches", Dialect::Batches),
    path("/batch/jobs", Dialect::Batches),
    path(":batchGenerateContent", Dialect::Batches),
    path("/openai/batches", Dialect::Batches),
    path("/rerank", Dialect::Other),
    path("/moderations", Dialect::Other),
    path("/count_tokens", Dialect::Other),
];

impl Dialect {
    /// The API at a path. The suffix decides; any prefix is ignored.
    pub fn of(path: &str) -> Self {
        let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        // OpenAI serves batch results as a file. Their lines show whether they are.
        let results = [("/messages/batches/", "/results"), ("/files/", "/content")];
        if results.iter().any(|(before, end)| path.contains(before) && path.ends_with(end)) {
            return Dialect::BatchResults;
        }
        let row = API_PATHS.iter().find(|row| path.ends_with(row.end));
        row.map_or(Dialect::Other, |row| row.dialect)
    }

    /// The API of a request, by its path or its fields. Requests without a body call no model.
    pub(super) fn of_request(method: &str, path: &str, request: Option<&Object>) -> Self {
        let is_read = ["GET", "HEAD", "OPTIONS", "DELETE"].contains(&method);
        match Self::of(path) {
            dialect @ (Dialect::BatchResults | Dialect::Responses) => dialect,
            _ if is_read => Dialect::Other,
            Dialect::Invoke => request.map_or(Dialect::Other, |request| invoked(path, request)),
            dialect => dialect,
        }
    }

    /// The provider, as named in metadata.
    pub fn adapter(self) -> &'static str {
        match self {
            Dialect::Messages => "anthropic",
            Dialect::Generate => "gemini",
            Dialect::OllamaChat | Dialect::OllamaGenerate => "ollama",
            Dialect::Converse | Dialect::Invoke => "bedrock",
            Dialect::Cohere => "cohere",
            Dialect::Other => "other",
            _ => "openai",
        }
    }

    /// The API's name in metadata.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Messages => "messages",
            Dialect::Chat => "chat_completions",
            Dialect::Responses => "responses",
            Dialect::Realtime => "realtime",
            Dialect::Generate => "generate_content",
            Dialect::Completions => "completions",
            Dialect::OllamaChat => "ollama_chat",
            Dialect::OllamaGenerate => "ollama_generate",
            Dialect::Converse => "converse",
            Dialect::Cohere => "cohere_chat",
            Dialect::Invoke => "invoke_model",
            Dialect::Embeddings => "embeddings",
            Dialect::Images => "images",
            Dialect::Speech => "speech",
            Dialect::Transcription => "transcription",
            Dialect::Files => "files",
            Dialect::Batches => "batches",
            Dialect::BatchResults => "batch_results",
            Dialect::Other => "other",
        }
    }

    /// Whether a call is independent of any conversation.
    pub(super) fn is_single_call(self) -> bool {
        matches!(
            self,
            Dialect::Embeddings
                | Dialect::Images
                | Dialect::Speech
                | Dialect::Transcription
                | Dialect::Files
                | Dialect::Batches
                | Dialect::BatchResults
        )
    }
}

/// The API of a model behind Bedrock or Vertex, by the body's fields.
fn invoked(path: &str, request: &Object) -> Dialect {
    let has = |field: &str| request.contains_key(field);
    let is_embedding = path.contains("embed") || has("texts");
    let messages = request.get("messages").and_then(Value::as_array);
    // Amazon's models take Converse messages.
    let is_converse = |message: &Value| {
        let part = message.get("content").and_then(|content| content.get(0));
        part.and_then(Value::as_object).is_some_and(|part| !part.contains_key("type"))
    };
    if is_embedding {
        Dialect::Embeddings
    } else if let Some(messages) = messages {
        match () {
            () if has("anthropic_version") => Dialect::Messages,
            () if messages.iter().any(is_converse) => Dialect::Converse,
            () => Dialect::Chat,
        }
    } else if has("message") {
        Dialect::Cohere
    } else if has("prompt") || has("inputText") {
        Dialect::Completions
    } else if has("taskType") || has("text_prompts") {
        Dialect::Images
    } else {
        Dialect::Other
    }
}

/// The requested model: from the `model` field, or from the path.
pub(super) fn requested_model(path: &str, request: Option<&Object>) -> Option<String> {
    let in_body = request.and_then(|request| text(request, "model"));
    let path = path.split('?').next().unwrap_or_default();
    let in_path = ["/model/", "/models/", "/deployments/"].iter().find_map(|before| {
        let (_, rest) = path.split_once(before)?;
        rest.split('/').next()
    });
    // `models/gemini-pro:generateContent` has an action after the name. Bedrock's names have escaped colons.
    let in_path = in_path.map(|name| name.split(':').next().unwrap_or(name).replace("%3A", ":"));
    let in_body = in_body.map(|model| model.strip_prefix("models/").unwrap_or(model).to_owned());
    in_body.or(in_path).filter(|model| !model.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_tell_the_api() {
        let cases = [
            ("/v1/chat/completions", Dialect::Chat),
            ("/openai/deployments/gpt/chat/completions?api-version=1", Dialect::Chat),
            ("/v1/projects/p/locations/l/endpoints/openapi/chat/completions", Dialect::Chat),
            ("/api/v1/chat/completions", Dialect::Chat),
            ("/openai/deployments/gpt/completions", Dialect::Completions),
            ("/v1/completions", Dialect::Completions),
            ("/openai/v1/responses", Dialect::Responses),
            ("/v1/responses/resp_1/cancel", Dialect::Other),
            ("/v1/realtime?model=gpt-realtime", Dialect::Realtime),
            ("/v1/messages", Dialect::Messages),
            ("/v1/messages/count_tokens", Dialect::Other),
            ("/v1/messages/batches", Dialect::Batches),
            ("/v1/messages/batches/b1/results", Dialect::BatchResults),
            ("/v1/files/file-1/content", Dialect::BatchResults),
            ("/v1/files", Dialect::Files),
            ("/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", Dialect::Generate),
            ("/v1/embeddings", Dialect::Embeddings),
            ("/api/chat", Dialect::OllamaChat),
            ("/api/generate", Dialect::OllamaGenerate),
            ("/model/anthropic.claude%3A0/converse-stream", Dialect::Converse),
            ("/model/anthropic.claude%3A0/invoke", Dialect::Invoke),
            ("/v2/chat", Dialect::Cohere),
            ("/v1/audio/speech", Dialect::Speech),
            ("/v1/models", Dialect::Other),
        ];
        for (path, dialect) in cases {
            assert_eq!(Dialect::of(path), dialect, "{path}");
        }
        assert_eq!(Dialect::of_request("GET", "/v1/batches", None), Dialect::Other);
    }

    #[test]
    fn a_body_tells_the_api_of_a_model_that_is_invoked() {
        let said = |content: Value| json!([{"role": "user", "content": content}]);
        let cases = [
            (
                json!({"anthropic_version": "bedrock-2023-05-31", "messages": said(json!("x"))}),
                Dialect::Messages,
            ),
            (json!({"messages": said(json!([{"text": "x"}]))}), Dialect::Converse),
            (json!({"messages": said(json!("x"))}), Dialect::Chat),
            (json!({"message": "x", "chat_history": []}), Dialect::Cohere),
            (json!({"prompt": "x"}), Dialect::Completions),
            (json!({"inputText": "x"}), Dialect::Completions),
            (json!({"texts": ["x"]}), Dialect::Embeddings),
            (json!({"x": 1}), Dialect::Other),
        ];
        for (body, dialect) in cases {
            let request = body.as_object();
            assert_eq!(Dialect::of_request("POST", "/model/m/invoke", request), dialect, "{body}");
        }
    }

    #[test]
    fn a_model_is_named_in_the_body_or_in_the_path() {
        let model = |path: &str| requested_model(path, None).unwrap_or_default();
        assert_eq!(model("/v1beta/models/gemini-2.5-pro:generateContent?x=1"), "gemini-2.5-pro");
        assert_eq!(model("/model/anthropic.claude-v1%3A0/invoke"), "anthropic.claude-v1:0");
        assert_eq!(model("/openai/deployments/mine/chat/completions"), "mine");
        assert_eq!(model("/v1/chat/completions"), "");
    }
}
