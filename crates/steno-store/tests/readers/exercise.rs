//! One reader against one input: what fuzzing runs, and what a test runs over the corpus that fuzzing left.
//!
//! An input is one file or several, each begun by a line `@@ NAME`.

use std::fs;
use std::path::{Component, Path, PathBuf};

use steno_agents::inspect;
use steno_model::entry::Entry;
use steno_store::format::{FormatReader, FoundSession, ReaderItem};
use steno_vault::{SessionBundle, SessionFile};

/// More files or sessions than this show nothing new.
const MOST: usize = 16;

/// Puts the files of `input` into `folder`, finds and reads them, and panics if the reader breaks its promises.
pub(crate) fn exercise(reader: &'static FormatReader, input: &[u8], folder: &Path) {
    let bundle = lay_out(input, folder);
    let found = reader.find_at(folder).unwrap_or_default();
    for bundle in found.into_iter().take(MOST).chain([bundle]) {
        check(reader, &bundle, folder);
        let _ = inspect::inspect_with_subagents(&FoundSession { reader, bundle });
    }
}

/// What a reader finds in a session, and whether it came to its end.
pub(crate) fn items(reader: &FormatReader, bundle: &SessionBundle) -> (Vec<ReaderItem>, bool) {
    let mut items = Vec::new();
    let end = (reader.read)(bundle, &mut |item| items.push(item));
    (items, end.is_ok())
}

/// Reads the session from disk and from memory. Both times the same must come, each entry must survive
/// as JSON, and each problem must say where it is.
fn check(reader: &FormatReader, bundle: &SessionBundle, folder: &Path) {
    let read = items(reader, bundle);
    assert!(read == items(reader, &in_memory(bundle)), "two readings differ");
    for item in &read.0 {
        match item {
            ReaderItem::Entry(entry) => assert_eq!(again(entry), **entry, "not the same as JSON"),
            ReaderItem::Problem(problem) => assert!(problem.path.starts_with(folder), "{problem}"),
        }
    }
}

fn again(entry: &Entry) -> Entry {
    let text = serde_json::to_string(entry).expect("an entry can be printed");
    let object = serde_json::from_str(&text).expect("what was printed can be parsed");
    Entry::from_object(object).expect("what was printed is an entry")
}

/// The same session, as the vault would hand it out.
fn in_memory(bundle: &SessionBundle) -> SessionBundle {
    let copy = |source: &SessionFile| match source.read_bytes() {
        Ok(bytes) => SessionFile::in_memory(source.name(), source.path(), bytes),
        Err(_) => source.clone(),
    };
    let mut copied = bundle.clone();
    copied.files = bundle.files.iter().map(copy).collect();
    copied
}

/// Writes the files, and gives them as one session.
pub(crate) fn lay_out(input: &[u8], folder: &Path) -> SessionBundle {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).expect("the folder can be made");
    let mut bundle = SessionBundle::new(folder, Vec::new());
    for (name, bytes) in files(input) {
        let path = folder.join(&name);
        let made = path.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok());
        if made && fs::write(&path, bytes).is_ok() {
            bundle.files.push(SessionFile::on_disk(name.to_string_lossy(), path));
        }
    }
    if let [only] = bundle.files.as_slice() {
        bundle.root = only.path().to_owned();
    }
    bundle
}

/// The files of an input, with their names.
pub(crate) fn files(input: &[u8]) -> Vec<(PathBuf, &[u8])> {
    let mut files = Vec::new();
    let mut rest = input.strip_prefix(b"@@ ");
    while let Some(file) = rest.filter(|_| files.len() < MOST) {
        let (name, content) = cut(file, b"\n");
        let (content, next) = cut(content.unwrap_or_default(), b"\n@@ ");
        files.push((plain_name(name), content));
        rest = next;
    }
    files
}

/// The text before and after a mark.
fn cut<'a>(bytes: &'a [u8], mark: &[u8]) -> (&'a [u8], Option<&'a [u8]>) {
    match bytes.windows(mark.len()).position(|window| window == mark) {
        Some(at) => (&bytes[..at], Some(&bytes[at + mark.len()..])),
        None => (bytes, None),
    }
}

/// A path that stays in its folder.
fn plain_name(name: &[u8]) -> PathBuf {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-/".contains(byte);
    let name: String = name.iter().filter(|byte| is_plain(byte)).map(|b| char::from(*b)).collect();
    let parts = Path::new(&name).components().filter(|part| matches!(part, Component::Normal(_)));
    let path: PathBuf = parts.take(8).collect();
    if path.as_os_str().is_empty() { "x".into() } else { path }
}
