//! Reads `[encryption]`: where the key of an encrypted store is.

use std::path::Path;

use super::Config;
use crate::error::CommandError;
use crate::store_key::StoreKeySource;

impl Config {
    /// Returns where the key of the store is.
    pub(crate) fn key_source(&self, home: &Path) -> Result<StoreKeySource, CommandError> {
        let settings = self.parse_toml()?;
        let mut source = StoreKeySource::default();
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
