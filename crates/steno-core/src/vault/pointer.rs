//! A file that holds several sessions is kept with one of them; the others only point to it.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use super::frame::{FileHeader, Form, damaged};
use super::keep::{Growth, Place};
use super::sealed::{Sealed, SealedWriter};
use super::{SessionDir, file_name};
use crate::durable::{FileError, OnPath};
use crate::source::{Bundle, Source};

/// What a pointer says: whose file it is.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
struct Pointer {
    agent: String,
    session: String,
}

impl SessionDir {
    /// Notes that `holder` keeps the file of this session too.
    pub fn point_to(&self, holder: &SessionDir, bundle: &Bundle) -> Result<(), FileError> {
        let Some(file) = bundle.shared_file() else { return Ok(()) };
        let _lock = self.lock_for_keeping()?;
        let stem = file_name(file.name());
        let newest = self.newest_file(&stem)?;
        let session = holder.id().as_str().to_owned();
        let pointer = Pointer { agent: holder.agent().to_owned(), session };
        if let Some((stem, generation)) = &newest {
            let sealed = Sealed::open(&self.kept_path(stem, *generation))?;
            let is_same = sealed.header().key == bundle.key && !sealed.header().gone;
            if is_same && sealed.header().form == Form::Pointer && pointer_in(sealed)? == pointer {
                return Ok(());
            }
        }
        let generation = newest.map_or(0, |(_, generation)| generation + 1);
        let header = self.header(file.name(), file.path(), &bundle.root, generation);
        let header = FileHeader { key: bundle.key.clone(), form: Form::Pointer, ..header };
        let mut writer = SealedWriter::create(&self.kept_path(&stem, generation), &header)?;
        let line = serde_json::to_string(&pointer).expect("names are text") + "\n";
        writer.push(line.as_bytes())?;
        writer.finish()?;
        writer.sync_content()?;
        self.write_manifest()
    }

    /// The session that keeps this one's file, where it is another.
    pub fn holder(&self) -> Result<Option<SessionDir>, FileError> {
        for (stem, generation) in self.newest_files()? {
            let sealed = Sealed::open(&self.kept_path(&stem, generation))?;
            if sealed.header().form == Form::Pointer && !sealed.header().gone {
                return self.target(sealed).map(Some);
            }
        }
        Ok(None)
    }

    /// Keeps what is new in a file that was kept here for several sessions.
    pub fn grow(&self, file: &Source, growth: Growth) -> Result<u64, FileError> {
        let _lock = self.lock_for_keeping()?;
        let newest = self.newest_file(&file_name(file.name()))?;
        let Some((stem, generation)) = newest else { return Ok(0) };
        let sealed = Sealed::open(&self.kept_path(&stem, generation))?;
        let FileHeader { root, key, .. } = sealed.header();
        let place = Place { root: root.as_ref(), key: key.as_deref(), form: Form::Bytes };
        let growth = if file.name().ends_with(".jsonl") { growth } else { Growth::Ended };
        let added = self.keep_locked(file, &place, growth)?.added;
        self.write_manifest()?;
        Ok(added)
    }

    /// The file that a pointer of this session points to.
    pub(super) fn pointed_to(&self, pointer: &Sealed) -> Result<Sealed, FileError> {
        let missing = |holder: &SessionDir| {
            let reason = format!("the file is kept with {}, where it is missing", holder.id());
            io::Error::new(io::ErrorKind::NotFound, reason)
        };
        let holder = self.target(Sealed::open(pointer.path())?)?;
        let newest = holder.newest_file(&file_name(&pointer.header().name))?;
        let (stem, generation) =
            newest.ok_or_else(|| missing(&holder)).on("read", pointer.path())?;
        let sealed = Sealed::open(&holder.kept_path(&stem, generation))?;
        if sealed.header().form != Form::Bytes || sealed.header().gone {
            return Err(missing(&holder)).on("read", pointer.path());
        }
        Ok(sealed)
    }

    fn target(&self, pointer: Sealed) -> Result<SessionDir, FileError> {
        let path = pointer.path().to_owned();
        let Pointer { agent, session } = pointer_in(pointer)?;
        match (agent.parse(), session.parse()) {
            (Ok(agent), Ok(session)) => Ok(self.sibling(&agent, &session)),
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
