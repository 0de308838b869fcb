//! The address of a remote: a shared folder, a bucket or a PostgreSQL database.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a remote. It never contains a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteUrl {
    /// A folder that all members of the team can write.
    Folder(PathBuf),
    /// A bucket, as a URL: `s3://bucket/prefix`, `gs://` or `az://`.
    Bucket(String),
    /// A database, as a URL.
    Postgres(String),
}

/// An invalid address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteUrlError {
    /// The scheme is unknown.
    #[error(
        "not the URL of a remote (file:///folder, s3://bucket/prefix or postgres://user@host/database)"
    )]
    UnknownScheme,
    /// A folder is not absolute.
    #[error("the folder of a remote must be absolute: {0}")]
    RelativeFolder(String),
    /// The prefix in a bucket has parts that no object can have.
    #[error("not a prefix in a bucket: {0}")]
    BucketPrefix(String),
    /// The URL has a password.
    #[error("a URL must not contain a password")]
    HasPassword,
    /// The URL names no database or user.
    #[error("the URL names no {0}")]
    Missing(&'static str),
}

impl FromStr for RemoteUrl {
    type Err = RemoteUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(path) = text.strip_prefix("file://") {
            let is_absolute = path.starts_with('/');
            let folder = || RemoteUrl::Folder(PathBuf::from(path));
            return is_absolute
                .then(folder)
                .ok_or_else(|| RemoteUrlError::RelativeFolder(path.to_owned()));
        }
        if let Some((_, place)) = text.split_once("://").filter(|(scheme, _)| is_bucket(scheme)) {
            return parse_bucket(text, place);
        }
        let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
        let rest = rest.ok_or(RemoteUrlError::UnknownScheme)?;
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) =
            place.split_once('/').ok_or(RemoteUrlError::Missing("database"))?;
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        let has_password_option =
            options.split('&').any(|option| option.to_ascii_lowercase().starts_with("password"));
        if user.contains(':') || has_password_option {
            return Err(RemoteUrlError::HasPassword);
        }
        if user.is_empty() {
            return Err(RemoteUrlError::Missing("user"));
        }
        if database.is_empty() {
            return Err(RemoteUrlError::Missing("database"));
        }
        Ok(Self::Postgres(text.to_owned()))
    }
}

fn is_bucket(scheme: &str) -> bool {
    ["s3", "gs", "az"].contains(&scheme)
}

fn parse_bucket(text: &str, place: &str) -> Result<RemoteUrl, RemoteUrlError> {
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    // Credentials come from the environment. A URL with a signature has them in its query.
    if bucket.contains(['@', ':']) || text.contains(['?', '#']) {
        return Err(RemoteUrlError::HasPassword);
    }
    if bucket.is_empty() {
        return Err(RemoteUrlError::Missing("bucket"));
    }
    let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['%', '\\']);
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    match prefix.is_empty() || prefix.split('/').all(is_plain) {
        true => Ok(RemoteUrl::Bucket(text.to_owned())),
        false => Err(RemoteUrlError::BucketPrefix(prefix.to_owned())),
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "file://{}", folder.display()),
            Self::Bucket(url) | Self::Postgres(url) => f.write_str(url),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_folders_and_databases() {
        for text in [
            "file:///srv/steno",
            "postgres://ada@db.example.com:5433/steno?sslmode=require",
            "s3://b",
            "az://b/a/c",
        ] {
            assert_eq!(text.parse::<RemoteUrl>().unwrap().to_string(), text);
        }
        let error = |text: &str| text.parse::<RemoteUrl>().unwrap_err();
        assert_eq!(error("file://srv"), RemoteUrlError::RelativeFolder("srv".to_owned()));
        assert_eq!(error("ftp://bucket"), RemoteUrlError::UnknownScheme);
        assert_eq!(error("s3:///prefix"), RemoteUrlError::Missing("bucket"));
        assert_eq!(error("s3://b/../x"), RemoteUrlError::BucketPrefix("../x".to_owned()));
        assert_eq!(error("postgres://ada@host"), RemoteUrlError::Missing("database"));
        assert_eq!(error("postgres://host/steno"), RemoteUrlError::Missing("user"));
    }

    #[test]
    fn a_password_is_refused_and_never_shown() {
        let password = ["hunter", "2"].concat();
        for text in [
            format!("postgres://ada:{password}@host/steno"),
            format!("postgres://ada@host/steno?password={password}"),
            format!("s3://ada:{password}@bucket/steno"),
            format!("s3://bucket/steno?secret={password}"),
        ] {
            let error = text.parse::<RemoteUrl>().unwrap_err();
            assert_eq!(error, RemoteUrlError::HasPassword);
            assert!(!format!("{error} {error:?}").contains(&password));
        }
    }
}
