//! The bytes of a kept file as they leave this machine: without secrets, unless the remote takes the originals.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use steno_store::view::redaction::{SecretRedactor, redact_file};
use steno_vault::transfer::{FileDescription, RecordLineEditor, TransferFile};
use tempfile::SpooledTempFile;

use crate::frame_chain::{FRAME_BYTES, FrameHash, FrameLink};
use crate::manifest::{FileStream, SessionKey, StreamRedaction};
use crate::team_error::TeamError;

/// A larger copy is on disk, in a file without a name.
const MAX_MEMORY_BYTES: usize = 16 << 20;

/// A file up to this size is redacted as one JSON document, if it is one.
const MAX_DOCUMENT_BYTES: u64 = 32 << 20;

/// A file as it is pushed.
#[derive(Debug)]
pub struct RedactedCopy {
    /// What is known of the file.
    pub description: FileDescription,
    /// Which secrets were replaced; `None` if the copy is the original.
    pub redaction: Option<StreamRedaction>,
    content: SpooledTempFile,
    length: u64,
}

impl RedactedCopy {
    /// Copies a kept file, and replaces its secrets if `redact` is set.
    pub fn make(file: &TransferFile, redact: bool) -> Result<Self, TeamError> {
        let mut copy = Self {
            description: file.description.clone(),
            redaction: None,
            content: SpooledTempFile::new(MAX_MEMORY_BYTES),
            length: 0,
        };
        let mut input = file.open()?;
        let copied = match redact {
            true => copy.write_redacted(&mut *input),
            false => io::copy(&mut input, &mut copy.content).map(drop),
        };
        copied.map_err(|error| copy.content_error(&error))?;
        copy.length = copy.content.stream_position().map_err(|error| copy.content_error(&error))?;
        Ok(copy)
    }

    fn write_redacted(&mut self, input: &mut dyn BufRead) -> io::Result<()> {
        let mut redactor = SecretRedactor::default();
        let mut head = Vec::new();
        let mut editor = RecordLineEditor::default();
        if !self.description.is_recording {
            input.take(MAX_DOCUMENT_BYTES).read_to_end(&mut head)?;
        }
        if (head.len() as u64) < MAX_DOCUMENT_BYTES && !self.description.is_recording {
            self.content.write_all(&redact_file(&mut redactor, &head))?;
        } else {
            let mut lines = io::Cursor::new(head).chain(input);
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line)? > 0 {
                let mut edited = Vec::new();
                match line.strip_suffix(b"\n").filter(|_| self.description.is_recording) {
                    Some(record) => editor.push_line(
                        record,
                        &mut |object| redact_file(&mut redactor, object),
                        &mut edited,
                    ),
                    None => edited = redact_file(&mut redactor, &line),
                }
                self.content.write_all(&edited)?;
                line.clear();
            }
        }
        for text in [&mut self.description.path, &mut self.description.root] {
            *text = redactor.redact_text(text).into_owned();
        }
        let rules = redactor.count_by_rule().into_iter();
        let rules = rules.map(|(rule, count)| (rule.to_owned(), count)).collect();
        self.redaction = Some(StreamRedaction { rules, count: redactor.count() });
        Ok(())
    }

    /// The number of bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The content from an offset on.
    pub(crate) fn content_from(&mut self, offset: u64) -> Result<impl BufRead, TeamError> {
        if let Err(error) = self.content.seek(SeekFrom::Start(offset)) {
            return Err(self.content_error(&error));
        }
        Ok(BufReader::with_capacity(64 << 10, &mut self.content))
    }

    /// Whether the copy starts with the content of these frames.
    pub(crate) fn starts_with(&mut self, frames: &[FrameLink]) -> Result<bool, TeamError> {
        let stated: u64 = frames.iter().map(|frame| frame.length).sum();
        if stated > self.length {
            return Ok(false);
        }
        let path = self.path();
        let mut content = self.content_from(0)?;
        for frame in frames {
            let hash = hash_next(&mut content, frame.length);
            if hash.map_err(|error| read_error(&path, &error))? != frame.hash {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the copy is the beginning of a stream.
    pub(crate) fn is_beginning_of(&mut self, stream: &FileStream) -> Result<bool, TeamError> {
        let mut length = 0;
        let whole = stream.frames.iter().take_while(|frame| {
            length += frame.length;
            length <= self.length
        });
        let whole = whole.count();
        let covered: u64 = stream.frames[..whole].iter().map(|frame| frame.length).sum();
        Ok(covered == self.length && self.starts_with(&stream.frames[..whole])?)
    }

    /// Passes the frames from an offset on to `take`, linked after `chain`.
    pub(crate) fn for_each_frame(
        &mut self,
        offset: u64,
        mut chain: FrameHash,
        take: &mut dyn FnMut(FrameLink, Vec<u8>) -> Result<(), TeamError>,
    ) -> Result<(), TeamError> {
        let path = self.path();
        let mut content = self.content_from(offset)?;
        loop {
            let mut frame = Vec::new();
            let read = content.by_ref().take(FRAME_BYTES as u64).read_to_end(&mut frame);
            if read.map_err(|error| read_error(&path, &error))? == 0 {
                return Ok(());
            }
            let link = chain.link_frame(&frame);
            chain = link.chain;
            take(link, frame)?;
        }
    }

    /// Whether the copy has the name and length of a stream.
    pub(crate) fn is_copy_of(&self, stream: &FileStream) -> bool {
        let (own, other) = (&self.description, &stream.description);
        own.name == other.name
            && own.is_recording == other.is_recording
            && self.length == stream.length()
    }

    /// A stream without frames for this copy.
    pub(crate) fn new_stream(&self, generation: u32) -> FileStream {
        let mut description = self.description.clone();
        description.generation = generation;
        FileStream { description, redaction: self.redaction.clone(), frames: Vec::new() }
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(&self.description.name)
    }

    fn content_error(&self, error: &io::Error) -> TeamError {
        read_error(&self.path(), error)
    }
}

fn read_error(path: &std::path::Path, error: &io::Error) -> TeamError {
    TeamError::Content { path: path.to_owned(), reason: error.to_string() }
}

/// Hashes the next bytes.
fn hash_next(content: &mut impl Read, length: u64) -> io::Result<FrameHash> {
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut content.take(length), &mut hasher)?;
    Ok(FrameHash(*hasher.finalize().as_bytes()))
}

/// The stream of a manifest that a copy continues, and the offset from which on it does.
pub(crate) fn find_continued(
    copy: &mut RedactedCopy,
    streams: &[FileStream],
) -> Result<Option<usize>, TeamError> {
    for (at, stream) in streams.iter().enumerate().rev() {
        let is_same_file = stream.description.name == copy.description.name
            && stream.description.is_recording == copy.description.is_recording;
        if is_same_file && (copy.starts_with(&stream.frames)? || copy.is_beginning_of(stream)?) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// The generation after all streams of this name.
pub(crate) fn next_generation(copy: &RedactedCopy, streams: &[FileStream]) -> u32 {
    let same = streams.iter().filter(|stream| stream.description.name == copy.description.name);
    same.map(|stream| stream.description.generation + 1).max().unwrap_or(0)
}

/// The chain of a stream, for the owner's key.
pub(crate) fn stream_end(stream: &FileStream, key: &SessionKey) -> (u64, FrameHash) {
    (stream.length(), stream.chain_end(key))
}
