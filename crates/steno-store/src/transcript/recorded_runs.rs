//! Finds the records of a session that are lines, or documents, of agents' own formats.
//!
//! Consecutive records form one file, whichever recorder wrote them, up to a record that cannot be part of it. A
//! session that changes its format too often is read record by record.

use crate::format::file_format::{self, FileFormat, RecognisedFile};
use steno_model::durable::FileError;
use steno_vault::recorded_file::{LineLocation, RecordLines, RecordedFile, RecordedLog};
use steno_vault::sealed::SharedProblems;
use steno_vault::{SessionDir, record};

/// Limit for the runs of a session.
const MAX_RUNS: usize = 64;

/// Limit for attempts to recognise a format. Each reads a few records.
const MAX_ATTEMPTS: usize = 256;

/// After this many skipped records, a run starts only with a recorder or after another format.
const MAX_PASSED_OVER: usize = 3;

/// Prefixes of wire records, which are never part of a file.
const OWN_RECORDS: [&[u8]; 2] = [b"{\"traffic\":\"", b"{\"acp\":\""];

/// Records that one reader decodes together.
#[derive(Debug)]
pub(super) struct RecordedRun {
    /// Number of lines before the run.
    pub(super) begin: u64,
    /// Number of lines up to its end.
    pub(super) end: u64,
    pub(super) file: RecognisedFile,
    /// The first records of the run, which name the session.
    pub(super) head: RecognisedFile,
}

/// How many records to read for the name of the session.
const HEAD_LINES: u64 = 32;

/// The runs of records in agents' own formats, in order. Other records are decoded one by one.
pub(super) fn find_runs(dir: &SessionDir) -> Result<Vec<RecordedRun>, FileError> {
    if dir.is_wire_recording()? {
        return Ok(Vec::new());
    }
    let log = RecordedLog { dir: dir.clone(), problems: SharedProblems::default() };
    let mut lines = RecordLines::open(dir, 0, &log.problems)?;
    let mut scan = RunScan::new(log.clone());
    let (mut place, mut line) = (LineLocation::START, Vec::new());
    while let Some((_, position)) = lines.read_line(&mut line)? {
        place.position = position;
        let begin = place;
        if place.check_and_pass(&line, position) {
            scan.take(begin, &line)?;
        }
        if scan.runs.len() > MAX_RUNS {
            return Ok(Vec::new());
        }
    }
    scan.end_run(place.number);
    Ok(scan.runs)
}

/// The run that is being read.
struct OpenRun {
    begin: LineLocation,
    file: RecognisedFile,
}

struct RunScan {
    log: RecordedLog,
    runs: Vec<RecordedRun>,
    open: Option<OpenRun>,
    /// The format of the last run, which may continue after other records.
    last_format: Option<FileFormat>,
    /// Whether the next record may start a file.
    may_begin: bool,
    /// Whether a recorder started since the last record.
    is_opened: bool,
    attempts: usize,
    /// Number of records skipped because no file starts with them.
    passed_over: usize,
}

impl RunScan {
    fn new(log: RecordedLog) -> Self {
        let (runs, open, last_format) = (Vec::new(), None, None);
        Self {
            log,
            runs,
            open,
            last_format,
            may_begin: true,
            is_opened: false,
            attempts: 0,
            passed_over: 0,
        }
    }

    /// Adds the line at `place`.
    fn take(&mut self, place: LineLocation, line: &[u8]) -> Result<(), FileError> {
        if !record::raw_starts_with(line, b"") && !record::holds_bad(line) {
            self.is_opened |= record::holds_opening(line);
            return Ok(());
        }
        let is_opened = std::mem::take(&mut self.is_opened);
        if self.open.is_none() && !self.may_begin && !is_opened {
            return Ok(());
        }
        if OWN_RECORDS.iter().any(|beginning| record::raw_starts_with(line, beginning)) {
            self.end_run(place.number);
            self.may_begin = true;
            return Ok(());
        }
        let Some(json) = record::json_of(line) else { return Ok(()) };
        if let Some(open) = &self.open {
            if !open.file.format.holds(&json) {
                self.end_run(place.number);
                self.may_begin = true;
            } else if is_opened && self.begins_other(place)? {
                self.end_run(place.number);
            } else {
                return Ok(());
            }
        }
        if std::mem::take(&mut self.may_begin) || is_opened {
            self.begin_run(place, &json)?;
        }
        Ok(())
    }

    /// Whether the record at `place` is the first of a file of another format, or a document.
    fn begins_other(&mut self, place: LineLocation) -> Result<bool, FileError> {
        let Some(format) = self.open.as_ref().map(|open| open.file.format) else {
            return Ok(false);
        };
        if self.attempts >= MAX_ATTEMPTS {
            return Ok(false);
        }
        let record = RecordedFile::lines(&self.log, place, place.number + 1).to_bundle();
        if format.recognises(&record)? {
            return Ok(false);
        }
        self.attempts += 1;
        let document = RecordedFile::document(&self.log, place).to_bundle();
        Ok(file_format::recognise_lines(&record)?.is_some()
            || file_format::recognise_document(&document)?.is_some())
    }

    /// Starts a run at `place` if the records from there on have a known format.
    fn begin_run(&mut self, place: LineLocation, json: &[u8]) -> Result<(), FileError> {
        if self.attempts >= MAX_ATTEMPTS {
            return Ok(());
        }
        if file_format::is_self_contained(json) {
            self.passed_over += 1;
            self.may_begin = self.passed_over <= MAX_PASSED_OVER;
            return Ok(());
        }
        self.attempts += 1;
        let document = RecordedFile::document(&self.log, place).to_bundle();
        if let Some(file) = file_format::recognise_document(&document)? {
            let (begin, end) = (place.number, place.number + 1);
            self.runs.push(RecordedRun { begin, end, head: file.clone(), file });
            self.may_begin = true;
            return Ok(());
        }
        let lines = RecordedFile::recording(&self.log, place).to_bundle();
        let file = file_format::recognise_lines(&lines)?.or_else(|| {
            let format = self.last_format?;
            Some(RecognisedFile { format, sessions: vec![lines.clone()] })
        });
        self.open =
            file.filter(|file| file.format.holds(json)).map(|file| OpenRun { begin: place, file });
        // A file may start after a line that is part of none.
        self.may_begin = self.open.is_none() && self.last_format.is_some();
        Ok(())
    }

    /// Ends the run before line `end`.
    fn end_run(&mut self, end: u64) {
        let Some(OpenRun { begin, file }) = self.open.take() else { return };
        self.last_format = Some(file.format);
        let bounded = |end| {
            let sources = RecordedFile::lines(&self.log, begin, end).to_bundle().files;
            file.clone().with_sources(&sources)
        };
        let head = bounded(end.min(begin.number + HEAD_LINES));
        self.runs.push(RecordedRun { begin: begin.number, end, file: bounded(end), head });
    }
}
