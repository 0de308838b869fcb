//! Keeps a session from a database: a log of its rows, to which new and changed rows are appended.

use std::collections::HashSet;
use std::io::{self, BufRead, Cursor};
use std::sync::{Arc, OnceLock, PoisonError};

use super::commit::VaultCommit;
use super::comparison::KeptComparison;
use super::frame::{ContentForm, SealedFileHeader};
use super::sealed::{SealedFile, SealedFileRef, SealedWriter, SharedProblems};
use super::text_mask::ForgottenTexts;
use super::{SessionDir, encode_file_name};
use crate::sqlite::AgentDatabase;
use crate::sqlite::rows::{RowLogLine, RowLogReplay, RowLogSlots, for_each_line_hash};
use crate::{FormatError, SessionBundle, SessionFile};
use steno_model::durable::{FileError, OnPath};
use steno_model::problem::Problem;

/// The suffix of a row log after the database name.
const ROWS_SUFFIX: &str = ".rows.jsonl";

/// Maximum length of a row for reading.
const MAX_READ_ROW: usize = steno_model::lines::MAX_LINE_LENGTH;

/// Maximum length of a row for restoring: twice SQLite's limit.
pub(super) const MAX_RESTORE_ROW: usize = 2 << 30;

impl SessionDir {
    /// Keeps new and changed rows of a session, and records deleted ones. Returns the stem of the log and the number
    /// of new bytes.
    pub(super) fn keep_rows(
        &self,
        bundle: &SessionBundle,
        commit: &mut VaultCommit,
    ) -> Result<(String, u64), FormatError> {
        let (Some(origin), Some(main)) = (&bundle.origin, bundle.files.first()) else {
            return Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no database")));
        };
        let database = AgentDatabase::open(bundle)?;
        let name = format!("{}{ROWS_SUFFIX}", main.name());
        let stem = encode_file_name(&name);
        let header = self.new_file_header(&name, main.path(), &bundle.root, 0);
        let header =
            SealedFileHeader { key: bundle.key.clone(), form: ContentForm::Rows, ..header };
        let (mut writer, mut slots) = self.open_rows_log(&stem, header)?;
        let before = writer.sealed().length();
        let (texts, session) = (self.forgotten_texts()?, self.journal_key());
        database.for_each_line(origin.schema, bundle.key.as_deref(), &mut |line| {
            let masked = mask_row(&line, &texts, &session).on("read", main.path())?;
            let hash = match &masked {
                Some(masked) => blake3::hash(masked),
                None => line.hash().on("read", main.path())?,
            };
            if slots.note_line(line.slot, hash) {
                match &masked {
                    Some(masked) => writer.push(masked)?,
                    None => line
                        .for_each_piece(&mut |piece| writer.push(piece).map_err(io::Error::other))
                        .on("keep a row of", main.path())?,
                }
                writer.push(b"\n")?;
            }
            Ok(())
        })?;
        for line in slots.removal_lines() {
            writer.push(&[line.as_slice(), b"\n"].concat())?;
        }
        writer.set_location(main.path(), &bundle.root);
        if writer.has_changes() {
            writer.set_attributes(main.attributes());
            commit.add_file(self, writer.finish()?);
        }
        Ok((stem, writer.sealed().length() - before))
    }

    /// Opens the last log and reads its slots, or starts a new generation if it cannot be read.
    fn open_rows_log(
        &self,
        stem: &str,
        header: SealedFileHeader,
    ) -> Result<(SealedWriter, RowLogSlots), FileError> {
        let newest = self.newest_generation(stem)?;
        if let Some((_, generation)) = newest
            && let Some(log) =
                open_continued_log(&self.sealed_file_ref(stem, generation)?, &header)?
        {
            return Ok(log);
        }
        let generation = self.next_generation(stem)?;
        let header = SealedFileHeader { generation, ..header };
        let writer = SealedWriter::create(&self.sealed_path(stem, generation), &header)?;
        Ok((writer, RowLogSlots::default()))
    }
}

