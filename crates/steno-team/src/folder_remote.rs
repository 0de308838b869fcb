//! A remote in a shared folder.
//!
//! `sessions/OWNER/AGENT/ID/` has `manifest.json` and one file per frame; `forgotten/OWNER/AGENT/ID.json` is a tombstone.
//! Whoever can read the folder can read all sessions: the file system is the only guard.
//!
//! # Locking
//! A writer holds `.lock` of the session. A tombstone is written before the lock is taken to remove the session, and
//! every writer looks for one after it has taken the lock.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use steno_model::SessionId;
use steno_model::durable::{FileError, OnPath};
use steno_store::session_owners::SessionVisibility;

use crate::frame_chain::{FrameHash, FrameLink, SentFrame};
use crate::manifest::{REMOTE_VERSION, SessionKey, SessionManifest};
use crate::remote_tombstone::RemoteTombstone;
use crate::team_error::TeamError;

const VERSION_FILE: &str = "steno-remote.json";
const MANIFEST_FILE: &str = "manifest.json";

/// A shared folder.
#[derive(Debug)]
pub struct FolderRemote {
    folder: PathBuf,
    owner: String,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct RemoteVersion {
    steno_remote: i64,
}

impl FolderRemote {
    /// Opens no file. `user` is the name under which this user pushes.
    pub fn new(folder: impl Into<PathBuf>, user: &str) -> Self {
        let owner = SessionId::for_native("owner", user).to_string();
        Self { folder: folder.into(), owner }
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    pub(crate) fn initialise(&self) -> Result<bool, TeamError> {
        match self.check_version() {
            Ok(()) => return Ok(false),
            Err(TeamError::NotInitialised(_)) => {}
            Err(error) => return Err(error),
        }
        fs::create_dir_all(&self.folder).on("create", &self.folder)?;
        let version = serde_json::json!({ "steno_remote": REMOTE_VERSION });
        write_whole(&self.folder.join(VERSION_FILE), version.to_string().as_bytes())?;
        Ok(true)
    }

    pub(crate) fn check_version(&self) -> Result<(), TeamError> {
        let path = self.folder.join(VERSION_FILE);
        let remote = self.folder.display().to_string();
        let Some(text) = read_if_present(&path)? else {
            return Err(TeamError::NotInitialised(remote));
        };
        let found = serde_json::from_slice::<RemoteVersion>(&text).map(|read| read.steno_remote);
        match found {
            Ok(found) if found > REMOTE_VERSION => {
                Err(TeamError::NewerSchema { remote, found, known: REMOTE_VERSION })
            }
            Ok(found) if found < REMOTE_VERSION => {
                Err(TeamError::OlderSchema { remote, found, needed: REMOTE_VERSION })
            }
            Ok(_) => Ok(()),
            Err(error) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, error)).on("read", &path)?
            }
        }
    }

    fn session_folder(&self, key: &SessionKey) -> PathBuf {
        let SessionKey { owner, agent, id } = key;
        self.folder.join("sessions").join(owner).join(agent).join(id.as_str())
    }

    fn tombstone_path(&self, key: &SessionKey) -> PathBuf {
        let SessionKey { owner, agent, id } = key;
        self.folder.join("forgotten").join(owner).join(agent).join(format!("{id}.json"))
    }

    fn frame_path(&self, key: &SessionKey, hash: &FrameHash) -> PathBuf {
        self.session_folder(key).join(format!("{hash}.zst"))
    }

    /// Takes the lock of a session for writing.
    fn lock_session(&self, key: &SessionKey) -> Result<File, TeamError> {
        let folder = self.session_folder(key);
        fs::create_dir_all(&folder).on("create", &folder)?;
        let path = folder.join(".lock");
        let lock = File::options().create(true).append(true).open(&path).on("open", &path)?;
        lock.lock().on("lock", &path)?;
        if self.tombstone_path(key).exists() {
            let _ = fs::remove_dir_all(&folder);
            return Err(TeamError::Forgotten(key.to_string()));
        }
        Ok(lock)
    }

    /// The keys of all files of a tree `OWNER/AGENT/NAME`. Names that are no ids are left out.
    fn list_keys(&self, tree: &str) -> Result<Vec<SessionKey>, TeamError> {
        let mut keys = Vec::new();
        let root = self.folder.join(tree);
        for owner in list_names(&root)? {
            for agent in list_names(&root.join(&owner))? {
                for name in list_names(&root.join(&owner).join(&agent))? {
                    let is_name = |name: &str| name.parse::<SessionId>().is_ok();
                    let id = name.strip_suffix(".json").filter(|_| tree == "forgotten");
                    let Ok(id) = id.unwrap_or(&name).parse() else { continue };
                    if is_name(&owner) && is_name(&agent) {
                        keys.push(SessionKey { owner: owner.clone(), agent: agent.clone(), id });
                    }
                }
            }
        }
        Ok(keys)
    }

    pub(crate) fn list_revisions(&self) -> Result<Vec<(SessionKey, FrameHash)>, TeamError> {
        let mut revisions = Vec::new();
        for key in self.list_keys("sessions")? {
            let path = self.session_folder(&key).join(MANIFEST_FILE);
            // A private session is not shown to others, although they could read its files.
            if let Some(text) = read_if_present(&path)?
                && (key.owner == self.owner || !is_private(&text))
            {
                revisions.push((key, FrameHash::of(&text)));
            }
        }
        Ok(revisions)
    }

    pub(crate) fn read_manifest(
        &self,
        key: &SessionKey,
    ) -> Result<Option<SessionManifest>, TeamError> {
        let path = self.session_folder(key).join(MANIFEST_FILE);
        let Some(text) = read_if_present(&path)? else { return Ok(None) };
        SessionManifest::parse(&String::from_utf8_lossy(&text), key).map(Some)
    }

    pub(crate) fn known_frames(
        &self,
        key: &SessionKey,
        hashes: &[FrameHash],
    ) -> HashSet<FrameHash> {
        let is_known = |hash: &&FrameHash| self.frame_path(key, hash).exists();
        hashes.iter().filter(is_known).copied().collect()
    }

    pub(crate) fn put_frames(
        &self,
        key: &SessionKey,
        frames: &[SentFrame],
    ) -> Result<(), TeamError> {
        let _lock = self.lock_session(key)?;
        for (hash, stored) in frames {
            write_whole(&self.frame_path(key, hash), stored)?;
        }
        Ok(())
    }

    pub(crate) fn swap_manifest(
        &self,
        expected: Option<FrameHash>,
        manifest: &SessionManifest,
    ) -> Result<bool, TeamError> {
        let _lock = self.lock_session(&manifest.key)?;
        let path = self.session_folder(&manifest.key).join(MANIFEST_FILE);
        let present = read_if_present(&path)?.map(|text| FrameHash::of(&text));
        if present != expected {
            return Ok(false);
        }
        write_whole(&path, manifest.to_json().as_bytes())?;
        Ok(true)
    }

    pub(crate) fn clear_session(&self, key: &SessionKey) -> Result<(), TeamError> {
        let _lock = self.lock_session(key)?;
        let folder = self.session_folder(key);
        remove_if_present(&folder.join(MANIFEST_FILE))?;
        for name in list_names(&folder)? {
            if name.ends_with(".zst") {
                remove_if_present(&folder.join(name))?;
            }
        }
        Ok(())
    }

    pub(crate) fn read_frame(
        &self,
        key: &SessionKey,
        frame: &FrameLink,
    ) -> Result<Option<Vec<u8>>, TeamError> {
        Ok(read_if_present(&self.frame_path(key, &frame.hash))?)
    }

    pub(crate) fn list_tombstones(&self) -> Result<Vec<RemoteTombstone>, TeamError> {
        let mut tombstones = Vec::new();
        for key in self.list_keys("forgotten")? {
            let path = self.tombstone_path(&key);
            let Some(text) = read_if_present(&path)? else { continue };
            let read: RemoteTombstone = serde_json::from_slice(&text)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
                .on("read", &path)?;
            // The path states whose session it is.
            if read.key == key {
                tombstones.push(read);
            }
        }
        Ok(tombstones)
    }

    pub(crate) fn forget_session(&self, forgotten: &RemoteTombstone) -> Result<(), TeamError> {
        let path = self.tombstone_path(&forgotten.key);
        let text = serde_json::to_vec(forgotten).expect("a tombstone has only texts and numbers");
        let parent = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(parent).on("create", parent)?;
        if !path.exists() {
            write_whole(&path, &text)?;
        }
        match self.lock_session(&forgotten.key) {
            Err(TeamError::Forgotten(_)) => Ok(()),
            other => other.map(drop),
        }
    }
}

fn is_private(manifest: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct VisibilityField {
        visibility: SessionVisibility,
    }
    let read = serde_json::from_slice::<VisibilityField>(manifest);
    read.map_or(true, |read| read.visibility == crate::SessionVisibility::Private)
}

/// Writes a file under another name and renames it, so that nobody sees a part of it.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let new = path.with_extension(format!("new-{}", uuid::Uuid::new_v4().simple()));
    let write = || -> io::Result<()> {
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&new, path)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written.on("write", path)
}

fn read_if_present(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.on("read", path).map(Some),
    }
}

fn remove_if_present(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.on("remove", path),
    }
}

fn list_names(folder: &Path) -> Result<Vec<String>, FileError> {
    let reader = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        // Files such as `.DS_Store` beside the folders have no names below.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(Vec::new()),
        other => other.on("read folder", folder)?,
    };
    let mut names = Vec::new();
    for entry in reader {
        names.extend(entry.on("read folder", folder)?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}
