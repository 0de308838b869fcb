//! A file that holds several sessions is kept with one of them; the others store a pointer to it.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use super::commit::VaultCommit;
use super::frame::{FileHeader, Form, damaged};
use super::keep::Place;
use super::sealed::{Sealed, SealedWriter};
use super::{SessionDir, file_name};
use crate::durable::{FileError, OnPath};
use steno_vault::{Bundle, Source};

/// The content of a pointer: the session that keeps the file, and the generation.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
struct Pointer {
    agent: String,
    session: String,
    /// Without a generation, the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generation: Option<u32>,
}

impl SessionDir {
    /// Records that `holder` keeps the shared file for this session too.
    pub fn point_to(
        &self,
        holder: &SessionDir,
        bundle: &Bundle,
        commit: &mut VaultCommit,
    ) -> Result<(), FileError> {
        let Some(file) = bundle.shared_file() else { return Ok(()) };
        if commit.holds(holder) {
            // A pointer must name a listed generation.
            commit.finish()?;
        }
        self.lock_for_keeping(commit)?;
        let stem = file_name(file.name());
        let newest = self.newest_file(&stem)?;
        let held = holder.newest_file(&stem)?.map(|(_, generation)| generation);
        let (agent, session) = (holder.agent().to_owned(), holder.id().as_str().to_owned());
        let pointer = Pointer { agent, session, generation: held };
        if let Some((stem, generation)) = &newest {
            let sealed = self.open_kept(stem, *generation)?;
            let is_same = sealed.header().key == bundle.key && !sealed.header().gone;
            if is_same && sealed.header().form == Form::Pointer && pointer_in(sealed)? == pointer {
                return Ok(());
            }
        }
        let generation = self.next_generation(&stem)?;
        let header = self.header(file.name(), file.path(), &bundle.root, generation);
        let header = FileHeader { key: bundle.key.clone(), form: Form::Pointer, ..header };
        let mut writer = SealedWriter::create(&self.kept_path(&stem, generation), &header)?;
        let line = serde_json::to_string(&pointer).expect("names are text") + "\n";
        writer.push(line.as_bytes())?;
        commit.add_file(self, writer.finish()?);
        Ok(())
    }

    /// The session that keeps this session's file, if it is another.
    pub fn holder(&self) -> Result<Option<SessionDir>, FileError> {
        for (stem, generation) in self.newest_files()? {
            let sealed = self.open_kept(&stem, generation)?;
            if sealed.header().form == Form::Pointer && !sealed.header().gone {
                return self.target(sealed).map(|(holder, _)| Some(holder));
            }
        }
        Ok(None)
    }

    /// Keeps new bytes of a file shared by several sessions. Returns their number, or `None` if the file does not
    /// continue the kept content: it was rotated, and may no longer contain this session.
    pub fn grow(&self, file: &Source, commit: &mut VaultCommit) -> Result<Option<u64>, FileError> {
        self.lock_for_keeping(commit)?;
        let newest = self.newest_file(&file_name(file.name()))?;
        let Some((stem, generation)) = newest else { return Ok(None) };
        let sealed = self.open_kept(&stem, generation)?;
        let FileHeader { root, key, .. } = sealed.header();
        let place = Place { root: root.as_ref(), key: key.as_deref(), form: Form::Bytes };
        Ok(self.grow_locked(file, &place, commit)?.map(|kept| kept.added))
    }

    /// Opens the file that a pointer refers to.
    pub(super) fn pointed_to(&self, pointer: &Sealed) -> Result<Sealed, FileError> {
        let missing = |holder: &SessionDir| {
            let reason = format!("the file is kept with {}, where it is missing", holder.id());
            io::Error::new(io::ErrorKind::NotFound, reason)
        };
        let (holder, generation) = self.target(pointer.kept().open()?)?;
        let stem = file_name(&pointer.header().name);
        let last = || -> Result<_, FileError> {
            let mut last = holder.last_files()?.into_iter();
            Ok(last.find(|(name, _)| *name == stem).map(|(_, generation)| generation))
        };
        let generation = if generation.is_some() { generation } else { last()? };
        let generation = generation.ok_or_else(|| missing(&holder)).on("read", pointer.path())?;
        let sealed = match holder.open_kept(&stem, generation) {
            Err(error) if error.is_missing() => {
                return Err(missing(&holder)).on("read", pointer.path());
            }
            other => other?,
        };
        if sealed.header().form != Form::Bytes || sealed.header().gone {
            return Err(missing(&holder)).on("read", pointer.path());
        }
        Ok(sealed)
    }

    /// The session and generation that a pointer names.
    fn target(&self, pointer: Sealed) -> Result<(SessionDir, Option<u32>), FileError> {
        let path = pointer.path().to_owned();
        let Pointer { agent, session, generation } = pointer_in(pointer)?;
        match (agent.parse(), session.parse()) {
            (Ok(agent), Ok(session)) => Ok((self.sibling(&agent, &session), generation)),
            _ => Err(damaged("a pointer to no session")).on("read", &path),
        }
    }
}

fn pointer_in(sealed: Sealed) -> Result<Pointer, FileError> {
    let path = sealed.path().to_owned();
    let mut text = Vec::new();
    sealed.reader(0).take(1 << 16).read_to_end(&mut text).on("read", &path)?;
    serde_json::from_slice(&text).map_err(|_| damaged("not a pointer")).on("read", &path)
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
            ["h", "o"].map(|id| vault.session(&"a".parse().unwrap(), &id.parse().unwrap()));
        let bundle = |key: &str| Bundle { key: Some(key.to_owned()), ..Bundle::file(&log) };
        let keep = |text: &str| {
            std::fs::write(&log, text).unwrap();
            holder.keep_all(&bundle("h")).unwrap();
        };
        keep("first\n");
        let mut commit = vault.commit();
        other.point_to(&holder, &bundle("o"), &mut commit).unwrap();
        commit.finish().unwrap();
        keep("second\n");
        let bytes = || other.bundle().unwrap().sources[0].bytes().unwrap();
        assert_eq!(bytes(), b"first\n");
        let path = other.kept_path("log.jsonl", 0);
        let header = Sealed::open(&path).unwrap().header().clone();
        let mut writer = SealedWriter::create(&path, &header).unwrap();
        writer.push(b"{\"agent\":\"a\",\"session\":\"h\"}\n").unwrap();
        commit.add_file(&other, writer.finish().unwrap());
        commit.finish().unwrap();
        assert_eq!(bytes(), b"second\n");
    }
}
