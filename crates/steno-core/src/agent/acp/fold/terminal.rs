//! Terminals: the agent's own, as version 2 tells of them, and those that an editor has for it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::Fold;
use super::update::body;
use crate::agent::fields;
use crate::json::{Object, Value};

/// The output of a terminal that is repeated in every tool call that shows the terminal, in bytes. Of more, a log of
/// many calls that show one terminal would be read as many times its size.
const LONG_OUTPUT: usize = 1 << 10;

/// A terminal.
#[derive(Clone, Debug, Default)]
pub(super) struct Terminal {
    /// What it has shown. A character may come in two pieces.
    shown: Vec<u8>,
    /// Its command, its folder and how it ended, where that is told.
    pub(super) about: Object,
}

impl Terminal {
    /// One that has shown a text.
    pub(super) fn of(text: &str) -> Self {
        Self { shown: text.as_bytes().to_vec(), about: Object::new() }
    }

    /// Whether it has shown nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Whether it has shown so much that only one tool call gets it.
    pub(super) fn is_long(&self) -> bool {
        self.shown.len() > LONG_OUTPUT
    }

    /// What it has shown.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }
}

impl Fold {
    /// Takes what is told of a terminal: what is told last holds, and pieces of output add to what was shown.
    pub(super) fn terminal(&mut self, update: &Object) {
        let Some(id) = fields::text(update, "terminalId") else { return };
        let terminal = self.terminals.entry(id.to_owned()).or_default();
        let mut told = body(update);
        let output = told.shift_remove("output");
        let piece = told.shift_remove("data");
        told.shift_remove("terminalId");
        if output.is_some() {
            terminal.shown.clear();
        }
        let whole = output.as_ref().and_then(|output| output.get("data"));
        terminal.shown.extend(whole.into_iter().chain(&piece).flat_map(decoded));
        for (name, value) in told {
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
