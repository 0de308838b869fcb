//! Why speaking with an agent failed.

use std::io;

use serde_json::Value;

/// Why speaking with an agent failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It could not be started.
    #[error("could not start {program}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It ended before it had answered.
    #[error("the agent ended before it answered {0}")]
    Ended(&'static str),
    /// It said nothing for too long.
    #[error("the agent has not answered {method} within {seconds} s")]
    NoAnswer {
        /// What it was asked.
        method: &'static str,
        /// How long it was waited for.
        seconds: u64,
    },
    /// It takes nothing more.
    #[error("the agent no longer listens")]
    Deaf(#[source] io::Error),
    /// It answered with an error.
    #[error("the agent refused {method}: {message}")]
    Refused {
        /// What it was asked.
        method: &'static str,
        /// The code of the error.
        code: i64,
        /// What it says.
        message: String,
    },
    /// It speaks another version of the protocol.
    #[error("the agent speaks version {0} of the protocol, not 1")]
    Version(Value),
    /// It named no session.
    #[error("the agent has named no session")]
    NoSession,
    /// It has no such mode.
    #[error("the agent has no mode {mode}; it has: {}", offered.join(", "))]
    NoMode {
        /// The mode that was wanted.
        mode: String,
        /// Those that it has.
        offered: Vec<String>,
    },
    /// It was asked to stop, and did not.
    #[error("the agent did not stop when it was asked to")]
    Unresponsive,
    /// The user wants nothing more of it.
    #[error("interrupted")]
    Interrupted,
}

impl ClientError {
    /// The error for an answer that is one.
    pub(super) fn refused(method: &'static str, error: &Value) -> Self {
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

    /// Whether the agent wants the user to log in first.
    pub fn wants_login(&self) -> bool {
        matches!(self, ClientError::Refused { code: -32000, .. })
    }

    /// Whether the user has ended it.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, ClientError::Interrupted | ClientError::Unresponsive)
    }
}
