//! Copies kept files from one vault to another, such as a copy for a team.
//!
//! The content of a file may change on the way: secrets are replaced. So the copy is sealed anew, with a chain of its
//! own, and only its description travels. Recordings have a hash on each line, which [`RecordLineEditor`] renews.

use std::io::{self, BufRead, Cursor, Read, Write};
use std::path::Path;
use std::sync::PoisonError;

use serde::{Deserialize, Serialize};

use super::commit::VaultCommit;
use super::frame::{self, ContentForm, SealedFileHeader, VaultTag};
use super::recorded_file::RecordLines;
use super::recorder::RECORD_FILE;
use super::sealed::{SealedFileRef, SealedWriter, SharedProblems};
use super::{SessionDir, encode_file_name};
use crate::attributes::FileAttributes;
use crate::line_hash::{CHANGED_LINE, FIRST_LINE_HASH, LineHash, LineHashChain};
use steno_model::durable::{FileError, OnPath};

/// A longer line of a copy is split into frames of this size, so that receiving it takes little memory.
const MAX_RECEIVED_FRAME: usize = 4 << 20;

/// What is known of a kept file besides its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDescription {
    /// Its name inside the session.
    pub name: String,
    /// How often the agent had rewritten the file before.
    pub generation: u32,
    /// The path of the session file.
    pub path: String,
    /// The session's file or folder.
    pub root: String,
    /// Selects the session where the file holds several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether it is Steno's own recording.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_recording: bool,
    /// When the session file was changed last, in nanoseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<i64>,
    form: ContentForm,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A kept file to copy.
#[derive(Debug)]
pub struct TransferFile {
    /// What is known of it.
    pub description: FileDescription,
    /// How much of it is in memory at least while it is read.
    pub longest_frame: u64,
    source: TransferSource,
}

#[derive(Debug)]
enum TransferSource {
    Sealed(SealedFileRef),
    Recording(SessionDir),
}

impl TransferFile {
    /// Opens its content. Damage is an error.
    pub fn open(&self) -> Result<Box<dyn BufRead>, FileError> {
        match &self.source {
            TransferSource::Sealed(file) => Ok(Box::new(file.open()?.reader_from(0))),
            TransferSource::Recording(dir) => {
                let reader = RecordingReader::open(dir)?;
                Ok(Box::new(io::BufReader::new(reader)))
            }
        }
    }
}

/// The lines of a recording as bytes. Damage is an error: [`RecordLineEditor`] would give a changed line a valid hash.
struct RecordingReader {
    lines: RecordLines,
    line: Cursor<Vec<u8>>,
    chain: LineHashChain,
    /// Frames that were skipped.
    skipped: SharedProblems,
}

impl RecordingReader {
    fn open(dir: &SessionDir) -> Result<Self, FileError> {
        let skipped = SharedProblems::default();
        let lines = RecordLines::open(dir, 0, &skipped)?;
        Ok(Self { lines, line: Cursor::default(), chain: LineHashChain::START, skipped })
    }

    /// Reads the next line. Returns whether there was one.
    fn read_line(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        let is_line = self.lines.read_line(line).map_err(io::Error::other)?.is_some();
        let skipped = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(problem) = skipped.first() {
            return Err(frame::damage_error(&problem.reason));
        }
        if is_line && !self.chain.check(line) {
            return Err(frame::damage_error(CHANGED_LINE));
        }
        Ok(is_line)
    }
}

impl Read for RecordingReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.line.position() >= self.line.get_ref().len() as u64 {
            let mut line = std::mem::take(self.line.get_mut());
            if !self.read_line(&mut line)? {
                return Ok(0);
            }
            line.push(b'\n');
            self.line = Cursor::new(line);
        }
        self.line.read(out)
    }
}

/// Renews the hashes of a recording whose lines were changed.
#[derive(Debug)]
pub struct RecordLineEditor {
    last: LineHash,
}

impl Default for RecordLineEditor {
    fn default() -> Self {
        Self { last: FIRST_LINE_HASH }
    }
}

