//! Reads `[redact]`: what the user wants redacted besides the built-in rules.

use steno_secrets::{SecretScanner, SecretSettings, SecretSettingsError};

use super::Config;
use crate::error::CommandError;

/// The settings of `[redact]`.
const SETTING_NAMES: [&str; 4] = ["words", "names", "patterns", "disable"];

impl Config {
    /// Applies `[redact]` to everything that this process redacts.
    pub(crate) fn configure_redaction(&self) -> Result<(), CommandError> {
        let settings = self.redaction_settings()?;
        SecretScanner::configure(&settings).map_err(CommandError::user)
    }

    pub(super) fn redaction_settings(&self) -> Result<SecretSettings, CommandError> {
        let settings = self.parse_toml()?;
        let mut redaction = SecretSettings::default();
        for (name, item) in self.table_entries(&settings, "redact")? {
            let wrong = |reason: &str| self.error_at(item.span(), reason);
            if !SETTING_NAMES.contains(&name) {
                let known = SETTING_NAMES.join(", ");
                return Err(wrong(&format!("unknown setting {name}; one of: {known}")));
            }
            let usage = format!("{name} is not a list of strings: {name} = [\"acme\"]");
            for value in item.as_array().ok_or_else(|| wrong(&usage))? {
                let text = value.as_str().ok_or_else(|| wrong(&usage))?.to_owned();
                let mut single = SecretSettings::default();
                setting_list(&mut single, name).push(text.clone());
                single.validate().map_err(|error| {
                    let located = self.error_at(value.span(), &error.to_string());
                    add_redaction_hint(located, &error)
                })?;
                setting_list(&mut redaction, name).push(text);
            }
        }
        Ok(redaction)
    }
}

/// The list of a setting, by its name in the file.
fn setting_list<'a>(settings: &'a mut SecretSettings, name: &str) -> &'a mut Vec<String> {
    match name {
        "words" => &mut settings.words,
        "names" => &mut settings.names,
        "patterns" => &mut settings.patterns,
        _ => &mut settings.disabled_rules,
    }
}

fn add_redaction_hint(error: CommandError, reason: &SecretSettingsError) -> CommandError {
    match reason {
        SecretSettingsError::UnknownRule(_) => {
            error.hint("run `steno secrets --rules` to list the rules")
        }
        SecretSettingsError::BadPattern { .. } => {
            error.hint("write patterns in single quotes: patterns = ['ACME-[0-9]{6}']")
        }
        _ => error,
    }
}
