//! Logs as files: which samples they hold, and where the bytes of each are.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use zip::ZipArchive;

use super::super::fields::plain;
use super::super::head::Head;
use super::super::repair;
use crate::durable::{FileError, OnPath};
use crate::json::Value;
use crate::source::{Bundle, DOCUMENT_LIMIT, Source};

/// What a log says about all its samples.
pub(super) const HEADER: &str = "header.json";

/// The same in an archive whose evaluation has not ended.
const START: &str = "_journal/start.json";

const SAMPLES: &str = "samples/";

/// Every sample in the log at `path`, if it is one.
pub(super) fn samples(path: &Path) -> Result<Vec<Bundle>, FileError> {
    let file = Source::on_disk("log", path);
    if file.open()?.fill_buf().on("read", path)?.starts_with(b"PK\x03\x04") {
        return archived(path);
    }
    let head = Head::of_document(&file)?;
    let is_log = head.field("version").is_some()
        && head.field("status").is_some()
        && head.field("eval").is_some_and(|eval| eval.contains("\"task\""));
    if !is_log {
        return Ok(Vec::new());
    }
    // Reading one that is too large says so.
    Ok(file.bytes().map_or_else(|_| vec![Bundle::file(path)], |bytes| listed(path, bytes)))
}

/// The sample of a bundle and its header, cut out where the bundle is a whole log that was kept.
pub(super) fn sample_of(bundle: &Bundle) -> Result<Bundle, FileError> {
    let (Some(key), [log]) = (&bundle.key, bundle.sources.as_slice()) else {
        return Ok(bundle.clone());
    };
    let bytes = log.bytes()?;
    let name = format!("{SAMPLES}{key}.json");
    let is_archive = bytes.starts_with(b"PK\x03\x04");
    let parts = if is_archive { from_archive(bytes, &name) } else { from_document(bytes, &name) };
    let [sample_bytes, header] = parts.on("read", log.path())?;
    let part = |name: &str, bytes| Source::in_memory(name, log.path().join(name), bytes);
    Ok(sample(log.path(), [part(&name, sample_bytes), part(HEADER, header)]))
}

fn from_archive(bytes: Vec<u8>, name: &str) -> io::Result<[Vec<u8>; 2]> {
    let mut archive = ZipArchive::new(Cursor::new(bytes))?;
    let header = [HEADER, START].into_iter().find(|known| archive.by_name(known).is_ok());
    let mut member = |name: &str| -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        archive.by_name(name)?.take(DOCUMENT_LIMIT + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    Ok([member(name)?, member(header.unwrap_or(HEADER))?])
}

fn from_document(bytes: Vec<u8>, name: &str) -> io::Result<[Vec<u8>; 2]> {
    let bytes = readable(bytes);
    let log: Log<'_> = serde_json::from_slice(&bytes)?;
    let header = about_all(&log);
    let mut samples = log.samples.unwrap_or_default().into_iter();
    let sample = samples.find(|raw| named(raw).as_deref() == Some(name));
    let sample = sample.ok_or_else(|| io::Error::other("no such sample"))?;
    Ok([sample.get().to_owned().into_bytes(), header])
}

/// What a document says about all its samples.
fn about_all(log: &Log<'_>) -> Vec<u8> {
    format!("{{\"eval\":{}}}", log.eval.get()).into_bytes()
}

/// The name that a sample has in an archive.
fn named(raw: &RawValue) -> Option<String> {
    let name: SampleName = serde_json::from_str(raw.get()).ok()?;
    Some(format!("{SAMPLES}{}_epoch_{}.json", plain(&name.id), plain(&name.epoch)))
}

/// The samples of an archive; one that cannot be opened is not ours.
fn archived(path: &Path) -> Result<Vec<Bundle>, FileError> {
    let file = File::open(path).on("open", path)?;
    let Ok(archive) = ZipArchive::new(BufReader::new(file)) else { return Ok(Vec::new()) };
    let names = archive.file_names().flatten().map(|name| name.into_owned());
    let mut names: Vec<_> = names.collect();
    names.sort();
    let known = [HEADER, START].into_iter().find(|known| names.iter().any(|name| name == known));
    let Some(header) = known else { return Ok(Vec::new()) };
    names.retain(|name| name.starts_with(SAMPLES) && name.ends_with(".json"));
    let member = |shown: &str, name: &str| {
        let (file, name) = (path.to_owned(), name.to_owned());
        Source::new(shown, path.join(shown), move || unzipped(&file, &name))
    };
    let bundle = |name: &String| sample(path, [member(name, name), member(HEADER, header)]);
    Ok(names.iter().map(bundle).collect())
}

fn unzipped(path: &Path, name: &str) -> io::Result<Box<dyn BufRead>> {
    let mut archive = ZipArchive::new(BufReader::new(File::open(path)?))?;
    let mut bytes = Vec::new();
    // One byte more than may be read shows that it is too large.
    archive.by_name(name)?.take(DOCUMENT_LIMIT + 1).read_to_end(&mut bytes)?;
    Ok(Box::new(Cursor::new(bytes)))
}

/// A log that is one document.
#[derive(Deserialize)]
struct Log<'a> {
    #[serde(borrow)]
    eval: &'a RawValue,
    #[serde(borrow, default)]
    samples: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct SampleName {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    epoch: Value,
}

/// The samples of a document; one that is torn has none that could be read.
fn listed(path: &Path, bytes: Vec<u8>) -> Vec<Bundle> {
    let bytes = readable(bytes);
    let Ok(log) = serde_json::from_slice::<Log<'_>>(&bytes) else { return Vec::new() };
    let names = log
        .samples
        .unwrap_or_default()
        .into_iter()
        .enumerate()
        .filter_map(|(at, raw)| Some((at, named(raw)?)));
    let part = |shown: &str, at: Option<usize>| {
        let file = path.to_owned();
        Source::new(shown, path.join(shown), move || cut_out(&file, at))
    };
    let bundle =
        |(at, name): (usize, String)| sample(path, [part(&name, Some(at)), part(HEADER, None)]);
    names.map(bundle).collect()
}

fn readable(bytes: Vec<u8>) -> Vec<u8> {
    let is_log = serde_json::from_slice::<Log<'_>>(&bytes).is_ok();
    match repair::repaired(&bytes) {
        Some(text) if !is_log => text.into_bytes(),
        _ => bytes,
    }
}

/// The bytes of one sample, or without one of what is said about all.
fn cut_out(path: &Path, at: Option<usize>) -> io::Result<Box<dyn BufRead>> {
    let document = Source::on_disk("log", path).bytes().map_err(|error| error.source)?;
    let bytes = readable(document);
    let log: Log<'_> = serde_json::from_slice(&bytes)?;
    let header = about_all(&log);
    let samples = log.samples.unwrap_or_default();
    let part = match at {
        None => header,
        Some(at) => {
            samples.get(at).map(|raw| raw.get().to_owned().into_bytes()).unwrap_or_default()
        }
    };
    Ok(Box::new(Cursor::new(part)))
}

fn sample(path: &Path, sources: [Source; 2]) -> Bundle {
    let name = sources[0].name();
    let key = name.strip_prefix(SAMPLES).and_then(|name| name.strip_suffix(".json"));
    let key = key.map(str::to_owned);
    Bundle { key, ..Bundle::new(path, sources.into()) }
}
