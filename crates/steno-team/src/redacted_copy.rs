//! The bytes of a kept file as they leave this machine: without secrets, unless the remote takes the originals.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::PathBuf;

use steno_model::lines::reserve_line;
use steno_store::view::redaction::{SecretRedactor, redact_file, write_redacted_file};
use steno_vault::transfer::{FileDescription, RecordLineEditor, TransferFile};

use crate::copy_content::{CopyContent, CopySpace};
use crate::frame_chain::{FRAME_BYTES, FrameHash, FrameLink};
use crate::manifest::{FileStream, SessionKey, StreamRedaction};
use crate::team_error::TeamError;

/// A file up to this size is redacted as one JSON document, if it is one of several lines.
const MAX_DOCUMENT_BYTES: u64 = 32 << 20;

/// A line or document of this size is large: only one is in memory at a time.
const LARGE_TEXT_BYTES: u64 = 2 << 20;

/// The size of the buffers of a copy.
const COPY_BUFFER_BYTES: usize = 64 << 10;

/// A buffer that had a longer line is not used again.
const MAX_SPARE_BYTES: usize = 1 << 20;

/// A file as it is pushed.
#[derive(Debug)]
pub struct RedactedCopy {
    /// What is known of the file.
    pub description: FileDescription,
    /// Which secrets were replaced; `None` if the copy is the original.
    pub redaction: Option<StreamRedaction>,
    content: CopyContent,
}

impl RedactedCopy {
    /// Copies a kept file into `space`, and replaces its secrets if `redact` is set. `on_large` is called before a large
    /// text of it is read, which takes several times as much memory.
    pub(crate) fn make(
        file: &TransferFile,
        redact: bool,
        space: &CopySpace,
        on_large: &mut dyn FnMut(),
    ) -> Result<Self, TeamError> {
        if file.longest_frame >= LARGE_TEXT_BYTES {
            on_large();
        }
        let mut description = file.description.clone();
        let mut input = file.open()?;
        let mut redaction = None;
        let copied = space.add_copy(&mut |out| {
            // What is rendered anew comes in small pieces.
            let mut out = BufWriter::with_capacity(COPY_BUFFER_BYTES, out);
            match redact {
                true => {
                    let mut input = LargeTextReader { input: &mut *input, on_large };
                    redaction = Some(write_redacted(&mut input, &mut description, &mut out)?);
                }
                false => {
                    let mut input = LargeTextReader { input: &mut *input, on_large };
                    input.copy_to(&mut out)?;
                }
            }
            out.flush()
        });
        let path = || PathBuf::from(&file.description.name);
        let content = copied.map_err(|error| read_error(&path(), &error))?;
        Ok(Self { description, redaction, content })
    }

    /// The number of bytes.
    pub fn length(&self) -> u64 {
        self.content.length()
    }

    /// The content from an offset on.
    pub(crate) fn content_from(&self, offset: u64) -> impl BufRead {
        BufReader::with_capacity(COPY_BUFFER_BYTES, self.content.read_from(offset))
    }

