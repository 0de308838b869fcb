//! Finds contexts below a path by the content of their files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{inbox, is_chibi_record, markdown, records};
use steno_agents::reader::file_tree::FileTree;
use steno_model::durable::FileError;
use steno_model::json::{Value, value_limit};
use steno_model::lines::LineReader;
use steno_vault::{SessionBundle, SessionFile};

pub(super) const CONTEXT_FILE: &str = "context.jsonl";
pub(super) const ARCHIVE_FILE: &str = "transcript_archive.jsonl";
pub(super) const MARKDOWN_FILE: &str = "transcript.md";
pub(super) const META_FILE: &str = "context_meta.json";
pub(super) const LOG_FILE: &str = "transcript.jsonl";
pub(super) const OLD_CONTEXT_FILE: &str = "context.json";
pub(super) const ACTIVE_FILE: &str = "transcript/active.jsonl";
pub(super) const MANIFEST_FILE: &str = "transcript/manifest.json";
pub(super) const PARTITIONS_FOLDER: &str = "transcript/partitions/";

/// The files of a context that have parts of its conversation, without partitions.
const CONTEXT_FILES: [&str; 11] = [
    CONTEXT_FILE,
    ARCHIVE_FILE,
    MARKDOWN_FILE,
    META_FILE,
    LOG_FILE,
    OLD_CONTEXT_FILE,
    ACTIVE_FILE,
    MANIFEST_FILE,
    inbox::INBOX_FILE,
    "requests.jsonl",
    "response_meta.jsonl",
];

/// Number of records to check before a file is accepted or rejected.
const MAX_PROBED_RECORDS: usize = 5;

/// Finds the contexts at or below `path`. Each is one session.
pub fn find_contexts(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    if !tree.is_folder() {
        let bundle = SessionBundle::from_file(tree.root());
        bundle.files[0].open()?;
        return Ok(Some(bundle).filter(is_context_bundle).into_iter().collect());
    }
    let folders: BTreeSet<&Path> =
        tree.files().iter().filter_map(|file| context_folder(file)).collect();
    Ok(folders.into_iter().map(context_bundle).filter(is_context_bundle).collect())
}

/// The context folder that a file would belong to, judging by its name.
fn context_folder(file: &Path) -> Option<&Path> {
    file.ancestors().skip(1).take(3).find(|folder| {
        let name = file.strip_prefix(folder).ok().and_then(Path::to_str).unwrap_or_default();
        CONTEXT_FILES.contains(&name) || name.starts_with(PARTITIONS_FOLDER)
    })
}

/// The name of the context in a bundle: the folder's name, or the file's if its name is not one of chibi's.
pub(super) fn context_name(bundle: &SessionBundle) -> String {
    let single = bundle.files.len() == 1 && bundle.files[0].path() == bundle.root;
    let known = bundle.files.first().is_some_and(has_chibi_name);
    let part = match (single, known) {
        (true, true) => bundle.root.parent().and_then(Path::file_name),
        (true, false) => bundle.root.file_stem(),
        (false, _) => bundle.root.file_name(),
    };
    part.unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a file has one of the names that chibi uses.
pub(super) fn has_chibi_name(source: &SessionFile) -> bool {
    CONTEXT_FILES.contains(&source.name())
}

fn context_bundle(folder: &Path) -> SessionBundle {
    let mut sources = Vec::new();
    let mut add = |name: &str| {
        let path = folder.join(name);
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            sources.push(SessionFile::on_disk(name, path));
        }
    };
    CONTEXT_FILES.into_iter().for_each(&mut add);
    for name in list_partitions(&folder.join(PARTITIONS_FOLDER)) {
        add(&format!("{PARTITIONS_FOLDER}{name}"));
    }
    SessionBundle::new(folder, sources)
}

/// Lists the names of all partitions, whether or not the manifest lists them.
fn list_partitions(dir: &Path) -> Vec<String> {
    let listing = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = listing.filter_map(|item| item.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".jsonl")).collect();
    names.sort();
    names
}

fn is_context_bundle(bundle: &SessionBundle) -> bool {
    bundle.files.iter().any(is_chibi_file)
}

fn is_chibi_file(source: &SessionFile) -> bool {
    match source.name() {
        META_FILE | MANIFEST_FILE => false,
        MARKDOWN_FILE => {
            read_first_line(source).is_some_and(|line| markdown::is_markdown_archive(&line))
        }
        OLD_CONTEXT_FILE => read_old_context(source).is_some(),
        _ => has_chibi_records(source),
    }
}

fn read_first_line(source: &SessionFile) -> Option<String> {
    let line = LineReader::new(source.open().ok()?).next()?.ok()?;
    Some(String::from_utf8_lossy(&line.bytes).into_owned())
}

/// Reads a context of the first releases: one object with a name and messages.
pub(super) fn read_old_context(source: &SessionFile) -> Option<Value> {
    let context: Value = value_limit::parse_limited(&source.read_bytes().ok()?).ok()?;
    (context["name"].is_string() && context["messages"].is_array()).then_some(context)
}

fn has_chibi_records(source: &SessionFile) -> bool {
    let Ok(input) = source.open() else {
        return false;
    };
    let lines = LineReader::new(input).map_while(Result::ok);
    let mut records =
        lines.filter(|line| !line.bytes.trim_ascii().is_empty()).take(MAX_PROBED_RECORDS);
    records
        .any(|line| records::parse_record(&line.bytes).is_ok_and(|object| is_chibi_record(&object)))
}
