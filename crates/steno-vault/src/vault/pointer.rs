//! A file that holds several sessions is kept with one of them; the others store a pointer to it.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use super::commit::VaultCommit;
use super::frame::{ContentForm, SealedFileHeader, damage_error};
use super::keep::FilePlacement;
use super::sealed::{SealedFile, SealedWriter};
use super::{SessionDir, encode_file_name};
use crate::{SessionBundle, SessionFile};
use steno_model::durable::{FileError, OnPath};

/// The content of a pointer: the session that keeps the file, and the generation.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
struct HolderPointer {
    agent: String,
    session: String,
    /// Without a generation, the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generation: Option<u32>,
}

impl SessionDir {
    /// Records that `holder` keeps the shared file for this session too.
    pub fn point_to_holder(
        &self,
        holder: &SessionDir,
        bundle: &SessionBundle,
        commit: &mut VaultCommit,
    ) -> Result<(), FileError> {
        let Some(file) = bundle.shared_file() else { return Ok(()) };
        if commit.holds_session(holder) {
            // A pointer must name a listed generation.
            commit.finish()?;
        }
        self.lock_for_keeping(commit)?;
        let stem = encode_file_name(file.name());
        let newest = self.newest_generation(&stem)?;
        let held = holder.newest_generation(&stem)?.map(|(_, generation)| generation);
        let (agent, session) = (holder.agent().to_owned(), holder.id().as_str().to_owned());
        let pointer = HolderPointer { agent, session, generation: held };
        if let Some((stem, generation)) = &newest {
            let sealed = self.open_sealed(stem, *generation)?;
            let is_same = sealed.header().key == bundle.key && !sealed.header().gone;
            if is_same
                && sealed.header().form == ContentForm::Pointer
                && read_pointer(sealed)? == pointer
            {
                return Ok(());
            }
        }
        let generation = self.next_generation(&stem)?;
        let header = self.new_file_header(file.name(), file.path(), &bundle.root, generation);
        let header =
            SealedFileHeader { key: bundle.key.clone(), form: ContentForm::Pointer, ..header };
        let mut writer = SealedWriter::create(&self.sealed_path(&stem, generation), &header)?;
        let line = serde_json::to_string(&pointer).expect("names are text") + "\n";
        writer.push(line.as_bytes())?;
        commit.add_file(self, writer.finish()?);
        Ok(())
    }

    /// The session that keeps this session's file, if it is another.
    pub fn holder(&self) -> Result<Option<SessionDir>, FileError> {
        for (stem, generation) in self.newest_generations()? {
            let sealed = self.open_sealed(&stem, generation)?;
            if sealed.header().form == ContentForm::Pointer && !sealed.header().gone {
                return self.pointer_target(sealed).map(|(holder, _)| Some(holder));
            }
        }
        Ok(None)
    }

    /// Keeps new bytes of a file shared by several sessions. Returns their number, or `None` if the file does not
    /// continue the kept content: it was rotated, and may no longer contain this session.
    pub fn grow_shared_file(
        &self,
        file: &SessionFile,
        commit: &mut VaultCommit,
    ) -> Result<Option<u64>, FileError> {
        self.lock_for_keeping(commit)?;
        let newest = self.newest_generation(&encode_file_name(file.name()))?;
        let Some((stem, generation)) = newest else { return Ok(None) };
        let sealed = self.open_sealed(&stem, generation)?;
        let SealedFileHeader { root, key, .. } = sealed.header();
        let place =
            FilePlacement { root: root.as_ref(), key: key.as_deref(), form: ContentForm::Bytes };
        Ok(self.grow_file_locked(file, &place, commit)?.map(|kept| kept.added))
    }

    /// Opens the file that a pointer refers to.
    pub(super) fn resolve_pointer(&self, pointer: &SealedFile) -> Result<SealedFile, FileError> {
        let missing = |holder: &SessionDir| {
            let reason = format!("the file is kept with {}, where it is missing", holder.id());
            io::Error::new(io::ErrorKind::NotFound, reason)
        };
        let (holder, generation) = self.pointer_target(pointer.file_ref().open()?)?;
        let stem = encode_file_name(&pointer.header().name);
        let last = || -> Result<_, FileError> {
            let mut last = holder.last_generations()?.into_iter();
            Ok(last.find(|(name, _)| *name == stem).map(|(_, generation)| generation))
        };
        let generation = if generation.is_some() { generation } else { last()? };
        let generation = generation.ok_or_else(|| missing(&holder)).on("read", pointer.path())?;
        let sealed = match holder.open_sealed(&stem, generation) {
            Err(error) if error.is_missing() => {
                return Err(missing(&holder)).on("read", pointer.path());
            }
            other => other?,
        };
        if sealed.header().form != ContentForm::Bytes || sealed.header().gone {
            return Err(missing(&holder)).on("read", pointer.path());
        }
        Ok(sealed)
    }

    /// The session and generation that a pointer names.
    fn pointer_target(&self, pointer: SealedFile) -> Result<(SessionDir, Option<u32>), FileError> {
        let path = pointer.path().to_owned();
        let HolderPointer { agent, session, generation } = read_pointer(pointer)?;
        match (agent.parse(), session.parse()) {
            (Ok(agent), Ok(session)) => Ok((self.sibling_session(&agent, &session), generation)),
            _ => Err(damage_error("a pointer to no session")).on("read", &path),
        }
    }
}

fn read_pointer(sealed: SealedFile) -> Result<HolderPointer, FileError> {
    let path = sealed.path().to_owned();
    let mut text = Vec::new();
    sealed.reader_from(0).take(1 << 16).read_to_end(&mut text).on("read", &path)?;
    serde_json::from_slice(&text).map_err(|_| damage_error("not a pointer")).on("read", &path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_without_a_generation_means_the_last() {
        let vault = tempfile::tempdir().unwrap();
        let log = vault.path().join("log.jsonl");
        let vault = crate::vault::Vault::new(vault.path().join("vault"));
        let [holder, other] =
            ["h", "o"].map(|id| vault.session_dir(&"a".parse().unwrap(), &id.parse().unwrap()));
        let bundle = |key: &str| SessionBundle {
            key: Some(key.to_owned()),
            ..SessionBundle::from_file(&log)
        };
        let keep = |text: &str| {
            std::fs::write(&log, text).unwrap();
            holder.keep_session(&bundle("h")).unwrap();
        };
        keep("first\n");
        let mut commit = vault.begin_commit();
        other.point_to_holder(&holder, &bundle("o"), &mut commit).unwrap();
        commit.finish().unwrap();
        keep("second\n");
        let bytes = || other.kept_bundle().unwrap().files[0].read_bytes().unwrap();
        assert_eq!(bytes(), b"first\n");
        let path = other.sealed_path("log.jsonl", 0);
        let header = SealedFile::open(&path).unwrap().header().clone();
        let mut writer = SealedWriter::create(&path, &header).unwrap();
        writer.push(b"{\"agent\":\"a\",\"session\":\"h\"}\n").unwrap();
        commit.add_file(&other, writer.finish().unwrap());
        commit.finish().unwrap();
        assert_eq!(bytes(), b"second\n");
    }
}
