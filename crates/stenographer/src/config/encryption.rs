//! Reads `[encryption]`: where the key of an encrypted store is.

use std::path::{Path, PathBuf};

use super::Config;
use crate::error::CommandError;

/// The settings of `[encryption]`.
#[derive(Debug, Default)]
pub(crate) struct EncryptionSettings {
    /// An identity file of age.
    pub(crate) identity: Option<PathBuf>,
    /// A command that prints the passphrase.
    pub(crate) passphrase_command: Option<String>,
}

impl Config {
    /// Returns where the key of the store is.
    pub(crate) fn encryption(&self, home: &Path) -> Result<EncryptionSettings, CommandError> {
        let settings = self.parse_toml()?;
        let mut source = EncryptionSettings::default();
        for (name, item) in self.table_entries(&settings, "encryption")? {
            let wrong = |reason: &str| self.error_at(item.span(), reason);
            let text = item.as_str().ok_or_else(|| wrong(&format!("{name} is not a text")))?;
            match name {
                "identity" => {
                    let path = text.strip_prefix("~/").map_or(Path::new(text), Path::new);
                    source.identity = Some(home.join(path));
                }
                "passphrase_command" => source.passphrase_command = Some(text.to_owned()),
                _ => {
                    let known = "identity, passphrase_command";
                    return Err(wrong(&format!("unknown setting {name}; one of: {known}")));
                }
            }
        }
        Ok(source)
    }
}