impl RecordLineEditor {
    /// Writes a line, which is without its newline, to `out`, after `edit` has changed its JSON object. A line without a
    /// hash is edited as it is. Nothing of a line is copied, as it can have many megabytes; its brace is lost.
    pub fn write_line(
        &mut self,
        line: &mut [u8],
        edit: &mut dyn FnMut(&[u8]) -> Vec<u8>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if LineHash::split_line(line).is_none() {
            out.write_all(&edit(line))?;
            return out.write_all(b"\n");
        }
        let object = &mut line[LineHash::BODY_OFFSET - 1..];
        object[0] = b'{';
        let edited = edit(object);
        let body = edited.get(1..).unwrap_or_default();
        self.last = self.last.next_hash(body);
        for part in [LineHash::LINE_PREFIX, self.last.as_str().as_bytes(), LineHash::LINE_SUFFIX] {
            out.write_all(part)?;
        }
        out.write_all(body)?;
        out.write_all(b"\n")
    }
}

impl SessionDir {
    /// The session's kept files: every generation, and the recording. `None` if it shares a file with other sessions.
    pub fn transfer_files(&self) -> Result<Option<Vec<TransferFile>>, FileError> {
        let (mut files, mut longest_of_record) = (Vec::new(), 0);
        let mut sealed_files = self.sealed_files()?;
        sealed_files.sort();
        for (stem, generation) in sealed_files {
            let file = self.sealed_file_ref(&stem, generation)?;
            let sealed = file.open()?;
            let longest_frame = sealed.longest_frame();
            if stem == RECORD_FILE {
                longest_of_record = longest_frame.max(longest_of_record);
                continue;
            }
            let header = sealed.header();
            let is_shared = header.key.is_some() && header.form == ContentForm::Bytes;
            if is_shared || header.form == ContentForm::Pointer {
                return Ok(None);
            }
            if header.gone {
                continue;
            }
            let modified = sealed.attributes().modified.and_then(|at| i64::try_from(at).ok());
            let description = FileDescription {
                name: header.name.clone(),
                generation,
                path: header.path.clone(),
                root: header.root.clone(),
                key: header.key.clone(),
                is_recording: false,
                modified,
                form: header.form,
            };
            let source = TransferSource::Sealed(file);
            files.push(TransferFile { description, longest_frame, source });
        }
        if self.is_recorded()? {
            let description = FileDescription {
                name: RECORD_FILE.to_owned(),
                generation: 0,
                path: RECORD_FILE.to_owned(),
                root: String::new(),
                key: None,
                is_recording: true,
                modified: None,
                form: ContentForm::Bytes,
            };
            let source = TransferSource::Recording(self.clone());
            files.push(TransferFile { description, longest_frame: longest_of_record, source });
        }
        Ok(Some(files))
    }

    /// How many bytes of a copied file are kept; `None` if there is no copy.
    pub fn received_length(&self, file: &FileDescription) -> Result<Option<u64>, FileError> {
        let name = file.sealed_name();
        if !self.sealed_files()?.contains(&name) {
            return Ok(None);
        }
        Ok(Some(self.open_sealed(&name.0, name.1)?.length()))
    }

    /// Appends `rest` to the copy of a file, or creates it. The bytes count after `commit` is finished.
    pub fn receive_files(
        &self,
        files: &mut [ReceivedFile<'_>],
        commit: &mut VaultCommit,
    ) -> Result<(), FileError> {
        self.check_not_forgotten()?;
        commit.lock_session(self)?;
        self.check_not_forgotten()?;
        for file in files {
            self.receive_file(file, commit)?;
        }
        Ok(())
    }

    fn receive_file(
        &self,
        file: &mut ReceivedFile<'_>,
        commit: &mut VaultCommit,
    ) -> Result<(), FileError> {
        let description = file.description;
        let (stem, generation) = description.sealed_name();
        let path = self.sealed_path(&stem, generation);
        let mut writer = match self.received_length(description)? {
            Some(_) => SealedWriter::open(&self.sealed_file_ref(&stem, generation)?)?,
            None => SealedWriter::create(&path, &self.received_header(description))?,
        };
        loop {
            let bytes = file.rest.fill_buf().on("read", &path)?;
            if bytes.is_empty() {
                break;
            }
            let size = bytes.len().min(frame::FRAME_SIZE);
            let bytes = &bytes[..size];
            match writer.pending_length() < MAX_RECEIVED_FRAME {
                true => writer.push_lines(bytes)?,
                false => writer.push(bytes)?,
            }
            file.rest.consume(size);
        }
        let modified = description.modified.map(i128::from);
        writer.set_attributes(FileAttributes { modified, mode: None });
        if writer.has_changes() {
            commit.add_file(self, writer.finish()?);
        }
        Ok(())
    }

    fn received_header(&self, file: &FileDescription) -> SealedFileHeader {
        let (path, root) = (Path::new(&file.path), Path::new(&file.root));
        SealedFileHeader {
            steno: VaultTag::Vault,
            version: frame::FORMAT_VERSION,
            key: file.key.clone(),
            form: file.form,
            bytes: None,
            ..self.new_file_header(&file.name, path, root, file.generation)
        }
    }

    /// Removes a copy that its owner has replaced. Only for copies: nothing states what was removed.
    pub fn discard_copy(&self) -> Result<(), FileError> {
        self.remove_all_files()
    }
}

/// New bytes of a copied file.
pub struct ReceivedFile<'a> {
    /// The file.
    pub description: &'a FileDescription,
    /// The bytes after those that are kept.
    pub rest: &'a mut dyn BufRead,
}

