//! What goes to a remote, and who may see it there.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use steno_store::session_owners::SessionVisibility;

use crate::remote_url::{RemoteUrl, RemoteUrlError};

/// A configured remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSettings {
    /// Its name on this machine.
    pub name: String,
    /// Its address.
    pub url: RemoteUrl,
    /// Folders whose sessions are pushed, or whole parts of their paths. Empty for all.
    pub projects: Vec<String>,
    /// Agents whose sessions are pushed. Empty for all.
    pub agents: Vec<String>,
    /// Who may see the pushed sessions.
    pub visibility: SessionVisibility,
    /// Whether secrets are replaced before a session leaves this machine.
    pub redact: bool,
    /// Whether notes are pushed with their session.
    pub notes: bool,
    /// A command that prints the password of the database.
    pub password_command: Option<String>,
    /// Where the keys of a bucket's sessions are.
    pub keys: Option<KeyLocation>,
}

/// Where the keys of a bucket's sessions are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyLocation {
    /// In a PostgreSQL database, as a URL.
    Database(String),
    /// In the bucket, encrypted for the age identities in a file.
    IdentityFile(PathBuf),
}

impl FromStr for KeyLocation {
    type Err = RemoteUrlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse()? {
            RemoteUrl::Postgres(url) => Ok(Self::Database(url)),
            RemoteUrl::Folder(file) => Ok(Self::IdentityFile(file)),
            RemoteUrl::Bucket(_) => Err(RemoteUrlError::UnknownScheme),
        }
    }
}

impl fmt::Display for KeyLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(url) => f.write_str(url),
            Self::IdentityFile(file) => write!(f, "file://{}", file.display()),
        }
    }
}

impl RemoteSettings {
    /// Whether sessions of an agent in a project are pushed.
    pub fn selects(&self, agent: &str, project: Option<&str>) -> bool {
        let is_agent = self.agents.is_empty() || self.agents.iter().any(|name| name == agent);
        let is_below = |part: &String| {
            let part = part.trim_matches('/');
            let path = format!("/{}/", project.unwrap_or_default().trim_matches('/'));
            !part.is_empty() && path.contains(&format!("/{part}/"))
        };
        is_agent && (self.projects.is_empty() || self.projects.iter().any(is_below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_by_agent_and_whole_parts_of_paths() {
        let settings = RemoteSettings {
            name: "team".to_owned(),
            url: RemoteUrl::Folder("/srv".into()),
            projects: vec!["code/shop".to_owned()],
            agents: vec!["codex".to_owned()],
            visibility: SessionVisibility::Team,
            redact: true,
            notes: true,
            password_command: None,
            keys: None,
        };
        assert!(settings.selects("codex", Some("/home/ada/code/shop/api")));
        assert!(!settings.selects("codex", Some("/home/ada/code/shop2")));
        assert!(!settings.selects("codex", None));
        assert!(!settings.selects("gemini", Some("/home/ada/code/shop")));
        let all = RemoteSettings { projects: Vec::new(), agents: Vec::new(), ..settings };
        assert!(all.selects("gemini", None));
    }
}
