//! The store: finds kept sessions by id, prefix, `latest` or path.

use std::path::{Path, PathBuf};

use steno_core::Transcript;
use steno_core::format::{self, Found};
use steno_core::vault::{SessionDir, Vault};

use crate::error::CommandError;
use crate::scene::Scene;

/// `$STENO_HOME`.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) vault: Vault,
    cwd: PathBuf,
}

impl Store {
    pub(crate) fn new(scene: &Scene) -> Self {
        Self { vault: Vault::new(scene.store.join("vault")), cwd: scene.cwd.clone() }
    }

    /// The transcript that `name` means: a session's id, the beginning of one, `latest`, or a path.
    pub(crate) fn transcript(&self, name: &str) -> Result<Transcript, CommandError> {
        if let Some(session) = self.session(name)? {
            return Ok(session.read()?);
        }
        if let Some(place) = Place::of(&self.cwd, name) {
            return place.read();
        }
        let error = CommandError::user(format!("no session or file of this name: {name}"));
        Err(error.hint("run `steno list` to see the sessions that are kept"))
    }

    fn session(&self, name: &str) -> Result<Option<SessionDir>, CommandError> {
        let sessions = self.vault.sessions()?;
        if name == "latest" {
            return self.latest().map(Some);
        }
        let (exact, like): (Vec<_>, Vec<_>) = sessions
            .into_iter()
            .filter(|session| session.id().as_str().starts_with(name))
            .partition(|session| session.id().as_str() == name);
        let candidates = if exact.is_empty() { like } else { exact };
        match candidates.as_slice() {
            [] => Ok(None),
            [session] => Ok(Some(session.clone())),
            several => {
                let names: Vec<String> = several
                    .iter()
                    .map(|session| format!("{} ({})", session.id(), session.agent()))
                    .collect();
                let error = CommandError::user(format!("several sessions begin with: {name}"));
                Err(error.hint(format!("one of: {}", names.join(", "))))
            }
        }
    }

    /// The session that began last.
    pub(crate) fn latest(&self) -> Result<SessionDir, CommandError> {
        let mut latest = None;
        for session in self.vault.sessions()? {
            // One that cannot be read is not what anybody is looking for.
            let Ok(transcript) = session.read() else { continue };
            let started = transcript.session.started.map(|started| started.instant());
            if latest.as_ref().is_none_or(|(newest, _)| started >= *newest) {
                latest = Some((started, session));
            }
        }
        let (_, session) = latest.ok_or_else(|| {
            CommandError::user("nothing is kept yet")
                .hint("run `steno import PATH` or `steno record`")
        })?;
        Ok(session)
    }
}

/// Where a session stands outside of the store: a path, and `#KEY` where a file holds several.
pub(crate) struct Place {
    path: PathBuf,
    key: Option<String>,
}

impl Place {
    /// The place that `name` means, if there is a file or folder.
    pub(crate) fn of(cwd: &Path, name: &str) -> Option<Self> {
        let path = cwd.join(name);
        if path.exists() {
            return Some(Self { path, key: None });
        }
        let (path, key) = name.rsplit_once('#')?;
        let path = cwd.join(path);
        path.exists().then(|| Self { path, key: Some(key.to_owned()) })
    }

    /// Reads the one session that is there.
    pub(crate) fn read(&self) -> Result<Transcript, CommandError> {
        let mut found = format::find(&self.path)?;
        if self.key.is_some() {
            found.retain(|found| found.bundle.key == self.key);
        }
        // A session that is all of the path is meant before one somewhere below it.
        if found.iter().filter(|found| found.bundle.root == self.path).count() == 1 {
            found.retain(|found| found.bundle.root == self.path);
        }
        match found.len() {
            0 => Err(unknown_format(&self.path)),
            1 => Ok(found.remove(0).read()?),
            count => {
                let error =
                    CommandError::user(format!("{count} sessions at {}", self.path.display()));
                Err(error.hint(format!("name one of them, such as {}", named(&found[0]))))
            }
        }
    }
}

/// How a user would name a session that was found.
fn named(found: &Found) -> String {
    let root = found.bundle.root.display();
    match &found.bundle.key {
        Some(key) => format!("{root}#{key}"),
        None => root.to_string(),
    }
}

/// The error for a path where nothing was recognised.
pub(crate) fn unknown_format(path: &Path) -> CommandError {
    let error =
        CommandError::user(format!("no transcript of a known format at: {}", path.display()));
    error.hint("run `steno inspect PATH` on the folder above it to see what is recognised")
}
