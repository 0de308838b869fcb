//! Detects the API that a request speaks: by a table of path suffixes, and by the body's fields where a path serves
//! several APIs.

use crate::decoding::json_fields::text_field;
use steno_model::json::{Object, Value};

/// A model API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ApiDialect {
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
    suffix: &'static str,
    dialect: ApiDialect,
}

const fn api_path(end: &'static str, dialect: ApiDialect) -> ApiPath {
    ApiPath { suffix: end, dialect }
}

/// The first row with a matching suffix wins.
const API_PATHS: [ApiPath; 39] = [
    api_path("/chat/completions", ApiDialect::Chat),
    api_path("/fim/completions", ApiDialect::Completions),
    api_path("/completions", ApiDialect::Completions),
    api_path("/responses", ApiDialect::Responses),
    api_path("/realtime", ApiDialect::Realtime),
    api_path("/messages/batches", ApiDialect::Batches),
    api_path("/messages", ApiDialect::Messages),
    api_path(":generateContent", ApiDialect::Generate),
    api_path(":streamGenerateContent", ApiDialect::Generate),
    api_path("/api/chat", ApiDialect::OllamaChat),
    api_path("/api/generate", ApiDialect::OllamaGenerate),
    api_path("/api/embed", ApiDialect::Embeddings),
    api_path("/converse", ApiDialect::Converse),
    api_path("/converse-stream", ApiDialect::Converse),
    api_path("/invoke", ApiDialect::Invoke),
    api_path("/invoke-with-response-stream", ApiDialect::Invoke),
    api_path(":rawPredict", ApiDialect::Invoke),
    api_path(":streamRawPredict", ApiDialect::Invoke),
    api_path("/v1/chat", ApiDialect::Cohere),
    api_path("/v2/chat", ApiDialect::Cohere),
    api_path("/embeddings", ApiDialect::Embeddings),
    api_path("/v1/embed", ApiDialect::Embeddings),
    api_path("/v2/embed", ApiDialect::Embeddings),
    api_path(":embedContent", ApiDialect::Embeddings),
    api_path(":batchEmbedContents", ApiDialect::Embeddings),
    api_path("/images/generations", ApiDialect::Images),
    api_path("/images/edits", ApiDialect::Images),
    api_path("/images/variations", ApiDialect::Images),
    api_path("/audio/speech", ApiDialect::Speech),
    api_path("/audio/transcriptions", ApiDialect::Transcription),
    api_path("/audio/translations", ApiDialect::Transcription),
    api_path("/files", ApiDialect::Files),
    api_path("/v1/batches", ApiDialect::Batches),
    api_path("/batch/jobs", ApiDialect::Batches),
    api_path(":batchGenerateContent", ApiDialect::Batches),
    api_path("/openai/batches", ApiDialect::Batches),
    api_path("/rerank", ApiDialect::Other),
    api_path("/moderations", ApiDialect::Other),
    api_path("/count_tokens", ApiDialect::Other),
];

impl ApiDialect {
    /// The API at a path. The suffix decides; any prefix is ignored.
    pub fn from_path(path: &str) -> Self {
        let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        // OpenAI serves batch results as a file. Their lines show whether they are.
        let results = [("/messages/batches/", "/results"), ("/files/", "/content")];
        if results.iter().any(|(before, end)| path.contains(before) && path.ends_with(end)) {
            return ApiDialect::BatchResults;
        }
        let row = API_PATHS.iter().find(|row| path.ends_with(row.suffix));
        row.map_or(ApiDialect::Other, |row| row.dialect)
    }

    /// The API of a request, by its path or its fields. Requests without a body call no model.
    pub(super) fn from_request(method: &str, path: &str, request: Option<&Object>) -> Self {
        let is_read = ["GET", "HEAD", "OPTIONS", "DELETE"].contains(&method);
        match Self::from_path(path) {
            dialect @ (ApiDialect::BatchResults | ApiDialect::Responses) => dialect,
            _ if is_read => ApiDialect::Other,
            ApiDialect::Invoke => {
                request.map_or(ApiDialect::Other, |request| invoked_dialect(path, request))
            }
            dialect => dialect,
        }
    }

    /// The provider, as named in metadata.
    pub fn adapter(self) -> &'static str {
        match self {
            ApiDialect::Messages => "anthropic",
            ApiDialect::Generate => "gemini",
            ApiDialect::OllamaChat | ApiDialect::OllamaGenerate => "ollama",
            ApiDialect::Converse | ApiDialect::Invoke => "bedrock",
            ApiDialect::Cohere => "cohere",
            ApiDialect::Other => "other",
            _ => "openai",
        }
    }

    /// The API's name in metadata.
    pub fn name(self) -> &'static str {
        match self {
            ApiDialect::Messages => "messages",
            ApiDialect::Chat => "chat_completions",
            ApiDialect::Responses => "responses",
            ApiDialect::Realtime => "realtime",
            ApiDialect::Generate => "generate_content",
            ApiDialect::Completions => "completions",
            ApiDialect::OllamaChat => "ollama_chat",
            ApiDialect::OllamaGenerate => "ollama_generate",
            ApiDialect::Converse => "converse",
            ApiDialect::Cohere => "cohere_chat",
            ApiDialect::Invoke => "invoke_model",
            ApiDialect::Embeddings => "embeddings",
            ApiDialect::Images => "images",
            ApiDialect::Speech => "speech",
            ApiDialect::Transcription => "transcription",
            ApiDialect::Files => "files",
            ApiDialect::Batches => "batches",
            ApiDialect::BatchResults => "batch_results",
            ApiDialect::Other => "other",
        }
    }

    /// Whether a call is independent of any conversation.
    pub(super) fn is_single_call(self) -> bool {
        matches!(
            self,
            ApiDialect::Embeddings
                | ApiDialect::Images
                | ApiDialect::Speech
                | ApiDialect::Transcription
                | ApiDialect::Files
                | ApiDialect::Batches
                | ApiDialect::BatchResults
        )
    }
}

