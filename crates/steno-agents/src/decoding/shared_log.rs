//! A log with lines of many sessions, such as a prompt history. A session gets only its own lines.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use steno_model::lines::MAX_LINE_LENGTH;
use steno_vault::{SessionBundle, SessionFile};

/// A log on disk.
pub(crate) struct SharedLog<'a> {
    pub(crate) path: &'a Path,
    /// The name of the log in a bundle.
    pub(crate) name: &'static str,
}

impl SharedLog<'_> {
    /// A bundle for a session that has only these lines of the log.
    pub(crate) fn excerpt_bundle(
        &self,
        key: Option<String>,
        lines: Vec<Range<u64>>,
    ) -> SessionBundle {
        let mut bundle = SessionBundle::new(self.path, Vec::new());
        bundle.key = key;
        let path = self.path.to_owned();
        let open = move || -> io::Result<Box<dyn BufRead>> {
            Ok(Box::new(Cursor::new(read_ranges(&path, &lines)?)))
        };
        bundle.excerpts.push(SessionFile::new(self.name, self.path, open));
        bundle
    }
}

/// Byte ranges of the lines of each session, by the id that `session_of` parses from a line. An unfinished last line
/// is skipped.
pub(crate) fn lines_by_session(
    log: &Path,
    session_of: &dyn Fn(&[u8]) -> Option<String>,
) -> io::Result<BTreeMap<Option<String>, Vec<Range<u64>>>> {
    let mut input = BufReader::new(File::open(log)?);
    let mut sessions: BTreeMap<_, Vec<Range<u64>>> = BTreeMap::new();
    let (mut line, mut at) = (Vec::new(), 0);
    loop {
        line.clear();
        let length =
            input.by_ref().take(MAX_LINE_LENGTH as u64).read_until(b'\n', &mut line)? as u64;
        if length == 0 {
            return Ok(sessions);
        }
        if line.ends_with(b"\n") {
            let lines = sessions.entry(session_of(&line)).or_default();
            match lines.last_mut().filter(|last| last.end == at) {
                Some(last) => last.end += length,
                None => lines.push(at..at + length),
            }
        }
        at += length;
    }
}

fn read_ranges(log: &Path, lines: &[Range<u64>]) -> io::Result<Vec<u8>> {
    let mut file = File::open(log)?;
    let mut bytes = Vec::new();
    for Range { start, end } in lines {
        file.seek(SeekFrom::Start(*start))?;
        file.by_ref().take(end - start).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
