//! Rules that lead from one file of a session to the path at which the whole session is found.
//!
//! Paths alone decide. The reader then checks the content at the path, so a rule may suggest too much.

use std::path::{Path, PathBuf};

use steno_vault::SessionBundle;

use crate::decoding::file_head::FileHead;
use crate::decoding::json_fields::text_field;

/// How the files of one agent lead to their session.
#[derive(Clone, Copy, Debug)]
pub struct NearbyRules {
    /// The paths at which the session of this file, at or below the root, may be found whole.
    pub candidates: fn(&Path, &Path) -> Vec<PathBuf>,
    /// Files that mark the folder of a whole session.
    pub session_folder_files: &'static [&'static str],
    /// The file in the folder of a whole session that has the folder's name.
    pub session_folder_file: Option<fn(&str) -> String>,
    /// Folders with parts of a session, inside its folder.
    pub part_folders: &'static [&'static str],
    /// Folders with files that form sessions together.
    pub shared_folders: &'static [&'static str],
    /// Whether a file describes the others in its folder.
    pub describes_folder: fn(&Path) -> bool,
}

impl NearbyRules {
    /// The rules of an agent with one file per session.
    pub const NONE: Self = Self {
        candidates: |_, _| Vec::new(),
        session_folder_files: &[],
        session_folder_file: None,
        part_folders: &[],
        shared_folders: &[],
        describes_folder: |_| false,
    };
}

/// The folders above a file, up to the root, the deepest first.
pub(crate) fn folders_above<'a>(file: &'a Path, root: &'a Path) -> impl Iterator<Item = &'a Path> {
    file.ancestors().skip(1).take_while(move |folder| folder.starts_with(root))
}

/// A name stated in the first record of a file. `None` if it is not a plain file name.
pub(crate) fn read_stated_name(file: &Path, field: &str) -> Option<String> {
    let head = FileHead::read(&SessionBundle::from_file(file).files[0]).ok()?;
    let name = text_field(&head.line_objects().next()?, field).map(str::to_owned);
    let name = name.or_else(|| text_field(&head.scalar_fields(), field).map(str::to_owned))?;
    let is_plain = !name.contains(['/', '\\', '\0']) && !matches!(name.as_str(), "" | "." | "..");
    is_plain.then_some(name)
}