impl FileDescription {
    /// Stem and generation of the sealed file.
    fn sealed_name(&self) -> (String, u32) {
        match self.is_recording {
            true => (RECORD_FILE.to_owned(), 0),
            false => (encode_file_name(&self.name), self.generation),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::SessionFile;
    use crate::vault::Vault;

    fn copy_session(from: &SessionDir, vault: &Vault) -> SessionDir {
        let to = vault.session_dir(&from.agent().parse().unwrap(), from.id());
        let mut commit = vault.begin_commit();
        for file in from.transfer_files().unwrap().unwrap() {
            let mut content = file.open().unwrap();
            let kept = to.received_length(&file.description).unwrap().unwrap_or(0);
            io::copy(&mut content.by_ref().take(kept), &mut io::sink()).unwrap();
            let received = ReceivedFile { description: &file.description, rest: &mut content };
            to.receive_files(&mut [received], &mut commit).unwrap();
        }
        commit.finish().unwrap();
        to
    }

    #[test]
    fn a_copy_has_all_generations_and_grows() {
        let temp = tempfile::tempdir().unwrap();
        let vault = Vault::new(temp.path().join("vault"));
        let copies = Vault::new(temp.path().join("copies"));
        let dir = vault.session_dir(&"a".parse().unwrap(), &"s".parse().unwrap());
        let path = temp.path().join("log.jsonl");
        let mut copy = None;
        for text in ["one\n", "one\ntwo\n", "2\n", "2\n3\n"] {
            fs::write(&path, text).unwrap();
            dir.keep_file(&SessionFile::on_disk("log.jsonl", &path), temp.path()).unwrap();
            copy = Some(copy_session(&dir, &copies));
        }
        let copy = copy.unwrap();
        let read = |file: &TransferFile| io::read_to_string(file.open().unwrap()).unwrap();
        let contents: Vec<_> = copy.transfer_files().unwrap().unwrap().iter().map(read).collect();
        assert_eq!(contents, ["one\ntwo\n", "2\n3\n"]);
        assert!(copy.verify().unwrap().damage.is_empty());
        copy.discard_copy().unwrap();
        assert!(!copy.exists() && copies.verify(&mut |_| {}).unwrap().damage.is_empty());
    }

    #[test]
    fn a_long_line_is_received_in_pieces() {
        let temp = tempfile::tempdir().unwrap();
        let vault = Vault::new(temp.path().join("vault"));
        let copies = Vault::new(temp.path().join("copies"));
        let dir = vault.session_dir(&"a".parse().unwrap(), &"s".parse().unwrap());
        let path = temp.path().join("log.jsonl");
        let line: String = (0..2_000_000).map(|n| format!("{n} ")).collect();
        let text = format!("first\n{line}\nlast");
        assert!(line.len() > 2 * MAX_RECEIVED_FRAME);
        fs::write(&path, &text).unwrap();
        dir.keep_file(&SessionFile::on_disk("log.jsonl", &path), temp.path()).unwrap();
        let longest = |dir: &SessionDir| dir.transfer_files().unwrap().unwrap()[0].longest_frame;
        assert!((line.len() as u64..=text.len() as u64).contains(&longest(&dir)));
        let copy = copy_session(&dir, &copies);
        let file = &copy.transfer_files().unwrap().unwrap()[0];
        assert!(longest(&copy) <= (MAX_RECEIVED_FRAME + 2 * frame::FRAME_SIZE) as u64);
        assert!(io::read_to_string(file.open().unwrap()).unwrap() == text);
        assert!(copy.verify().unwrap().damage.is_empty());
        let (stem, generation) = file.description.sealed_name();
        assert!(copy.open_sealed(&stem, generation).unwrap().frame_count() > 2);
    }
}
