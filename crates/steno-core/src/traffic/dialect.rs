//! Which API a request speaks, told by its path alone.

/// The APIs whose messages are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Anthropic Messages.
    Messages,
    /// OpenAI chat completions, and all that are compatible.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Gemini generateContent.
    Generate,
    /// Anything else: passed on and recorded, but not told.
    Other,
}

impl Dialect {
    /// The API that is asked at a path, whatever stands in front of its own part.
    pub fn of(path: &str) -> Self {
        let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        let last = path.rsplit('/').next().unwrap_or_default();
        if path.ends_with("/chat/completions") {
            Dialect::Chat
        } else if last == "responses" {
            Dialect::Responses
        } else if last == "messages" {
            Dialect::Messages
        } else if last.ends_with(":generateContent") || last.ends_with(":streamGenerateContent") {
            Dialect::Generate
        } else {
            Dialect::Other
        }
    }

    /// Whose API it is.
    pub fn adapter(self) -> &'static str {
        match self {
            Dialect::Messages => "anthropic",
            Dialect::Chat | Dialect::Responses => "openai",
            Dialect::Generate => "gemini",
            Dialect::Other => "other",
        }
    }

    /// Its name in metadata.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Messages => "messages",
            Dialect::Chat => "chat_completions",
            Dialect::Responses => "responses",
            Dialect::Generate => "generate_content",
            Dialect::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_tell_the_api() {
        let cases = [
            ("/v1/chat/completions", Dialect::Chat),
            ("/openai/deployments/gpt/chat/completions?api-version=1", Dialect::Chat),
            ("/openai/v1/responses", Dialect::Responses),
            ("/v1/responses/resp_1/cancel", Dialect::Other),
            ("/v1/messages", Dialect::Messages),
            ("/v1/messages/count_tokens", Dialect::Other),
            ("/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", Dialect::Generate),
            ("/v1/embeddings", Dialect::Other),
        ];
        for (path, dialect) in cases {
            assert_eq!(Dialect::of(path), dialect, "{path}");
        }
    }
}