/// The line of a row with masks in place of forgotten texts; `None` if it has none.
fn mask_row(
    line: &RowLogLine<'_>,
    texts: &ForgottenTexts,
    session: &str,
) -> io::Result<Option<Vec<u8>>> {
    if texts.is_empty() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    line.for_each_piece(&mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(texts.mask_line(session, &mut bytes).then_some(bytes))
}

fn open_continued_log(
    kept: &SealedFileRef,
    expected: &SealedFileHeader,
) -> Result<Option<(SealedWriter, RowLogSlots)>, FileError> {
    let mut writer = match SealedWriter::open(kept) {
        Ok(writer) => writer,
        Err(error) if error.source.kind() == io::ErrorKind::Unsupported => return Err(error),
        Err(_) => return Ok(None),
    };
    if writer.sealed().check_first_frame().is_err() {
        return Ok(None);
    }
    let header = writer.sealed().header();
    if header.gone || header.form != ContentForm::Rows || header.key != expected.key {
        return Ok(None);
    }
    let slots = RowLogSlots::read(kept.open()?.reader_from(0), &kept.path, &mut |_| ());
    Ok(slots.ok().map(|slots| (writer, slots)))
}

/// Compares the rows of a session with a kept log. A changed row counts as more; a row in an earlier state counts as
/// less, unless there is more too.
pub(super) fn compare_rows(
    dir: &SessionDir,
    log: &SealedFileRef,
    bundle: &SessionBundle,
) -> Result<KeptComparison, FormatError> {
    let Some(origin) = &bundle.origin else { return Ok(KeptComparison::Other) };
    let read = || log.open().map(|sealed| sealed.reader_from(0));
    let Ok(mut slots) = RowLogSlots::read(read()?, &log.path, &mut |_| ()) else {
        return Ok(KeptComparison::Other);
    };
    let mut known = HashSet::new();
    let hashed = for_each_line_hash(read()?, |hash| {
        known.insert(hash);
    });
    if hashed.is_err() {
        return Ok(KeptComparison::Other);
    }
    let (texts, session) = (dir.forgotten_texts()?, dir.journal_key());
    let (mut has_more, mut has_old) = (false, false);
    AgentDatabase::open(bundle)?.for_each_line(
        origin.schema,
        bundle.key.as_deref(),
        &mut |line| {
            let masked = mask_row(&line, &texts, &session).on("read", &bundle.root)?;
            let hash = match masked {
                Some(masked) => blake3::hash(&masked),
                None => line.hash().on("read", &bundle.root)?,
            };
            let is_known = known.contains(&hash);
            if slots.note_line(line.slot, hash) {
                has_more |= !is_known;
                has_old |= is_known;
            }
            Ok(())
        },
    )?;
    Ok(KeptComparison::from_differences(
        has_more,
        slots.has_unseen_rows() || (has_old && !has_more),
    ))
}

/// The name of the database that a log belongs to.
pub(super) fn database_name(header: &SealedFileHeader) -> &str {
    header.name.strip_suffix(ROWS_SUFFIX).unwrap_or(&header.name)
}

/// The database of a log, rebuilt as a session file.
pub(super) fn rows_as_session_file(sealed: &SealedFile, problems: &SharedProblems) -> SessionFile {
    let header = sealed.header();
    let (kept, problems) = (sealed.file_ref(), Arc::clone(problems));
    let made: OnceLock<Arc<[u8]>> = OnceLock::new();
    SessionFile::new(database_name(header), header.original_path(), move || {
        if let Some(bytes) = made.get() {
            return Ok(Box::new(Cursor::new(Arc::clone(bytes))));
        }
        let bytes: Arc<[u8]> = replay_rows(&kept, MAX_READ_ROW, &problems)?.into_bytes()?.into();
        Ok(Box::new(Cursor::new(Arc::clone(made.get_or_init(|| bytes)))))
    })
}

/// Replays a kept log. Reports damage, bad lines, and lines longer than `row_limit`.
pub(super) fn replay_rows(
    kept: &SealedFileRef,
    row_limit: usize,
    problems: &SharedProblems,
) -> io::Result<RowLogReplay> {
    // The log is read twice, but damage is reported once.
    let is_reported = OnceLock::new();
    let open = || -> io::Result<Box<dyn BufRead>> {
        let problems = match is_reported.set(()) {
            Ok(()) => Arc::clone(problems),
            Err(()) => SharedProblems::default(),
        };
        Ok(Box::new(kept.open().map_err(io::Error::other)?.lenient_reader(problems)))
    };
    RowLogReplay::replay_log(&kept.path, &open, row_limit, &mut |problem| {
        problems.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
    })
}