    /// Whether the copy starts with the content of these frames.
    pub(crate) fn starts_with(&self, frames: &[FrameLink]) -> Result<bool, TeamError> {
        let stated: u64 = frames.iter().map(|frame| frame.length).sum();
        if stated > self.length() {
            return Ok(false);
        }
        let path = self.path();
        let mut content = self.content_from(0);
        for frame in frames {
            let hash = hash_next(&mut content, frame.length);
            if hash.map_err(|error| read_error(&path, &error))? != frame.hash {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the copy is the beginning of a stream.
    pub(crate) fn is_beginning_of(&self, stream: &FileStream) -> Result<bool, TeamError> {
        let mut length = 0;
        let whole = stream.frames.iter().take_while(|frame| {
            length += frame.length;
            length <= self.length()
        });
        let whole = whole.count();
        let covered: u64 = stream.frames[..whole].iter().map(|frame| frame.length).sum();
        Ok(covered == self.length() && self.starts_with(&stream.frames[..whole])?)
    }

    /// Passes the frames from an offset on to `take`, linked after `chain`.
    pub(crate) fn for_each_frame(
        &self,
        offset: u64,
        mut chain: FrameHash,
        take: &mut dyn FnMut(FrameLink, Vec<u8>) -> Result<(), TeamError>,
    ) -> Result<(), TeamError> {
        let path = self.path();
        let mut content = self.content_from(offset);
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
            && self.length() == stream.length()
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
}

/// Reads a file, and says when it comes to a large text.
struct LargeTextReader<'a> {
    input: &'a mut dyn BufRead,
    on_large: &'a mut dyn FnMut(),
}

impl LargeTextReader<'_> {
    /// Appends the rest of a line to `line`. Returns its length.
    fn read_line(&mut self, line: &mut Vec<u8>) -> io::Result<usize> {
        let read = (&mut *self.input).take(LARGE_TEXT_BYTES).read_until(b'\n', line)?;
        if (read as u64) < LARGE_TEXT_BYTES || line.ends_with(b"\n") {
            return Ok(read);
        }
        (self.on_large)();
        reserve_line(line);
        Ok(read + self.input.read_until(b'\n', line)?)
    }

    /// Copies all bytes.
    fn copy_to(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut line_length = 0;
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                return Ok(());
            }
            let length = bytes.len();
            out.write_all(bytes)?;
            let first_line = line_length + memchr::memchr(b'\n', bytes).unwrap_or(length);
            line_length = match memchr::memrchr(b'\n', bytes) {
                Some(end) => length - end - 1,
                None => first_line,
            };
            self.input.consume(length);
            if first_line as u64 >= LARGE_TEXT_BYTES {
                (self.on_large)();
            }
        }
    }

    /// Appends the rest of a file to `head`, up to the size of a document.
    fn read_document(&mut self, head: &mut Vec<u8>) -> io::Result<()> {
        for limit in [LARGE_TEXT_BYTES, MAX_DOCUMENT_BYTES] {
            let rest = limit.saturating_sub(head.len() as u64);
            (&mut *self.input).take(rest).read_to_end(head)?;
            if head.len() as u64 == LARGE_TEXT_BYTES {
                (self.on_large)();
                reserve_line(head);
            }
        }
        Ok(())
    }
}

/// Writes a file without its secrets. Returns how many there were.
fn write_redacted(
    input: &mut LargeTextReader<'_>,
    description: &mut FileDescription,
    out: &mut dyn Write,
) -> io::Result<StreamRedaction> {
    let mut redactor = SecretRedactor::default();
    let mut head = Vec::new();
    input.read_line(&mut head)?;
    let may_be_document = !description.is_recording && may_begin_document(&head);
    if may_be_document {
        input.read_document(&mut head)?;
    }
    if description.is_recording {
        write_redacted_record(head, input, &mut redactor, out)?;
    } else if may_be_document && (head.len() as u64) < MAX_DOCUMENT_BYTES {
        write_redacted_file(&mut redactor, &head, out)?;
    } else {
        write_redacted_lines(head, input, &mut redactor, out)?;
    }
    for text in [&mut description.path, &mut description.root] {
        *text = redactor.redact_text(text).into_owned();
    }
    let rules = redactor.count_by_rule().into_iter();
    let rules = rules.map(|(rule, count)| (rule.to_owned(), count)).collect();
    Ok(StreamRedaction { rules, count: redactor.count() })
}

/// Writes the lines of a file, of which `head` was read.
fn write_redacted_lines(
    mut head: Vec<u8>,
    input: &mut LargeTextReader<'_>,
    redactor: &mut SecretRedactor,
    out: &mut dyn Write,
) -> io::Result<()> {
    let end = head.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut line = head.split_off(end);
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        write_redacted_file(redactor, line, out)?;
    }
    drop(head);
    while input.read_line(&mut line)? > 0 || !line.is_empty() {
        write_redacted_file(redactor, &line, out)?;
        clear_line(&mut line);
    }
    Ok(())
}

