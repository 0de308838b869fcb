//! The address of a remote: a shared folder or a PostgreSQL database.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a remote. It never contains a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteUrl {
    /// A folder that all members of the team can write.
    Folder(PathBuf),
    /// A database, as a URL.
    Postgres(String),
}

/// An invalid address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteUrlError {
    /// The scheme is unknown.
    #[error("not the URL of a remote (file:///folder or postgres://user@host/database)")]
    UnknownScheme,
    /// A folder is not absolute.
    #[error("the folder of a remote must be absolute: {0}")]
    RelativeFolder(String),
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

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "file://{}", folder.display()),
            Self::Postgres(url) => f.write_str(url),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_folders_and_databases() {
        for text in
            ["file:///srv/steno", "postgres://ada@db.example.com:5433/steno?sslmode=require"]
        {
            assert_eq!(text.parse::<RemoteUrl>().unwrap().to_string(), text);
        }
        let error = |text: &str| text.parse::<RemoteUrl>().unwrap_err();
        assert_eq!(error("file://srv"), RemoteUrlError::RelativeFolder("srv".to_owned()));
        assert_eq!(error("s3://bucket"), RemoteUrlError::UnknownScheme);
        assert_eq!(error("postgres://ada@host"), RemoteUrlError::Missing("database"));
        assert_eq!(error("postgres://host/steno"), RemoteUrlError::Missing("user"));
    }

    #[test]
    fn a_password_is_refused_and_never_shown() {
        let password = ["hunter", "2"].concat();
        for text in [
            format!("postgres://ada:{password}@host/steno"),
            format!("postgres://ada@host/steno?password={password}"),
        ] {
            let error = text.parse::<RemoteUrl>().unwrap_err();
            assert_eq!(error, RemoteUrlError::HasPassword);
            assert!(!format!("{error} {error:?}").contains(&password));
        }
    }
}
