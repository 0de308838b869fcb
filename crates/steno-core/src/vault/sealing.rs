//! Sealing: moves live logs to the end of a session's sealed file. An interrupted one is finished by the next.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::SessionDir;
use super::head::Head;
use super::live::{heal, open_lock};
use super::recorder::RECORD;
use super::sealed::{Sealed, SealedWriter};
use crate::durable::{self, FileError, OnPath};

/// Bytes of a live log that are read at a time.
const PIECE: u64 = 256 << 10;

/// Seals every live log of which a part is sealed already: its sealing was interrupted.
pub(super) fn seal_leftovers(dir: &SessionDir) -> Result<(), FileError> {
    let length = Sealed::open(&dir.record_path())?.length();
    for (base, path) in dir.live_logs()? {
        if base < length {
            seal(dir, base, &path)?;
        }
    }
    Ok(())
}

/// Seals all live logs; the caller knows that nobody records.
pub(crate) fn finish_sealing(dir: &SessionDir) -> Result<(), FileError> {
    let lock_path = dir.lock_path();
    let lock = open_lock(&lock_path)?;
    lock.lock().on("lock", &lock_path)?;
    for (base, path) in dir.live_logs()? {
        seal(dir, base, &path)?;
    }
    Ok(())
}

/// Moves a live log, which begins at `base`, to the end of the sealed file.
fn seal(dir: &SessionDir, base: u64, live: &Path) -> Result<(), FileError> {
    let path = dir.record_path();
    let mut writer = match SealedWriter::open(&path) {
        Ok(writer) => writer,
        Err(error) if error.is_missing() => {
            SealedWriter::create(&path, &dir.header(RECORD, live, dir.path(), 0))?
        }
        // What is damaged is not touched; the log stays beside it, and is read all the same.
        Err(error) if error.source.kind() == io::ErrorKind::InvalidData => return Ok(()),
        Err(error) => return Err(error),
    };
    let head_path = dir.live_paths(base).1;
    let file = File::options().read(true).write(true).open(live).on("open", live)?;
    heal_end(&file, Head::read(&head_path).ok().flatten()).on("write", live)?;
    let sealed = writer.sealed().length().saturating_sub(base);
    (&file).seek(SeekFrom::Start(sealed)).on("read", live)?;
    take_in(&mut writer, &file, live)?;
    writer.finish()?;
    writer.sync()?;
    durable::remove_file(live)?;
    durable::remove_file(&head_path)?;
    dir.write_manifest()
}

/// Makes a log end with a line. Only its last line is looked at: the log may be larger than what one would hold at once.
fn heal_end(mut file: &File, known: Option<Head>) -> io::Result<()> {
    let size = file.metadata()?.len();
    let (mut begin, mut end) = (size, Vec::new());
    while begin > 0 && !end.contains(&b'\n') {
        // Each look goes as far again as all before it.
        begin = begin.saturating_sub(PIECE.max(size - begin));
        file.seek(SeekFrom::Start(begin))?;
        end.clear();
        file.take(size - begin).read_to_end(&mut end)?;
    }
    heal(file, begin, &mut end, known).map(|_| ())
}

/// Takes in the rest of a log, some lines at a time.
fn take_in(writer: &mut SealedWriter, log: &File, path: &Path) -> Result<(), FileError> {
    let mut torn = Vec::new();
    loop {
        let before = torn.len();
        if log.take(PIECE).read_to_end(&mut torn).on("read", path)? == 0 {
            return writer.push(&torn);
        }
        let Some(end) = memchr::memrchr(b'\n', &torn[before..]) else { continue };
        writer.push(&torn[..=before + end])?;
        torn.drain(..=before + end);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_a_torn_last_line_is_cut_off() {
        let long = "x".repeat(3 * usize::try_from(PIECE).unwrap());
        for (log, left) in [
            (String::new(), 0),
            ("a\n".to_owned(), 2),
            ("a\nb".to_owned(), 2),
            (format!("a\n{long}"), 2),
            (long.clone(), 0),
            (format!("{long}\n"), long.len() + 1),
        ] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(log.as_bytes()).unwrap();
            heal_end(&file, None).unwrap();
            assert_eq!(file.metadata().unwrap().len(), left as u64);
        }
    }
}
