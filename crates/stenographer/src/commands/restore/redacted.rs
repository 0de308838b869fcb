//! Restores files without their secrets.

use std::fs;
use std::path::Path;

use steno_model::durable::{self, OnPath};
use steno_store::view::redaction::{SecretRedactor, redact_file};
use steno_vault::SessionDir;
use steno_vault::restore::RestoredFile;

use super::{Args, restore_files};
use crate::error::CommandError;
use crate::ui::{Ui, count_noun};

/// How databases start.
const SQLITE_HEADER: &[u8] = b"SQLite format 3\0";

/// A session to restore into a folder without its secrets.
pub(super) struct RedactedRestore<'a> {
    pub(super) session: &'a SessionDir,
    pub(super) args: &'a Args,
    pub(super) to: &'a Path,
}

impl RedactedRestore<'_> {
    /// Writes the files: all or, if one is in the way, none.
    pub(super) fn write_files(&self, ui: &mut Ui) -> Result<Vec<RestoredFile>, CommandError> {
        durable::create_private_dir(self.to)?;
        let exact = tempfile::Builder::new().prefix(".steno-restore-").tempdir_in(self.to);
        let exact = exact.on("create a folder in", self.to)?;
        let restored = restore_files(self.session, self.args, Some(exact.path()))?;
        let mut redactor = SecretRedactor::default();
        let mut files = Vec::new();
        for file in restored {
            let bytes = fs::read(&file.path).on("read", &file.path)?;
            if bytes.starts_with(SQLITE_HEADER) {
                let error = CommandError::user("a database cannot be restored without its secrets");
                return Err(error.hint("use `steno export --format jsonl --redact` instead"));
            }
            let name = file.path.strip_prefix(exact.path()).unwrap_or(&file.path);
            let target = self.to.join(name);
            if target.exists() && !self.args.force {
                let error =
                    CommandError::user(format!("another file exists: {}", target.display()));
                return Err(error.hint("use --force to replace it, or another folder with --to"));
            }
            files.push((target, redact_file(&mut redactor, &bytes)));
        }
        let mut written = Vec::new();
        for (path, bytes) in files {
            durable::create_private_dir(path.parent().unwrap_or(self.to))?;
            durable::write_atomic(&path, &bytes)?;
            written.push(RestoredFile { path, was_written: true, backup: None });
        }
        ui.status(format_args!("{} redacted", count_noun(redactor.count(), "secret")));
        Ok(written)
    }
}
