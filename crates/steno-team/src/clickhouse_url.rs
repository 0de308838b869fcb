//! The address of a search index in ClickHouse.

use std::fmt;
use std::str::FromStr;

/// The organisation of a URL without one.
const DEFAULT_ORG: &str = "default";

/// The user of a URL without one.
const DEFAULT_USER: &str = "default";

/// Where ClickHouse's HTTP interface is, and the organisation whose rows are read and written there. It never contains a
/// password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClickHouseUrl {
    /// The scheme, host and port: `http://host:8123`.
    pub(crate) origin: String,
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) org: String,
}

/// An invalid address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClickHouseUrlError {
    /// The scheme is unknown.
    #[error("not the URL of a ClickHouse database (clickhouse+http://user@host:8123/database)")]
    UnknownScheme,
    /// The URL has a password.
    #[error("a URL must not contain a password")]
    HasPassword,
    /// The URL names no host or database, or one with other characters than letters, digits, `_`, `-` and `.`.
    #[error("the URL has no valid {0}")]
    Invalid(&'static str),
    /// An option of the URL is unknown.
    #[error("unknown option of the URL: {0}; only org=NAME is known")]
    UnknownOption(String),
}

impl FromStr for ClickHouseUrl {
    type Err = ClickHouseUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = text.strip_prefix("clickhouse+").unwrap_or(text);
        let (scheme, rest) = plain.split_once("://").ok_or(ClickHouseUrlError::UnknownScheme)?;
        if !matches!(scheme, "http" | "https") {
            return Err(ClickHouseUrlError::UnknownScheme);
        }
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) =
            place.split_once('/').ok_or(ClickHouseUrlError::Invalid("database"))?;
        let (user, host) = authority.rsplit_once('@').unwrap_or((DEFAULT_USER, authority));
        let has_password_option = options.to_ascii_lowercase().contains("password");
        if user.contains(':') || has_password_option {
            return Err(ClickHouseUrlError::HasPassword);
        }
        let mut org = DEFAULT_ORG;
        for option in options.split('&').filter(|option| !option.is_empty()) {
            org = option
                .strip_prefix("org=")
                .ok_or_else(|| ClickHouseUrlError::UnknownOption(option.to_owned()))?;
        }
        let host_name = host.trim_start_matches('[').replace([']', ':'], "");
        for (part, value) in
            [("user", user), ("host", host_name.as_str()), ("database", database), ("org", org)]
        {
            if !is_plain_name(value) {
                return Err(ClickHouseUrlError::Invalid(part));
            }
        }
        let own = str::to_owned;
        let origin = format!("{scheme}://{host}");
        Ok(Self { origin, user: own(user), database: own(database), org: own(org) })
    }
}

fn is_plain_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !name.is_empty() && name.bytes().all(is_plain)
}

impl fmt::Display for ClickHouseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, user, database, org } = self;
        let (scheme, host) = origin.split_once("://").unwrap_or(("http", origin));
        write!(f, "clickhouse+{scheme}://{user}@{host}/{database}")?;
        if org != DEFAULT_ORG {
            write!(f, "?org={org}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_hosts_databases_and_organisations() {
        let url = "clickhouse+https://ada@db.example.com:8443/steno?org=shop";
        let parsed: ClickHouseUrl = url.parse().unwrap();
        assert_eq!(parsed.to_string(), url);
        assert_eq!(parsed.origin, "https://db.example.com:8443");
        assert_eq!((parsed.user.as_str(), parsed.org.as_str()), ("ada", "shop"));
        let plain: ClickHouseUrl = "http://[::1]:8123/steno".parse().unwrap();
        assert_eq!(plain.to_string(), "clickhouse+http://default@[::1]:8123/steno");
        let error = |text: &str| text.parse::<ClickHouseUrl>().unwrap_err();
        assert_eq!(error("postgres://ada@host/steno"), ClickHouseUrlError::UnknownScheme);
        assert_eq!(error("http://ada@host:8123"), ClickHouseUrlError::Invalid("database"));
        assert_eq!(error("http://host/a;b"), ClickHouseUrlError::Invalid("database"));
        assert_eq!(error("http://host/a?org=x'y"), ClickHouseUrlError::Invalid("org"));
        assert_eq!(
            error("http://host/a?max=1"),
            ClickHouseUrlError::UnknownOption("max=1".to_owned())
        );
    }

    #[test]
    fn a_password_is_refused_and_never_shown() {
        let password = ["hunter", "2"].concat();
        for text in
            [format!("http://ada:{password}@host/s"), format!("http://host/s?password={password}")]
        {
            let error = text.parse::<ClickHouseUrl>().unwrap_err();
            assert_eq!(error, ClickHouseUrlError::HasPassword);
            assert!(!format!("{error} {error:?}").contains(&password));
        }
    }
}
