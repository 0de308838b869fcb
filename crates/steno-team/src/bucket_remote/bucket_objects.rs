//! The objects of a bucket below a prefix, one request after the other.
//!
//! No error shows the query of a URL, which can have a signature.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, ObjectStore, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use tokio::runtime::Runtime;

use crate::bucket_remote::segment::PiecePlace;
use crate::frame_chain::FrameHash;
use crate::team_error::TeamError;

/// Reads fetch whole blocks of this size, as the frames of a pull are next to each other.
const BLOCK_BYTES: u64 = 1 << 20;

/// How many blocks are held.
const MAX_BLOCKS: usize = 24;

/// The objects of one remote.
pub(crate) struct BucketObjects {
    runtime: Runtime,
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The URL, for errors.
    pub(crate) url: String,
    blocks: HashMap<(FrameHash, u64), Bytes>,
}

/// An object with what identifies its state.
pub(crate) struct StoredObject {
    pub(crate) bytes: Bytes,
    pub(crate) version: UpdateVersion,
}

/// What a conditional write has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConditionalPut {
    /// The object was written.
    Written(UpdateVersion),
    /// Somebody else has written it since.
    Refused,
}

impl fmt::Debug for BucketObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketObjects").field("url", &self.url).finish_non_exhaustive()
    }
}

