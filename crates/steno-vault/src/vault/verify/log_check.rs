//! Verifies a live log against its head file and its hash chain.

use std::io::BufReader;
use std::path::Path;

use super::VerifyReport;
use crate::line_hash::{CHANGED_LINE, FIRST_LINE_HASH, LineHash};
use crate::vault::journal::ListedFile;
use crate::vault::log_head::{LogHead, LogHeadFile};
use crate::vault::log_scan::scan_log;
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};

/// A log to verify.
pub(super) struct LogCheck<'a> {
    pub(super) path: &'a Path,
    pub(super) head: &'a Path,
    pub(super) listed: &'a ListedFile,
}

impl LogCheck<'_> {
    /// Verifies the log. Its first line must follow the hash `first`, if known.
    pub(super) fn check_log(
        self,
        first: Option<LineHash>,
        report: &mut VerifyReport,
    ) -> Result<(), FileError> {
        let path = self.path;
        report.files += 1;
        let known = self.check_head(report)?;
        let mut ends = vec![known];
        let listed_hash = self.listed.log_hash();
        ends.push(listed_hash.map(|hash| LogHead { length: self.listed.length, line_hash: hash }));
        let durable = ends.iter().flatten().map(|end| end.length).max().unwrap_or(0);
        let file = store_fs::open(path).on("open", path)?;
        let start = LogHead { length: 0, line_hash: first.unwrap_or(FIRST_LINE_HASH) };
        let mut damage = Vec::new();
        let mut input = BufReader::with_capacity(256 << 10, file);
        let scan = scan_log(&mut input, start, durable, &mut |line| {
            let is_first_of_unknown = line.offset == 0 && first.is_none();
            let split = LineHash::split_line(line.bytes);
            if split.is_none() {
                damage.push((line.offset, "a line that is not a record"));
            } else if !line.is_chained && !is_first_of_unknown {
                damage.push((line.offset, CHANGED_LINE));
            }
            let length = line.offset + line.bytes.len() as u64 + 1;
            let is_other = |end: &LogHead| {
                end.length == length && split.is_some_and(|(hash, _)| hash != end.line_hash)
            };
            if ends.iter().flatten().any(is_other) {
                damage.push((length, "its end differs from its head file"));
            }
        });
        let scan = scan.on("read", path)?;
        for (offset, reason) in damage {
            report.add_damage(path, offset, reason);
        }
        let end = scan.end.length;
        report.bytes += end;
        if scan.lacks_newline {
            report.add_damage(path, end, "the last record is incomplete");
        } else if end < durable {
            report.add_damage(path, end, format!("{} bytes are missing at the end", durable - end));
        }
        if scan.interrupted > 0 {
            report.interrupted.push(path.to_owned());
        }
        Ok(())
    }

    fn check_head(&self, report: &mut VerifyReport) -> Result<Option<LogHead>, FileError> {
        if !store_fs::exists(self.head) {
            report.add_damage(self.head, 0, super::MISSING_FILE);
        }
        match LogHeadFile::read(self.head) {
            Ok(head) => {
                if head.is_interrupted {
                    report.interrupted.push(self.head.to_owned());
                }
                Ok(head.last)
            }
            Err(error) if error.source.raw_os_error().is_some() => Err(error),
            Err(_) => {
                report.add_damage(self.head, 0, "damaged head file");
                Ok(None)
            }
        }
    }
}
