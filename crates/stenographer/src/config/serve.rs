//! The `[serve]` table of `config.toml`: who may read the page of a team.

use std::collections::HashMap;
use std::net::IpAddr;

use steno_web::parse_header_name;
use toml_edit::{Item, Table};

use super::Config;
use crate::error::CommandError;

const EXAMPLE: &str = "[serve] trusted_user_header = \"X-Forwarded-User\" secret_header = \"X-Proxy-Secret\" \
                       secret_command = \"cat /etc/steno/secret\"";

const SETTING_NAMES: [&str; 6] = [
    "trusted_user_header",
    "trusted_addresses",
    "secret_header",
    "secret_command",
    "hosts",
    "users",
];

/// The settings of `[serve]`.
#[derive(Debug, Default)]
pub(crate) struct ServeSettings {
    /// The header in which a proxy names whoever asks.
    pub(crate) user_header: Option<String>,
    /// The addresses from which the header is believed.
    pub(crate) addresses: Vec<IpAddr>,
    /// A header that only the proxy can send, and a command that prints its value.
    pub(crate) secret: Option<SecretSetting>,
    /// Names of the page behind the proxy.
    pub(crate) hosts: Vec<String>,
    /// The member for each name that the proxy gives.
    pub(crate) users: HashMap<String, String>,
}

/// A header with a secret.
#[derive(Debug)]
pub(crate) struct SecretSetting {
    pub(crate) header: String,
    pub(crate) command: String,
}

impl Config {
    /// Returns who may read the page of a team.
    pub(crate) fn serve_settings(&self) -> Result<ServeSettings, CommandError> {
        let settings = self.parse_toml()?;
        self.parse_serve(&settings).map_err(|error| error.hint(EXAMPLE))
    }

    fn parse_serve(&self, settings: &Table) -> Result<ServeSettings, CommandError> {
        let mut serve = ServeSettings::default();
        let (mut header, mut command, mut last) = (None, None, None);
        for (name, item) in self.table_entries(settings, "serve")? {
            match name {
                "trusted_user_header" => serve.user_header = Some(self.parse_header(name, item)?),
                "trusted_addresses" => serve.addresses = self.parse_addresses(name, item)?,
                "secret_header" => header = Some(self.parse_header(name, item)?),
                "secret_command" => command = Some(self.parse_text(name, item)?),
                "hosts" => serve.hosts = self.parse_texts(name, item)?,
                "users" => serve.users = self.parse_users(item)?,
                _ => {
                    let names = SETTING_NAMES.join(", ");
                    let reason = format!("unknown setting {name}; one of: {names}");
                    return Err(self.error_at(item.span(), &reason));
                }
            }
            last = item.span();
        }
        let wrong = |reason: &str| Err(self.error_at(last.clone(), reason));
        serve.secret = match (header, command) {
            (Some(header), Some(command)) => Some(SecretSetting { header, command }),
            (None, None) => None,
            _ => return wrong("secret_header and secret_command need each other"),
        };
        let has_check = serve.secret.is_some() || !serve.addresses.is_empty();
        if serve.user_header.is_some() && !has_check {
            return wrong("trusted_user_header needs trusted_addresses or secret_header");
        }
        Ok(serve)
    }

    fn parse_text(&self, name: &str, item: &Item) -> Result<String, CommandError> {
        let text = item.as_str().filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| self.error_at(item.span(), &format!("{name} is not a text")));
        text.map(str::to_owned)
    }

    fn parse_header(&self, name: &str, item: &Item) -> Result<String, CommandError> {
        let text = self.parse_text(name, item)?;
        match parse_header_name(&text) {
            Some(_) => Ok(text),
            None => Err(self.error_at(item.span(), &format!("{name} is not the name of a header"))),
        }
    }

    fn parse_texts(&self, name: &str, item: &Item) -> Result<Vec<String>, CommandError> {
        let wrong = || self.error_at(item.span(), &format!("{name} is not a list of texts"));
        let texts = item.as_array().ok_or_else(wrong)?.iter();
        texts.map(|text| text.as_str().map(str::to_owned)).collect::<Option<_>>().ok_or_else(wrong)
    }

    fn parse_addresses(&self, name: &str, item: &Item) -> Result<Vec<IpAddr>, CommandError> {
        let parse = |text: &String| {
            let wrong = |_| self.error_at(item.span(), &format!("{name}: not an address: {text}"));
            text.parse::<IpAddr>().map_err(wrong)
        };
        self.parse_texts(name, item)?.iter().map(parse).collect()
    }

    fn parse_users(&self, item: &Item) -> Result<HashMap<String, String>, CommandError> {
        let usage = "users is not a table such as { \"ada@example.com\" = \"ada\" }";
        let wrong = || self.error_at(item.span(), usage);
        let table = item.as_table_like().ok_or_else(wrong)?;
        let user =
            |(name, person): (&str, &Item)| Some((name.to_owned(), person.as_str()?.to_owned()));
        table.iter().map(user).collect::<Option<_>>().ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn parse(text: &str) -> Result<ServeSettings, String> {
        let config = Config { path: PathBuf::from("config.toml"), text: text.to_owned() };
        config.serve_settings().map_err(|error| error.error.to_string())
    }

    #[test]
    fn a_header_needs_something_that_proves_it() {
        let header = "[serve]\ntrusted_user_header = \"X-User\"\n";
        let expected = "trusted_user_header needs trusted_addresses or secret_header";
        assert!(parse(header).unwrap_err().ends_with(expected));
        assert!(parse(&format!("{header}trusted_addresses = [\"127.0.0.1\"]\n")).is_ok());
        let error = parse(&format!("{header}secret_header = \"X-S\"\n")).unwrap_err();
        assert!(error.ends_with("secret_header and secret_command need each other"), "{error}");
        let error = parse("[serve]\ntrusted_addresses = [\"proxy\"]\n").unwrap_err();
        assert_eq!(error, "config.toml:2: trusted_addresses: not an address: proxy");
        let error = parse("[serve]\ntrusted_user_header = \"X User\"\n").unwrap_err();
        assert_eq!(error, "config.toml:2: trusted_user_header is not the name of a header");
        let users = parse("[serve.users]\n\"ada@example.com\" = \"ada\"\n").unwrap().users;
        assert_eq!(users["ada@example.com"], "ada");
    }
}
