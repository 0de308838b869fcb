//! Responses of leslie's commands, in leslie's JSON envelope.

use std::error::Error;

use serde::Serialize;
use serde_json::{Value, json};
use steno_seeds::thread::{ThreadError, ThreadWarning};

use crate::error::CommandExit;

/// Code of errors without a code of their own.
const UNKNOWN_ERROR_CODE: &str = "T902";

/// A successful response, or one that reports failed work.
pub(super) struct LeslieResponse {
    success: bool,
    data: Value,
    warnings: Option<Vec<ThreadWarning>>,
}

/// An error response.
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

    /// Adds warnings; the field exists even if the list is empty.
    pub(super) fn with_warnings(self, warnings: Vec<ThreadWarning>) -> Self {
        Self { warnings: Some(warnings), ..self }
    }

    /// Sets whether the work succeeded.
    pub(super) fn with_success(self, well: bool) -> Self {
        Self { success: well, ..self }
    }

    pub(super) fn exit(&self) -> CommandExit {
        if self.success { CommandExit::Done } else { CommandExit::Failed }
    }

    pub(super) fn into_envelope(self) -> Value {
        let mut envelope = json!({ "success": self.success, "data": self.data });
        if let Some(warnings) = self.warnings {
            let warning = |warning: &ThreadWarning| {
                let (code, context) = (warning.code(), warning.context());
                json!({ "code": code, "message": warning.to_string(), "context": context })
            };
            envelope["warnings"] = warnings.iter().map(warning).collect();
        }
        envelope
    }
}

impl LeslieFailure {
    /// Creates an error without a code of its own.
    pub(super) fn without_code(message: impl Into<String>) -> Self {
        Self { code: UNKNOWN_ERROR_CODE, message: message.into(), details: None }
    }

    /// Converts the error without details, for the commands that print none.
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
        // If the details contain the cause, the message does not repeat it.
        let message = if details.is_some() { error.to_string() } else { join_causes(&error) };
        Self { code, message, details }
    }
}

/// Joins an error and its causes on one line.
pub(super) fn join_causes(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    message
}
