//! How an answer is printed: as JSON, as YAML, or as lines and columns for a person.

mod table;
mod yaml;

use serde_json::Value;
use steno_core::json::Style;

/// A form of the answer.
#[derive(Clone, Copy)]
pub(super) enum LeslieFormat {
    Json,
    Table,
    Yaml,
}

impl LeslieFormat {
    /// The format of that name; JSON for any other, as leslie has it.
    pub(super) fn from_name(name: Option<&str>) -> Self {
        match name {
            Some("table") => Self::Table,
            Some("yaml") => Self::Yaml,
            _ => Self::Json,
        }
    }

    /// The answer as text that ends with its line.
    pub(super) fn print(self, envelope: &Value) -> String {
        match self {
            Self::Json => Style::PRETTY.print(envelope) + "\n",
            Self::Table => table::print_table(envelope),
            // leslie ends it with an empty line.
            Self::Yaml => yaml::print_yaml(envelope) + "\n",
        }
    }
}
