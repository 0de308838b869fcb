//! Settings in JSON with comments.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;

use super::SettingsRefusal;

/// Parses settings like the agents do: comments and trailing commas are allowed, no other extension of JSON.
pub(crate) fn parse_json_settings(text: &str) -> Result<CstRootNode, SettingsRefusal> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options).map_err(|error| SettingsRefusal {
        line: error.line_display(),
        reason: error.kind().to_string().to_lowercase(),
    })
}

/// Returns the refusal of a setting of another type.
pub(crate) fn wrong_type(what: &str, wanted: &str) -> SettingsRefusal {
    SettingsRefusal { line: 1, reason: format!("{what} should be {wanted}") }
}
