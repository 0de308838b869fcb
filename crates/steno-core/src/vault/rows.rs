//! Keeps a session from a database: a log of its rows, to which new and changed rows are appended.

use std::collections::HashSet;
use std::io::{self, BufRead, Cursor};
use std::sync::{Arc, OnceLock, PoisonError};

use super::commit::VaultCommit;
use super::frame::{FileHeader, Form};
use super::likeness::Likeness;
use super::sealed::{KeptFile, Problems, Sealed, SealedWriter};
use super::{SessionDir, file_name};
use crate::durable::{FileError, OnPath};
use crate::problem::Problem;
use steno_vault::FormatError;
use steno_vault::sqlite::Database;
use steno_vault::sqlite::rows::{Replay, Slots, each_hash};
use steno_vault::{Bundle, Source};

/// The suffix of a row log after the database name.
const SUFFIX: &str = ".rows.jsonl";

/// Maximum length of a row for reading.
const READ_LIMIT: usize = crate::lines::LINE_LIMIT;

/// Maximum length of a row for restoring: twice SQLite's limit.
pub(super) const RESTORE_LIMIT: usize = 2 << 30;

impl SessionDir {
    /// Keeps new and changed rows of a session, and records deleted ones. Returns the stem of the log and the number
    /// of new bytes.
    pub(super) fn keep_rows(
        &self,
        bundle: &Bundle,
        commit: &mut VaultCommit,
    ) -> Result<(String, u64), FormatError> {
        let (Some(origin), Some(main)) = (&bundle.origin, bundle.sources.first()) else {
            return Err(FormatError::Invalid(Problem::of(&bundle.root, "no database")));
        };
        let database = Database::open(bundle)?;
        let name = format!("{}{SUFFIX}", main.name());
        let stem = file_name(&name);
        let header = self.header(&name, main.path(), &bundle.root, 0);
        let header = FileHeader { key: bundle.key.clone(), form: Form::Rows, ..header };
        let (mut writer, mut slots) = self.log(&stem, header)?;
        let before = writer.sealed().length();
        database.each_line(origin.schema, bundle.key.as_deref(), &mut |line| {
            let hash = line.hash().on("read", main.path())?;
            if slots.is_news(line.slot, hash) {
                line.each_piece(&mut |piece| writer.push(piece).map_err(io::Error::other))
                    .on("keep a row of", main.path())?;
                writer.push(b"\n")?;
            }
            Ok(())
        })?;
        for line in slots.gone() {
            writer.push(&[line.as_slice(), b"\n"].concat())?;
        }
        writer.set_place(main.path(), &bundle.root);
        if writer.has_news() {
            writer.set_attributes(main.attributes());
            commit.add_file(self, writer.finish()?);
        }
        Ok((stem, writer.sealed().length() - before))
    }

    /// Opens the last log and reads its slots, or starts a new generation if it cannot be read.
    fn log(&self, stem: &str, header: FileHeader) -> Result<(SealedWriter, Slots), FileError> {
        let newest = self.newest_file(stem)?;
        if let Some((_, generation)) = newest
            && let Some(log) = continued(&self.kept(stem, generation)?, &header)?
        {
            return Ok(log);
        }
        let generation = self.next_generation(stem)?;
        let header = FileHeader { generation, ..header };
        let writer = SealedWriter::create(&self.kept_path(stem, generation), &header)?;
        Ok((writer, Slots::default()))
    }
}

fn continued(
    kept: &KeptFile,
    expected: &FileHeader,
) -> Result<Option<(SealedWriter, Slots)>, FileError> {
    let mut writer = match SealedWriter::open(kept) {
        Ok(writer) => writer,
        Err(error) if error.source.kind() == io::ErrorKind::Unsupported => return Err(error),
        Err(_) => return Ok(None),
    };
    if writer.sealed().check_header().is_err() {
        return Ok(None);
    }
    let header = writer.sealed().header();
    if header.gone || header.form != Form::Rows || header.key != expected.key {
        return Ok(None);
    }
    let slots = Slots::read(kept.open()?.reader(0), &kept.path, &mut |_| ());
    Ok(slots.ok().map(|slots| (writer, slots)))
}

/// Compares the rows of a session with a kept log. A changed row counts as more; a row in an earlier state counts as
/// less, unless there is more too.
pub(super) fn likeness(log: &KeptFile, bundle: &Bundle) -> Result<Likeness, FormatError> {
    let Some(origin) = &bundle.origin else { return Ok(Likeness::Other) };
    let read = || log.open().map(|sealed| sealed.reader(0));
    let Ok(mut slots) = Slots::read(read()?, &log.path, &mut |_| ()) else {
        return Ok(Likeness::Other);
    };
    let mut known = HashSet::new();
    let hashed = each_hash(read()?, |hash| {
        known.insert(hash);
    });
    if hashed.is_err() {
        return Ok(Likeness::Other);
    }
    let (mut has_more, mut has_old) = (false, false);
    Database::open(bundle)?.each_line(origin.schema, bundle.key.as_deref(), &mut |line| {
        let hash = line.hash().on("read", &bundle.root)?;
        let is_known = known.contains(&hash);
        if slots.is_news(line.slot, hash) {
            has_more |= !is_known;
            has_old |= is_known;
        }
        Ok(())
    })?;
    Ok(Likeness::of(has_more, slots.lacks_rows() || (has_old && !has_more)))
}

/// The name of the database that a log belongs to.
pub(super) fn database_name(header: &FileHeader) -> &str {
    header.name.strip_suffix(SUFFIX).unwrap_or(&header.name)
}

/// The database of a log, rebuilt as a session file.
pub(super) fn source(sealed: &Sealed, problems: &Problems) -> Source {
    let header = sealed.header();
    let (kept, problems) = (sealed.kept(), Arc::clone(problems));
    let made: OnceLock<Arc<[u8]>> = OnceLock::new();
    Source::new(database_name(header), header.place(), move || {
        if let Some(bytes) = made.get() {
            return Ok(Box::new(Cursor::new(Arc::clone(bytes))));
        }
        let bytes: Arc<[u8]> = replay(&kept, READ_LIMIT, &problems)?.into_bytes()?.into();
        Ok(Box::new(Cursor::new(Arc::clone(made.get_or_init(|| bytes)))))
    })
}

/// Replays a kept log. Reports damage, bad lines, and lines longer than `row_limit`.
pub(super) fn replay(kept: &KeptFile, row_limit: usize, problems: &Problems) -> io::Result<Replay> {
    // The log is read twice, but damage is reported once.
    let is_reported = OnceLock::new();
    let open = || -> io::Result<Box<dyn BufRead>> {
        let problems = match is_reported.set(()) {
            Ok(()) => Arc::clone(problems),
            Err(()) => Problems::default(),
        };
        Ok(Box::new(kept.open().map_err(io::Error::other)?.lenient_reader(problems)))
    };
    Replay::of(&kept.path, &open, row_limit, &mut |problem| {
        problems.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
    })
}
