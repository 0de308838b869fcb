//! The store: finds kept sessions by id, prefix, `latest` or path.

use std::path::{Path, PathBuf};

use steno_core::Transcript;
use steno_core::format;
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
        let path = self.cwd.join(name);
        if path.exists() {
            return read_one(&path);
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

/// Reads the one session at a path, without the store.
pub(crate) fn read_one(path: &Path) -> Result<Transcript, CommandError> {
    let mut found = format::find(path)?;
    // A session that is all of the path is meant before one somewhere below it.
    if found.iter().filter(|found| found.bundle.root == path).count() == 1 {
        found.retain(|found| found.bundle.root == path);
    }
    match found.len() {
        0 => Err(unknown_format(path)),
        1 => Ok(found.remove(0).read()?),
        count => {
            let error = CommandError::user(format!("{count} sessions at {}", path.display()));
            Err(error.hint(format!("name one of them, such as {}", found[0].bundle.root.display())))
        }
    }
}

/// The error for a path where nothing was recognised.
pub(crate) fn unknown_format(path: &Path) -> CommandError {
    let error =
        CommandError::user(format!("no transcript of a known format at: {}", path.display()));
    error.hint("known formats: leslie, devflow, weakincentives, chibi, Claude lines, Steno's own")
}
