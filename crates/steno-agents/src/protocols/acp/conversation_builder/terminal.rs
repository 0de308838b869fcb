//! Terminals: the agent's own, which version 2 reports, and those that the editor runs for it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::AcpConversationBuilder;
use super::update::update_body;
use crate::decoding::json_fields;
use steno_model::json::{Object, Value};

/// Terminal output above this size, in bytes, is copied into one tool call only. Otherwise a log with many calls that
/// show one terminal would grow by a copy for each.
const MAX_REPEATED_OUTPUT: usize = 1 << 10;

/// A terminal and its output.
#[derive(Clone, Debug, Default)]
pub(super) struct AcpTerminal {
    /// The output as bytes, because a chunk may end inside a character.
    output: Vec<u8>,
    /// Command, folder and exit status, as far as reported.
    pub(super) details: Object,
}

impl AcpTerminal {
    /// A terminal with this output.
    pub(super) fn from_text(text: &str) -> Self {
        Self { output: text.as_bytes().to_vec(), details: Object::new() }
    }

    /// Whether there is no output.
    pub(super) fn is_empty(&self) -> bool {
        self.output.is_empty()
    }

    /// Whether the output is too long to be repeated in several tool calls.
    pub(super) fn is_long(&self) -> bool {
        self.output.len() > MAX_REPEATED_OUTPUT
    }

    /// The output as text. Invalid UTF-8 is replaced.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }
}

impl AcpConversationBuilder {
    /// Applies an update. Its fields replace earlier ones, and output chunks are appended.
    pub(super) fn update_terminal(&mut self, update: &Object) {
        let Some(id) = json_fields::text_field(update, "terminalId") else { return };
        let terminal = self.terminals.entry(id.to_owned()).or_default();
        let mut details = update_body(update);
        let output = details.shift_remove("output");
        let piece = details.shift_remove("data");
        details.shift_remove("terminalId");
        if output.is_some() {
            terminal.output.clear();
        }
        let whole = output.as_ref().and_then(|output| output.get("data"));
        terminal.output.extend(whole.into_iter().chain(&piece).flat_map(decode_base64));
        for (name, value) in details {
            match value {
                Value::Null => drop(terminal.details.shift_remove(&name)),
                value => drop(terminal.details.insert(name, value)),
            }
        }
    }
}

fn decode_base64(data: &Value) -> Vec<u8> {
    data.as_str().and_then(|data| BASE64.decode(data).ok()).unwrap_or_default()
}
