//! Terminals: the agent's own, which version 2 reports, and those that the editor runs for it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::Fold;
use super::update::body;
use crate::agent::fields;
use crate::json::{Object, Value};

/// Terminal output above this size, in bytes, is copied into one tool call only. Otherwise a log with many calls that
/// show one terminal would grow by a copy for each.
const LONG_OUTPUT: usize = 1 << 10;

/// A terminal and its output.
#[derive(Clone, Debug, Default)]
pub(super) struct Terminal {
    /// The output as bytes, because a chunk may end inside a character.
    shown: Vec<u8>,
    /// Command, folder and exit status, as far as reported.
    pub(super) about: Object,
}

impl Terminal {
    /// A terminal with this output.
    pub(super) fn of(text: &str) -> Self {
        Self { shown: text.as_bytes().to_vec(), about: Object::new() }
    }

    /// Whether there is no output.
    pub(super) fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Whether the output is too long to be repeated in several tool calls.
    pub(super) fn is_long(&self) -> bool {
        self.shown.len() > LONG_OUTPUT
    }

    /// The output as text. Invalid UTF-8 is replaced.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }
}

impl Fold {
    /// Applies an update. Its fields replace earlier ones, and output chunks are appended.
    pub(super) fn terminal(&mut self, update: &Object) {
        let Some(id) = fields::text(update, "terminalId") else { return };
        let terminal = self.terminals.entry(id.to_owned()).or_default();
        let mut details = body(update);
        let output = details.shift_remove("output");
        let piece = details.shift_remove("data");
        details.shift_remove("terminalId");
        if output.is_some() {
            terminal.shown.clear();
        }
        let whole = output.as_ref().and_then(|output| output.get("data"));
        terminal.shown.extend(whole.into_iter().chain(&piece).flat_map(decoded));
        for (name, value) in details {
            match value {
                Value::Null => drop(terminal.about.shift_remove(&name)),
                value => drop(terminal.about.insert(name, value)),
            }
        }
    }
}

fn decoded(data: &Value) -> Vec<u8> {
    data.as_str().and_then(|data| BASE64.decode(data).ok()).unwrap_or_default()
}
