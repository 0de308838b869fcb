//! What a command answers, in the envelope that leslie wraps around it.

use std::error::Error;

use serde::Serialize;
use serde_json::{Value, json};
use steno_core::thread::{ThreadError, Warning};

use crate::error::CommandExit;

/// The code of whatever has no code of its own.
const UNKNOWN_ERROR_CODE: &str = "T902";

/// What a command found or did.
pub(super) struct LeslieResponse {
    success: bool,
    data: Value,
    warnings: Option<Vec<Warning>>,
}

/// What a command failed of.
#[derive(Debug)]
pub(super) struct LeslieFailure {
    code: &'static str,
    message: String,
    details: Option<Value>,
}

impl LeslieResponse {
    pub(super) fn new(data: impl Serialize) -> Self {
        let data = serde_json::to_value(data).expect("answers have string keys");
        Self { success: true, data, warnings: None }
    }

    /// Adds what was left out; the field is there even when nothing was.
    pub(super) fn with_warnings(self, warnings: Vec<Warning>) -> Self {
        Self { warnings: Some(warnings), ..self }
    }

    /// The same, of work that may have failed after all.
    pub(super) fn with_success(self, well: bool) -> Self {
        Self { success: well, ..self }
    }

    pub(super) fn exit(&self) -> CommandExit {
        if self.success { CommandExit::Done } else { CommandExit::Failed }
    }

    pub(super) fn into_envelope(self) -> Value {
        let mut envelope = json!({ "success": self.success, "data": self.data });
        if let Some(warnings) = self.warnings {
            let warning = |warning: &Warning| {
                let (code, context) = (warning.code(), warning.context());
                json!({ "code": code, "message": warning.to_string(), "context": context })
            };
            envelope["warnings"] = warnings.iter().map(warning).collect();
        }
        envelope
    }
}

impl LeslieFailure {
    /// A failure without a code of its own.
    pub(super) fn without_code(message: impl Into<String>) -> Self {
        Self { code: UNKNOWN_ERROR_CODE, message: message.into(), details: None }
    }

    /// The same failure as those commands tell it that tell no details.
    pub(super) fn without_details(error: ThreadError) -> Self {
        let is_known = matches!(error, ThreadError::ThreadNotFound(_));
        let failure = Self::from(error);
        Self { details: failure.details.filter(|_| !is_known), ..failure }
    }

    pub(super) fn into_envelope(self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(details) = self.details {
            error["details"] = details;
        }
        json!({ "success": false, "error": error })
    }
}

impl From<ThreadError> for LeslieFailure {
    fn from(error: ThreadError) -> Self {
        let (code, details) = (error.code(), error.details());
        // Where details tell the cause, the message need not.
        let message = if details.is_some() { error.to_string() } else { join_causes(&error) };
        Self { code, message, details }
    }
}

/// An error and all that led to it, on one line.
pub(super) fn join_causes(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    message
}