impl BucketObjects {
    pub(crate) fn new(
        store: Arc<dyn ObjectStore>,
        prefix: Path,
        url: &str,
    ) -> Result<Self, TeamError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| TeamError::Objects {
            remote: url.to_owned(),
            action: "start",
            reason: error.to_string(),
        })?;
        Ok(Self { runtime, store, prefix, url: url.to_owned(), blocks: HashMap::new() })
    }

    fn failure(&self, action: &'static str, error: &Error) -> TeamError {
        TeamError::Objects { remote: self.url.clone(), action, reason: describe_error(error) }
    }

    fn path(&self, names: &[&str]) -> Path {
        names.iter().fold(self.prefix.clone(), |path, name| path.join(*name))
    }

    fn segment_path(&self, owner: &str, name: &FrameHash) -> Path {
        self.path(&["segments", owner, &name.to_string()])
    }

    /// Reads an object; `None` if there is none.
    pub(crate) fn read(&self, names: &[&str]) -> Result<Option<StoredObject>, TeamError> {
        let path = self.path(names);
        let work = async {
            let result = self.store.get_opts(&path, GetOptions::default()).await?;
            let version = UpdateVersion {
                e_tag: result.meta.e_tag.clone(),
                version: result.meta.version.clone(),
            };
            Ok(StoredObject { bytes: result.bytes().await?, version })
        };
        match self.runtime.block_on(work) {
            Ok(object) => Ok(Some(object)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failure("read an object", &error)),
        }
    }

    /// Writes an object, if it is still as expected; `None` expects no object.
    pub(crate) fn swap(
        &self,
        names: &[&str],
        expected: Option<UpdateVersion>,
        bytes: Vec<u8>,
    ) -> Result<ConditionalPut, TeamError> {
        self.put(&self.path(names), expected, bytes)
    }

    fn put(
        &self,
        path: &Path,
        expected: Option<UpdateVersion>,
        bytes: Vec<u8>,
    ) -> Result<ConditionalPut, TeamError> {
        let is_update = expected.is_some();
        let mode = expected.map_or(PutMode::Create, PutMode::Update);
        let options = PutOptions { mode, ..PutOptions::default() };
        let work = self.store.put_opts(path, PutPayload::from(bytes), options);
        match self.runtime.block_on(work) {
            Ok(done) => {
                let version = UpdateVersion { e_tag: done.e_tag, version: done.version };
                Ok(ConditionalPut::Written(version))
            }
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                Ok(ConditionalPut::Refused)
            }
            // A removed object cannot be updated. Without a bucket, nothing can be created.
            Err(Error::NotFound { .. }) if is_update => Ok(ConditionalPut::Refused),
            Err(error) => Err(self.failure("write an object", &error)),
        }
    }

    /// Removes an object, if there is one.
    pub(crate) fn remove(&self, names: &[&str]) -> Result<(), TeamError> {
        let path = self.path(names);
        let work = object_store::ObjectStoreExt::delete(&*self.store, &path);
        match self.runtime.block_on(work) {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failure("remove an object", &error)),
        }
    }

    /// The names below a folder, as parts of their paths.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<Vec<String>>, TeamError> {
        use futures_util::TryStreamExt;
        let path = self.path(&[folder]);
        let listed = self.runtime.block_on(self.store.list(Some(&path)).try_collect::<Vec<_>>());
        let listed = listed.map_err(|error| self.failure("list objects", &error))?;
        let parts = |path: &Path, below: &Path| {
            let rest = path.prefix_match(below)?;
            Some(rest.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>())
        };
        Ok(listed.iter().filter_map(|meta| parts(&meta.location, &path)).collect())
    }

    /// Writes a segment. One with this name has the same bytes.
    pub(crate) fn put_segment(
        &self,
        owner: &str,
        name: &FrameHash,
        bytes: Vec<u8>,
    ) -> Result<(), TeamError> {
        self.put(&self.segment_path(owner, name), None, bytes).map(drop)
    }

    pub(crate) fn has_segment(&self, owner: &str, name: &FrameHash) -> Result<bool, TeamError> {
        let path = self.segment_path(owner, name);
        let work = object_store::ObjectStoreExt::head(&*self.store, &path);
        match self.runtime.block_on(work) {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failure("look for a segment", &error)),
        }
    }

    /// Reads a piece. The inner error says what is wrong with the segment.
    pub(crate) fn read_piece(
        &mut self,
        owner: &str,
        place: &PiecePlace,
    ) -> Result<Result<Vec<u8>, String>, TeamError> {
        let Some(name) = place.segment else {
            return Ok(Err("a piece has no segment".to_owned()));
        };
        let end = place.offset.checked_add(place.length);
        let Some(end) = end.filter(|_| place.length <= u64::from(u32::MAX)) else {
            return Ok(Err(format!("a piece is outside of segment {name}")));
        };
        let mut piece = Vec::new();
        let (first, last) = (place.offset / BLOCK_BYTES, end.div_ceil(BLOCK_BYTES));
        for number in first..last {
            let Some(block) = self.block(owner, name, number)? else {
                return Ok(Err(format!("segment {name} is missing or truncated")));
            };
            let start = place.offset.max(number * BLOCK_BYTES) - number * BLOCK_BYTES;
            let stop = (end - number * BLOCK_BYTES).min(BLOCK_BYTES);
            match block.get(start as usize..stop as usize) {
                Some(part) => piece.extend_from_slice(part),
                None => return Ok(Err(format!("segment {name} is truncated"))),
            }
        }
        Ok(Ok(piece))
    }

    /// A block of a segment; `None` if the segment does not exist or ends before.
    fn block(
        &mut self,
        owner: &str,
        name: FrameHash,
        number: u64,
    ) -> Result<Option<Bytes>, TeamError> {
        if let Some(block) = self.blocks.get(&(name, number)) {
            return Ok(Some(block.clone()));
        }
        let path = self.segment_path(owner, &name);
        let start = number * BLOCK_BYTES;
        let range = Some(GetRange::Bounded(start..start + BLOCK_BYTES));
        let work = async {
            let options = GetOptions { range, ..GetOptions::default() };
            self.store.get_opts(&path, options).await?.bytes().await
        };
        let block = match self.runtime.block_on(work) {
            Ok(block) => block,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => {
                let is_there = self.segment_length(&path)?;
                if is_there.is_none_or(|length| length <= start) {
                    return Ok(None);
                }
                return Err(self.failure("read a segment", &error));
            }
        };
        if self.blocks.len() >= MAX_BLOCKS {
            self.blocks.clear();
        }
        self.blocks.insert((name, number), block.clone());
        Ok(Some(block))
    }

    fn segment_length(&self, path: &Path) -> Result<Option<u64>, TeamError> {
        let work = object_store::ObjectStoreExt::head(&*self.store, path);
        match self.runtime.block_on(work) {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failure("look for a segment", &error)),
        }
    }
}

/// What an error says, with all its causes, without queries of URLs.
fn describe_error(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(below) = cause {
        let more = below.to_string();
        if !text.contains(&more) {
            text.push_str(&format!(": {more}"));
        }
        cause = below.source();
    }
    without_queries(&text)
}

fn without_queries(text: &str) -> String {
    let mut kept = String::new();
    let mut is_query = false;
    for c in text.chars() {
        is_query = match c {
            '?' => true,
            _ if c.is_whitespace() || "\"')>]".contains(c) => false,
            _ => is_query,
        };
        if !is_query {
            kept.push(c);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_in_a_url_is_not_shown() {
        let text = without_queries("GET (https://h/c/o?sv=1&sig=abc): timeout");
        assert_eq!(text, "GET (https://h/c/o): timeout");
    }
}
