//! Finds contexts below a path by the content of their files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{inbox, markdown, recognises, records};
use crate::durable::FileError;
use crate::format::tree::Tree;
use crate::json::{Value, bounds};
use crate::lines::Lines;
use steno_vault::{Bundle, Source};

pub(super) const CONTEXT: &str = "context.jsonl";
pub(super) const ARCHIVE: &str = "transcript_archive.jsonl";
pub(super) const MARKDOWN: &str = "transcript.md";
pub(super) const META: &str = "context_meta.json";
pub(super) const LOG: &str = "transcript.jsonl";
pub(super) const OLD_CONTEXT: &str = "context.json";
pub(super) const ACTIVE: &str = "transcript/active.jsonl";
pub(super) const MANIFEST: &str = "transcript/manifest.json";
pub(super) const PARTITIONS: &str = "transcript/partitions/";

/// The files of a context that have parts of its conversation, without partitions.
const FILES: [&str; 11] = [
    CONTEXT,
    ARCHIVE,
    MARKDOWN,
    META,
    LOG,
    OLD_CONTEXT,
    ACTIVE,
    MANIFEST,
    inbox::INBOX,
    "requests.jsonl",
    "response_meta.jsonl",
];

/// Number of records to check before a file is accepted or rejected.
const PROBED: usize = 5;

/// Finds the contexts at or below `path`. Each is one session.
pub fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    if !tree.is_folder() {
        let bundle = Bundle::file(tree.root());
        bundle.sources[0].open()?;
        return Ok(Some(bundle).filter(is_context).into_iter().collect());
    }
    let folders: BTreeSet<&Path> =
        tree.files().iter().filter_map(|file| context_of(file)).collect();
    Ok(folders.into_iter().map(bundle).filter(is_context).collect())
}

/// The context folder that a file would belong to, judging by its name.
fn context_of(file: &Path) -> Option<&Path> {
    file.ancestors().skip(1).take(3).find(|folder| {
        let name = file.strip_prefix(folder).ok().and_then(Path::to_str).unwrap_or_default();
        FILES.contains(&name) || name.starts_with(PARTITIONS)
    })
}

/// The name of the context in a bundle: the folder's name, or the file's if its name is not one of chibi's.
pub(super) fn context_name(bundle: &Bundle) -> String {
    let single = bundle.sources.len() == 1 && bundle.sources[0].path() == bundle.root;
    let known = bundle.sources.first().is_some_and(is_named);
    let part = match (single, known) {
        (true, true) => bundle.root.parent().and_then(Path::file_name),
        (true, false) => bundle.root.file_stem(),
        (false, _) => bundle.root.file_name(),
    };
    part.unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a file has one of the names that chibi uses.
pub(super) fn is_named(source: &Source) -> bool {
    FILES.contains(&source.name())
}

fn bundle(folder: &Path) -> Bundle {
    let mut sources = Vec::new();
    let mut add = |name: &str| {
        let path = folder.join(name);
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            sources.push(Source::on_disk(name, path));
        }
    };
    FILES.into_iter().for_each(&mut add);
    for name in partitions(&folder.join(PARTITIONS)) {
        add(&format!("{PARTITIONS}{name}"));
    }
    Bundle::new(folder, sources)
}

/// Lists the names of all partitions, whether or not the manifest lists them.
fn partitions(dir: &Path) -> Vec<String> {
    let listing = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = listing.filter_map(|item| item.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".jsonl")).collect();
    names.sort();
    names
}

fn is_context(bundle: &Bundle) -> bool {
    bundle.sources.iter().any(is_ours)
}

fn is_ours(source: &Source) -> bool {
    match source.name() {
        META | MANIFEST => false,
        MARKDOWN => first_line(source).is_some_and(|line| markdown::recognises(&line)),
        OLD_CONTEXT => old_context(source).is_some(),
        _ => has_records(source),
    }
}

fn first_line(source: &Source) -> Option<String> {
    let line = Lines::new(source.open().ok()?).next()?.ok()?;
    Some(String::from_utf8_lossy(&line.bytes).into_owned())
}

/// Reads a context of the first releases: one object with a name and messages.
pub(super) fn old_context(source: &Source) -> Option<Value> {
    let context: Value = bounds::from_slice(&source.bytes().ok()?).ok()?;
    (context["name"].is_string() && context["messages"].is_array()).then_some(context)
}

fn has_records(source: &Source) -> bool {
    let Ok(input) = source.open() else {
        return false;
    };
    let lines = Lines::new(input).map_while(Result::ok);
    let mut records = lines.filter(|line| !line.bytes.trim_ascii().is_empty()).take(PROBED);
    records.any(|line| records::parse(&line.bytes).is_ok_and(|object| recognises(&object)))
}
