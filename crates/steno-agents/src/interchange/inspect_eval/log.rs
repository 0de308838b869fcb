//! Lists the samples of a log file and the byte range of each.

use std::io::{self, BufRead, Cursor, Read};
use std::ops::Range;
use std::path::Path;

use crate::decoding::file_head::FileHead;
use crate::decoding::json_fields::plain_text;
use crate::decoding::json_walker::{JsonWalker, malformed_error};
use crate::decoding::zip_archive as archive;
use steno_model::durable::{FileError, OnPath};
use steno_model::json::Value;
use steno_model::problem::Problem;
use steno_vault::{SessionBundle, SessionFile};

/// The member with facts about all samples.
pub(super) const HEADER_MEMBER: &str = "header.json";

/// The same member in an archive of an unfinished evaluation.
const JOURNAL_START_MEMBER: &str = "_journal/start.json";

const SAMPLES_FOLDER: &str = "samples/";

/// All samples of the log at `path`. Empty if the file is not a log.
pub(super) fn find_samples(path: &Path) -> Result<Vec<SessionBundle>, FileError> {
    let log = SessionFile::on_disk("log", path);
    if is_zip_archive(&log)? {
        return Ok(archived_samples(&log));
    }
    let head = FileHead::read_document(&log)?;
    let is_log = head.field_start("version").is_some()
        && head.field_start("status").is_some()
        && head.field_start("eval").is_some_and(|eval| eval.contains("\"task\""));
    if !is_log {
        return Ok(Vec::new());
    }
    // A log that cannot be opened is reported when it is read. A truncated log has no readable sample.
    let Ok(outline) = EvalLogOutline::read(&log) else {
        return Ok(vec![SessionBundle::from_file(path)]);
    };
    let outline = outline.unwrap_or_default();
    Ok((0..outline.samples.len()).map(|at| outline.bundle_sample(&log, at)).collect())
}

/// The sample of a bundle with its header, extracted if the bundle holds a whole log from the vault.
pub(super) fn extract_sample(bundle: &SessionBundle) -> Result<SessionBundle, FileError> {
    let (Some(key), [log]) = (&bundle.key, bundle.files.as_slice()) else {
        return Ok(bundle.clone());
    };
    let sample = if is_zip_archive(log)? {
        archived_samples(log).into_iter().find(|sample| sample.key.as_ref() == Some(key))
    } else {
        let name = sample_member_name(key);
        let outline = EvalLogOutline::read(log)?.unwrap_or_default();
        let at = outline.samples.iter().position(|(known, _)| *known == name);
        at.map(|at| outline.bundle_sample(log, at))
    };
    sample.ok_or_else(|| io::Error::other("no such sample")).on("read", log.path())
}

/// The name of the task in a header.
pub(super) fn read_task_name(header: &SessionFile) -> Result<Option<String>, FileError> {
    let mut task = None;
    let passed = JsonWalker::walk_document(header, &mut |walk| {
        walk.for_each_field(&mut |walk, name| match name {
            "eval" => walk.for_each_field(&mut |walk, name| match name {
                "task" => {
                    task = walk.read_value()?.ok();
                    Ok(())
                }
                _ => walk.skip_value(),
            }),
            _ => walk.skip_value(),
        })
    })?;
    Ok(task.filter(|_| passed.is_ok()))
}

fn is_zip_archive(log: &SessionFile) -> Result<bool, FileError> {
    Ok(log.open()?.fill_buf().on("read", log.path())?.starts_with(archive::ZIP_MAGIC))
}

/// The samples of an archive. Empty if the archive cannot be opened.
fn archived_samples(log: &SessionFile) -> Vec<SessionBundle> {
    let mut names = archive::member_names(log).unwrap_or_default();
    let known = [HEADER_MEMBER, JOURNAL_START_MEMBER]
        .into_iter()
        .find(|known| names.iter().any(|name| name == known));
    let Some(header) = known else { return Vec::new() };
    names.retain(|name| name.starts_with(SAMPLES_FOLDER) && name.ends_with(".json"));
    let bundle = |name: &String| {
        let sources = [
            archive::member_file(log, name, name),
            archive::member_file(log, HEADER_MEMBER, header),
        ];
        sample_bundle(log.path(), sources)
    };
    names.iter().map(bundle).collect()
}

/// Byte ranges in a single-document log.
#[derive(Default)]
struct EvalLogOutline {
    /// The header.
    eval: Range<u64>,
    /// Each sample with its member name in an archive.
    samples: Vec<(String, Range<u64>)>,
}

impl EvalLogOutline {
    fn read(log: &SessionFile) -> Result<Result<Self, Problem>, FileError> {
        let mut outline = Self::default();
        let passed = JsonWalker::walk_document(log, &mut |walk| {
            walk.for_each_field(&mut |walk, name| match name {
                "eval" => {
                    outline.eval = walk.value_range()?;
                    Ok(())
                }
                "samples" => walk.for_each_item(&mut |walk| outline.note_sample(walk)),
                _ => walk.skip_value(),
            })
        })?;
        Ok(passed.map(|()| outline))
    }

    /// Notes the sample at the current position.
    fn note_sample(&mut self, walk: &mut JsonWalker<Box<dyn BufRead>>) -> io::Result<()> {
        let (start, is_sample) = (walk.next_start()?, walk.peek()? == Some(b'{'));
        let (mut id, mut epoch) = (Value::Null, Value::Null);
        walk.for_each_field(&mut |walk, name| {
            match name {
                "id" => id = walk.read_value()?.map_err(malformed_error)?,
                "epoch" => epoch = walk.read_value()?.map_err(malformed_error)?,
                _ => walk.skip_value()?,
            }
            Ok(())
        })?;
        if is_sample {
            let name =
                sample_member_name(&format!("{}_epoch_{}", plain_text(&id), plain_text(&epoch)));
            self.samples.push((name, start..walk.position()));
        }
        Ok(())
    }

    fn bundle_sample(&self, log: &SessionFile, at: usize) -> SessionBundle {
        let (name, range) = &self.samples[at];
        let eval = log.named_part(HEADER_MEMBER, self.eval.clone());
        let header = SessionFile::new(HEADER_MEMBER, eval.path(), {
            let eval = eval.clone();
            move || {
                let eval = eval.open().map_err(|error| error.source)?;
                Ok(Box::new(Cursor::new("{\"eval\":").chain(eval).chain(Cursor::new("}"))))
            }
        });
        sample_bundle(log.path(), [log.named_part(name, range.clone()), header])
    }
}

/// The member name of a sample in an archive.
fn sample_member_name(key: &str) -> String {
    format!("{SAMPLES_FOLDER}{key}.json")
}

fn sample_bundle(path: &Path, sources: [SessionFile; 2]) -> SessionBundle {
    let name = sources[0].name();
    let key = name.strip_prefix(SAMPLES_FOLDER).and_then(|name| name.strip_suffix(".json"));
    let key = key.map(str::to_owned);
    SessionBundle { key, ..SessionBundle::new(path, sources.into()) }
}
