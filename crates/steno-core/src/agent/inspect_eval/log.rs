//! Lists the samples of a log file and the byte range of each.

use std::io::{self, BufRead, Cursor, Read};
use std::ops::Range;
use std::path::Path;

use super::super::fields::plain;
use super::super::head::Head;
use crate::agent::walk::{Walk, malformed};
use crate::agent::zip_archive as archive;
use crate::durable::{FileError, OnPath};
use crate::json::Value;
use crate::problem::Problem;
use steno_vault::{Bundle, Source};

/// The member with facts about all samples.
pub(super) const HEADER: &str = "header.json";

/// The same member in an archive of an unfinished evaluation.
const START: &str = "_journal/start.json";

const SAMPLES: &str = "samples/";

/// All samples of the log at `path`. Empty if the file is not a log.
pub(super) fn samples(path: &Path) -> Result<Vec<Bundle>, FileError> {
    let log = Source::on_disk("log", path);
    if is_archive(&log)? {
        return Ok(archived(&log));
    }
    let head = Head::of_document(&log)?;
    let is_log = head.field("version").is_some()
        && head.field("status").is_some()
        && head.field("eval").is_some_and(|eval| eval.contains("\"task\""));
    if !is_log {
        return Ok(Vec::new());
    }
    // A log that cannot be opened is reported when it is read. A truncated log has no readable sample.
    let Ok(outline) = Outline::of(&log) else { return Ok(vec![Bundle::file(path)]) };
    let outline = outline.unwrap_or_default();
    Ok((0..outline.samples.len()).map(|at| outline.sample(&log, at)).collect())
}

/// The sample of a bundle with its header, extracted if the bundle holds a whole log from the vault.
pub(super) fn sample_of(bundle: &Bundle) -> Result<Bundle, FileError> {
    let (Some(key), [log]) = (&bundle.key, bundle.sources.as_slice()) else {
        return Ok(bundle.clone());
    };
    let sample = if is_archive(log)? {
        archived(log).into_iter().find(|sample| sample.key.as_ref() == Some(key))
    } else {
        let name = named(key);
        let outline = Outline::of(log)?.unwrap_or_default();
        let at = outline.samples.iter().position(|(known, _)| *known == name);
        at.map(|at| outline.sample(log, at))
    };
    sample.ok_or_else(|| io::Error::other("no such sample")).on("read", log.path())
}

/// The name of the task in a header.
pub(super) fn task(header: &Source) -> Result<Option<String>, FileError> {
    let mut task = None;
    let passed = Walk::over(header, &mut |walk| {
        walk.fields(&mut |walk, name| match name {
            "eval" => walk.fields(&mut |walk, name| match name {
                "task" => {
                    task = walk.value()?.ok();
                    Ok(())
                }
                _ => walk.pass(),
            }),
            _ => walk.pass(),
        })
    })?;
    Ok(task.filter(|_| passed.is_ok()))
}

fn is_archive(log: &Source) -> Result<bool, FileError> {
    Ok(log.open()?.fill_buf().on("read", log.path())?.starts_with(archive::MAGIC))
}

/// The samples of an archive. Empty if the archive cannot be opened.
fn archived(log: &Source) -> Vec<Bundle> {
    let mut names = archive::names(log).unwrap_or_default();
    let known = [HEADER, START].into_iter().find(|known| names.iter().any(|name| name == known));
    let Some(header) = known else { return Vec::new() };
    names.retain(|name| name.starts_with(SAMPLES) && name.ends_with(".json"));
    let bundle = |name: &String| {
        let sources = [archive::member(log, name, name), archive::member(log, HEADER, header)];
        sample(log.path(), sources)
    };
    names.iter().map(bundle).collect()
}

/// Byte ranges in a single-document log.
#[derive(Default)]
struct Outline {
    /// The header.
    eval: Range<u64>,
    /// Each sample with its member name in an archive.
    samples: Vec<(String, Range<u64>)>,
}

impl Outline {
    fn of(log: &Source) -> Result<Result<Self, Problem>, FileError> {
        let mut outline = Self::default();
        let passed = Walk::over(log, &mut |walk| {
            walk.fields(&mut |walk, name| match name {
                "eval" => {
                    outline.eval = walk.place()?;
                    Ok(())
                }
                "samples" => walk.items(&mut |walk| outline.note(walk)),
                _ => walk.pass(),
            })
        })?;
        Ok(passed.map(|()| outline))
    }

    /// Notes the sample at the current position.
    fn note(&mut self, walk: &mut Walk<Box<dyn BufRead>>) -> io::Result<()> {
        let (start, is_sample) = (walk.start()?, walk.peek()? == Some(b'{'));
        let (mut id, mut epoch) = (Value::Null, Value::Null);
        walk.fields(&mut |walk, name| {
            match name {
                "id" => id = walk.value()?.map_err(malformed)?,
                "epoch" => epoch = walk.value()?.map_err(malformed)?,
                _ => walk.pass()?,
            }
            Ok(())
        })?;
        if is_sample {
            let name = named(&format!("{}_epoch_{}", plain(&id), plain(&epoch)));
            self.samples.push((name, start..walk.position()));
        }
        Ok(())
    }

    fn sample(&self, log: &Source, at: usize) -> Bundle {
        let (name, range) = &self.samples[at];
        let eval = log.part(HEADER, self.eval.clone());
        let header = Source::new(HEADER, eval.path(), {
            let eval = eval.clone();
            move || {
                let eval = eval.open().map_err(|error| error.source)?;
                Ok(Box::new(Cursor::new("{\"eval\":").chain(eval).chain(Cursor::new("}"))))
            }
        });
        sample(log.path(), [log.part(name, range.clone()), header])
    }
}

/// The member name of a sample in an archive.
fn named(key: &str) -> String {
    format!("{SAMPLES}{key}.json")
}

fn sample(path: &Path, sources: [Source; 2]) -> Bundle {
    let name = sources[0].name();
    let key = name.strip_prefix(SAMPLES).and_then(|name| name.strip_suffix(".json"));
    let key = key.map(str::to_owned);
    Bundle { key, ..Bundle::new(path, sources.into()) }
}
