//! Which sessions are being kept and are not in the index yet.
//!
//! Whoever keeps a session puts an empty file under `pending/<agent>/<session>` first, holds a shared lock on it, and
//! removes it once the index has the session. A file that nobody holds tells of a process that died in between.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::durable::{self, FileError, OnPath};
use crate::vault::{SessionDir, Vault};

/// The sessions that wait for the index.
#[derive(Clone, Debug)]
pub struct Pending {
    root: PathBuf,
}

/// Says that a session is about to change. Dropped without [`Marker::done`], the session stays pending.
#[derive(Debug)]
pub struct Marker {
    file: File,
    path: PathBuf,
}

impl Pending {
    /// Those of the store at `store`.
    pub fn new(store: &Path) -> Self {
        Self { root: store.join("pending") }
    }

    /// Marks a session, before anything of it is kept.
    pub fn mark(&self, dir: &SessionDir) -> Result<Marker, FileError> {
        let path = self.root.join(dir.agent()).join(dir.id().as_str());
        durable::create_private_dir(durable::parent(&path))?;
        loop {
            let mut options = durable::private_options();
            let file = options.create(true).append(true).open(&path).on("mark", &path)?;
            file.lock_shared().on("lock", &path)?;
            let marker = Marker { file, path: path.clone() };
            // Whoever had it before may have removed it while we waited.
            if marker.is_in_place() {
                return Ok(marker);
            }
        }
    }

    /// The sessions that are marked.
    pub(super) fn sessions(&self, vault: &Vault) -> Result<Vec<SessionDir>, FileError> {
        // A store whose sessions are elsewhere has the same names.
        let mut sessions = Vec::new();
        for agent in names(&self.root)? {
            for id in names(&self.root.join(&agent))? {
                if let (Ok(agent), Ok(id)) = (agent.parse(), id.parse()) {
                    sessions.push(vault.session(&agent, &id));
                }
            }
        }
        Ok(sessions)
    }

    /// Takes over the marker of a session that nobody is at any more.
    pub(super) fn claim(&self, dir: &SessionDir) -> Option<Marker> {
        let path = self.root.join(dir.agent()).join(dir.id().as_str());
        let file = File::options().append(true).open(&path).ok()?;
        file.try_lock().ok()?;
        Some(Marker { file, path }).filter(Marker::is_in_place)
    }
}

impl Marker {
    /// The index has the session. If somebody else is at it too, the marker is left to them.
    pub fn done(self) {
        if self.file.try_lock().is_ok() && self.is_in_place() {
            // One that stays only has the session looked at again.
            let _ = fs::remove_file(&self.path);
        }
    }

    #[cfg(unix)]
    fn is_in_place(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let (mine, there) = (self.file.metadata(), fs::metadata(&self.path));
        matches!((mine, there), (Ok(mine), Ok(there)) if mine.ino() == there.ino())
    }

    #[cfg(not(unix))]
    fn is_in_place(&self) -> bool {
        self.path.exists()
    }
}

fn names(dir: &Path) -> Result<Vec<String>, FileError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.on("read folder", dir)?,
    };
    Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}
