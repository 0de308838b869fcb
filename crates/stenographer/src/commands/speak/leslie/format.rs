//! Output formats of a response: JSON, YAML or a table.

mod table;
mod yaml;

use serde_json::Value;
use steno_model::json::JsonStyle;

/// An output format.
#[derive(Clone, Copy)]
pub(super) enum LeslieFormat {
    Json,
    Table,
    Yaml,
}

impl LeslieFormat {
    /// Returns the format with this name; JSON for any other, like leslie.
    pub(super) fn from_name(name: Option<&str>) -> Self {
        match name {
            Some("table") => Self::Table,
            Some("yaml") => Self::Yaml,
            _ => Self::Json,
        }
    }

    /// Prints the response as text that ends with a newline.
    pub(super) fn print(self, envelope: &Value) -> String {
        match self {
            Self::Json => JsonStyle::PRETTY.print(envelope) + "\n",
            Self::Table => table::print_table(envelope),
            // leslie ends YAML with an empty line.
            Self::Yaml => yaml::print_yaml(envelope) + "\n",
        }
    }
}