/// The API of a model behind Bedrock or Vertex, by the body's fields.
fn invoked_dialect(path: &str, request: &Object) -> ApiDialect {
    let has = |field: &str| request.contains_key(field);
    let is_embedding = path.contains("embed") || has("texts");
    let messages = request.get("messages").and_then(Value::as_array);
    // Amazon's models take Converse messages.
    let is_converse = |message: &Value| {
        let part = message.get("content").and_then(|content| content.get(0));
        part.and_then(Value::as_object).is_some_and(|part| !part.contains_key("type"))
    };
    if is_embedding {
        ApiDialect::Embeddings
    } else if let Some(messages) = messages {
        match () {
            () if has("anthropic_version") => ApiDialect::Messages,
            () if messages.iter().any(is_converse) => ApiDialect::Converse,
            () => ApiDialect::Chat,
        }
    } else if has("message") {
        ApiDialect::Cohere
    } else if has("prompt") || has("inputText") {
        ApiDialect::Completions
    } else if has("taskType") || has("text_prompts") {
        ApiDialect::Images
    } else {
        ApiDialect::Other
    }
}

/// The requested model: from the `model` field, or from the path.
pub(super) fn requested_model(path: &str, request: Option<&Object>) -> Option<String> {
    let in_body = request.and_then(|request| text_field(request, "model"));
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
    fn paths_select_the_api() {
        let cases = [
            ("/v1/chat/completions", ApiDialect::Chat),
            ("/openai/deployments/gpt/chat/completions?api-version=1", ApiDialect::Chat),
            ("/v1/projects/p/locations/l/endpoints/openapi/chat/completions", ApiDialect::Chat),
            ("/api/v1/chat/completions", ApiDialect::Chat),
            ("/openai/deployments/gpt/completions", ApiDialect::Completions),
            ("/v1/completions", ApiDialect::Completions),
            ("/openai/v1/responses", ApiDialect::Responses),
            ("/v1/responses/resp_1/cancel", ApiDialect::Other),
            ("/v1/realtime?model=gpt-realtime", ApiDialect::Realtime),
            ("/v1/messages", ApiDialect::Messages),
            ("/v1/messages/count_tokens", ApiDialect::Other),
            ("/v1/messages/batches", ApiDialect::Batches),
            ("/v1/messages/batches/b1/results", ApiDialect::BatchResults),
            ("/v1/files/file-1/content", ApiDialect::BatchResults),
            ("/v1/files", ApiDialect::Files),
            ("/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", ApiDialect::Generate),
            ("/v1/embeddings", ApiDialect::Embeddings),
            ("/api/chat", ApiDialect::OllamaChat),
            ("/api/generate", ApiDialect::OllamaGenerate),
            ("/model/anthropic.claude%3A0/converse-stream", ApiDialect::Converse),
            ("/model/anthropic.claude%3A0/invoke", ApiDialect::Invoke),
            ("/v2/chat", ApiDialect::Cohere),
            ("/v1/audio/speech", ApiDialect::Speech),
            ("/v1/models", ApiDialect::Other),
        ];
        for (path, dialect) in cases {
            assert_eq!(ApiDialect::from_path(path), dialect, "{path}");
        }
        assert_eq!(ApiDialect::from_request("GET", "/v1/batches", None), ApiDialect::Other);
    }

    #[test]
    fn a_body_selects_the_api_of_an_invoked_model() {
        let messages = |content: Value| json!([{"role": "user", "content": content}]);
        let cases = [
            (
                json!({"anthropic_version": "bedrock-2023-05-31", "messages": messages(json!("x"))}),
                ApiDialect::Messages,
            ),
            (json!({"messages": messages(json!([{"text": "x"}]))}), ApiDialect::Converse),
            (json!({"messages": messages(json!("x"))}), ApiDialect::Chat),
            (json!({"message": "x", "chat_history": []}), ApiDialect::Cohere),
            (json!({"prompt": "x"}), ApiDialect::Completions),
            (json!({"inputText": "x"}), ApiDialect::Completions),
            (json!({"texts": ["x"]}), ApiDialect::Embeddings),
            (json!({"x": 1}), ApiDialect::Other),
        ];
        for (body, dialect) in cases {
            let request = body.as_object();
            assert_eq!(
                ApiDialect::from_request("POST", "/model/m/invoke", request),
                dialect,
                "{body}"
            );
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