/// Writes the lines of a recording, of which the first was read.
fn write_redacted_record(
    mut line: Vec<u8>,
    input: &mut LargeTextReader<'_>,
    redactor: &mut SecretRedactor,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut editor = RecordLineEditor::default();
    while !line.is_empty() {
        match line.strip_suffix(b"\n") {
            Some(record) => {
                let end = record.len();
                let edit = &mut |object: &[u8]| redact_file(redactor, object);
                editor.write_line(&mut line[..end], edit, out)?;
            }
            None => write_redacted_file(redactor, &line, out)?,
        }
        clear_line(&mut line);
        input.read_line(&mut line)?;
    }
    Ok(())
}

/// Empties a buffer, and gives the memory of a very long line back.
fn clear_line(line: &mut Vec<u8>) {
    line.clear();
    line.shrink_to(MAX_SPARE_BYTES);
}

/// Whether a file with this first line may be one JSON document of several lines. Otherwise it is redacted line by line, in
/// little memory.
fn may_begin_document(first_line: &[u8]) -> bool {
    let is_whole = serde_json::from_slice::<serde::de::IgnoredAny>(first_line).is_ok();
    !is_whole && matches!(first_line.trim_ascii_start().first(), None | Some(b'{' | b'['))
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
    copy: &RedactedCopy,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(file: &str) -> String {
        let mut out = Vec::new();
        let mut description: FileDescription = serde_json::from_value(serde_json::json!({
            "name": "s.json", "path": "/s.json", "root": "/", "generation": 0, "form": "bytes",
        }))
        .unwrap();
        let mut input = LargeTextReader { input: &mut file.as_bytes(), on_large: &mut || {} };
        write_redacted(&mut input, &mut description, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_and_documents_are_redacted_as_by_one_call() {
        let secret = "{\"password\": \"zR7kQm2vX9pLw4\"}";
        let document = "{\n  \"password\":\n  \"zR7kQm2vX9pLw4\"\n}\n";
        let files = [
            format!("{secret}\n{secret}\n"),
            format!("{secret}\n"),
            format!("{secret}\n\n \n"),
            format!("\n{secret}\n{{"),
            format!("\n{document}"),
            document.to_owned(),
            format!("{{\n{secret}\n"),
            format!("# Title\n{secret}\npassword=zR7kQm2vX9pLw4\n"),
            "[\n1\n]".to_owned(),
            String::new(),
        ];
        for file in &files {
            let whole = redact_file(&mut SecretRedactor::default(), file.as_bytes());
            assert_eq!(redacted(file), String::from_utf8(whole).unwrap(), "{file}");
        }
        assert!(!redacted(document).contains("zR7k"), "a name and its value in two lines");
    }

    #[test]
    fn large_texts_are_announced_and_unchanged() {
        let long = "x".repeat(LARGE_TEXT_BYTES as usize);
        let line = format!("{{\"text\":\"{long}\"}}\n");
        let document = format!("{{\n\"text\":\"{long}\"\n}}\n");
        let lines = "{}\n".repeat(LARGE_TEXT_BYTES as usize / 3 + 1);
        for (file, is_large) in [
            (format!("{{}}\n{line}{{}}\n{line}end"), true),
            (line, true),
            (long.clone(), true),
            (document, true),
            (lines, false),
            ("{}\n".to_owned(), false),
        ] {
            let (mut announced, mut copied) = (false, [false; 2]);
            let mut bytes = BufReader::new(file.as_bytes());
            let mut input =
                LargeTextReader { input: &mut bytes, on_large: &mut || announced = true };
            let (mut head, mut out) = (Vec::new(), Vec::new());
            input.read_line(&mut head).unwrap();
            if may_begin_document(&head) {
                input.read_document(&mut head).unwrap();
            }
            write_redacted_lines(head, &mut input, &mut SecretRedactor::default(), &mut out)
                .unwrap();
            assert!(out == file.as_bytes());
            copied[0] = announced;
            announced = false;
            let mut bytes = BufReader::new(file.as_bytes());
            let mut input =
                LargeTextReader { input: &mut bytes, on_large: &mut || announced = true };
            let mut out = Vec::new();
            input.copy_to(&mut out).unwrap();
            assert!(out == file.as_bytes());
            copied[1] = announced;
            assert_eq!(copied, [is_large; 2], "{}", &file[..9]);
        }
    }
}
