//! Errors of a client and its agent.

use std::io;

use serde_json::Value;

/// Why a client failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The agent could not be started.
    #[error("could not start {program}")]
    Start {
        /// The program.
        program: String,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The agent ended before it answered a request.
    #[error("the agent ended before it answered {0}")]
    Ended(&'static str),
    /// The agent was silent for too long.
    #[error("the agent did not answer {method} within {seconds} s")]
    ResponseTimeout {
        /// The method of the request.
        method: &'static str,
        /// The timeout.
        seconds: u64,
    },
    /// The agent no longer reads its input.
    #[error("the agent closed its input")]
    InputClosed(#[source] io::Error),
    /// The agent answered with an error.
    #[error("the agent refused {method}: {message}")]
    Refused {
        /// The method of the request.
        method: &'static str,
        /// The code of the error.
        code: i64,
        /// The error's message.
        message: String,
    },
    /// The agent uses another version of the protocol.
    #[error("the agent uses version {0} of the protocol, not 1")]
    UnsupportedVersion(Value),
    /// The agent returned no session id.
    #[error("the agent returned no session id")]
    NoSession,
    /// The agent does not have this mode.
    #[error("the agent has no mode {mode}; it has: {}", offered.join(", "))]
    NoMode {
        /// The requested mode.
        mode: String,
        /// The modes that the agent has.
        offered: Vec<String>,
    },
    /// The agent did not end a cancelled turn.
    #[error("the agent did not cancel the turn")]
    Unresponsive,
    /// The user interrupted the client.
    #[error("interrupted")]
    Interrupted,
}

impl ClientError {
    /// Parses the error object of a response.
    pub(super) fn from_response(method: &'static str, error: &Value) -> Self {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let message = error.get("message").and_then(Value::as_str);
        let details = error.get("data").and_then(|data| data.get("details")?.as_str());
        let message = message.map_or_else(|| error.to_string(), str::to_owned);
        let message = match details {
            Some(details) => format!("{message}: {details}"),
            None => message,
        };
        ClientError::Refused { method, code, message }
    }

    /// Whether the user has to log in first.
    pub fn needs_login(&self) -> bool {
        matches!(self, ClientError::Refused { code: -32000, .. })
    }

    /// Whether the user caused the error.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, ClientError::Interrupted | ClientError::Unresponsive)
    }
}
