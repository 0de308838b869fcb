//! Takes sessions that were found in files into the store.

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use steno_core::durable::{self, FileError, OnPath};
use steno_core::format::{FormatError, Found, Item};
use steno_core::session::Session;
use steno_core::vault::keep::Growth;
use steno_core::vault::{SessionDir, Vault};
use steno_core::{Problem, ProblemList, SessionId};

use crate::error::CommandError;

/// Keeps sessions, each under an id of its own.
pub(crate) struct Keeper {
    vault: Vault,
    known: HashMap<SessionId, SessionDir>,
    lock: File,
}

/// A session that was kept.
pub(crate) struct Kept {
    pub(crate) dir: SessionDir,
    /// Entries that it has now.
    pub(crate) entries: u64,
    /// Bytes that are new.
    pub(crate) added: u64,
    /// What of it could not be read.
    pub(crate) problems: ProblemList,
}

impl Keeper {
    pub(crate) fn new(vault: Vault) -> Result<Self, CommandError> {
        let path = vault.root().with_file_name("keeping.lock");
        durable::create_private_dir(durable::parent(&path))?;
        let lock =
            durable::private_options().create(true).append(true).open(&path).on("open", &path)?;
        let sessions = vault.sessions()?.into_iter();
        let known = sessions.map(|session| (session.id().clone(), session)).collect();
        Ok(Self { vault, known, lock })
    }

    /// Keeps what is new of a session.
    pub(crate) fn keep(&mut self, found: &Found, growth: Growth) -> Result<Kept, CommandError> {
        if found.bundle.key.is_some() {
            let root = found.bundle.root.display();
            let message = format!("one file with many sessions cannot be kept yet: {root}");
            let error = CommandError::user(message);
            return Err(error.hint("`steno show PATH#KEY` and `steno convert` read it where it is"));
        }
        let (mut entries, mut problems) = (0, ProblemList::default());
        let read = (found.reader.read)(&found.bundle, &mut |item| match item {
            Item::Entry(_) => entries += 1,
            Item::Problem(problem) => problems.push(problem),
        });
        let session = match read {
            Err(FormatError::File(error)) if is_too_large(&error) => {
                problems.push(Problem::of(&error.path, &error.source));
                unread(found)
            }
            other => other?,
        };
        // Two processes must not give one id to two sessions.
        self.lock.lock()?;
        let kept = self
            .dir(&session.agent, &session.id, &found.bundle.root)
            .and_then(|dir| Ok((dir.keep_all(&found.bundle, growth)?, dir)));
        self.lock.unlock()?;
        let (added, dir) = kept?;
        self.known.insert(dir.id().clone(), dir.clone());
        Ok(Kept { dir, entries, added, problems })
    }

    /// The session's folder; a session of the same name from another place gets a name of its own.
    fn dir(&self, agent: &str, id: &SessionId, root: &Path) -> Result<SessionDir, CommandError> {
        let name = agent.parse()?;
        let dir = self.vault.session(&name, id);
        // Of another agent, or kept by another process since we looked.
        let known = self.known.get(id).unwrap_or(&dir);
        if known.is_empty()? || (known.agent() == agent && is_kept_from(known, root)?) {
            return Ok(dir);
        }
        let place = format!("{}\n{id}", root.to_string_lossy());
        Ok(self.vault.session(&name, &SessionId::for_native(agent, &place)))
    }
}

/// Whether a file can be kept but not read.
fn is_too_large(error: &FileError) -> bool {
    error.source.kind() == ErrorKind::FileTooLarge
}

/// A session that only its place names.
fn unread(found: &Found) -> Session {
    let agent = found.reader.agent;
    let name = found.bundle.root.display().to_string();
    Session::new(SessionId::for_native(agent, &name), agent)
}

fn is_kept_from(dir: &SessionDir, root: &Path) -> Result<bool, CommandError> {
    Ok(dir.is_imported()? && dir.bundle()?.root.to_string_lossy() == root.to_string_lossy())
}
