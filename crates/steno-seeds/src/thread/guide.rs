//! Installs the block in a project's `AGENTS.md` that explains threads to agents.
//!
//! Bytes outside of the block are never changed, and a file that would not change is not written.

use std::fs;
use std::io::Write;
use std::path::Path;

use memchr::memmem;

use super::error::ThreadError;
use super::store::read_if_exists;
use steno_model::durable::{
    OnPath, create_shared, parent_folder, remove_leftovers, replace_atomic,
};

const OPENING_TAG: &[u8] = b"<leslie_system_guide";
const CLOSING_TAG: &[u8] = b"</leslie_system_guide>";
/// The version of a block that states none.
const UNSTATED_VERSION: &str = "0.0.0";

/// A block and its version.
#[derive(Clone, Copy, Debug)]
pub struct LeslieGuide<'a> {
    /// The text from opening to closing tag, without a final newline.
    pub block: &'a str,
    /// The version in the opening tag.
    pub version: &'a str,
}

/// What was done with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuideStatus {
    /// The file did not exist and was created with the block.
    Created,
    /// The block was appended to the file.
    Appended,
    /// The block in the file was replaced.
    Updated,
    /// The user declined.
    Skipped,
}

/// The result of installing the guide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuideOutcome {
    /// What was done.
    pub status: GuideStatus,
    /// The version of the block that was in the file.
    pub previous_version: Option<String>,
    /// Whether the file was written. False if it already had the same block.
    pub is_written: bool,
}

/// Asks the user whether the block may change from the first version to the second.
pub type ConfirmUpdate<'a> = &'a mut dyn FnMut(&str, &str) -> bool;

impl LeslieGuide<'static> {
    /// The guide of this version of Steno.
    pub fn built_in() -> Self {
        Self { block: include_str!("guide/block.md").trim_ascii_end(), version: "2.0.0" }
    }
}

impl LeslieGuide<'_> {
    /// Installs the block in the file at `path`.
    ///
    /// If `confirm` is given, it is called before a new major version or an older version is installed.
    pub fn put_into(
        &self,
        path: &Path,
        confirm: Option<ConfirmUpdate<'_>>,
    ) -> Result<GuideOutcome, ThreadError> {
        remove_leftovers(parent_folder(path));
        let outcome =
            |status, written| GuideOutcome { status, previous_version: None, is_written: written };
        let Some(content) = read_if_exists(path)? else {
            refuse_dangling_link(path)?;
            if !create_shared(path, format!("{}\n", self.block).as_bytes())? {
                // Another process created the file first.
                return self.put_into(path, confirm);
            }
            return Ok(outcome(GuideStatus::Created, true));
        };
        let block = LineEnding::detect(&content).apply_to(self.block);
        let Some((start, end)) = find_block(&content) else {
            replace_file(path, &append_block(&content, &block))?;
            return Ok(outcome(GuideStatus::Appended, true));
        };
        let old = &content[start..end];
        let version = stated_version(old);
        let asks = needs_confirmation(&version, self.version)?;
        let previous = Some(version.clone());
        if asks && confirm.is_some_and(|confirm| !confirm(&version, self.version)) {
            return Ok(GuideOutcome {
                previous_version: previous,
                ..outcome(GuideStatus::Skipped, false)
            });
        }
        let written = old != block.as_bytes();
        if written {
            replace_file(path, &[&content[..start], block.as_bytes(), &content[end..]].concat())?;
        }
        Ok(GuideOutcome { previous_version: previous, ..outcome(GuideStatus::Updated, written) })
    }
}

/// The line ending of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnding {
    Lf,
    CrLf,
}

impl LineEnding {
    /// Detects the line ending from the first line.
    fn detect(content: &[u8]) -> Self {
        match memchr::memchr(b'\n', content) {
            Some(at) if at > 0 && content[at - 1] == b'\r' => Self::CrLf,
            _ => Self::Lf,
        }
    }

    fn apply_to(self, text: &str) -> String {
        match self {
            Self::Lf => text.to_owned(),
            Self::CrLf => text.replace('\n', "\r\n"),
        }
    }
}

/// Appends the block to a file's content.
fn append_block(content: &[u8], block: &str) -> Vec<u8> {
    let newline = LineEnding::detect(content).apply_to("\n");
    let mut text = content.to_vec();
    if !text.ends_with(b"\n") {
        text.extend_from_slice(newline.as_bytes());
    }
    text.extend_from_slice(format!("{newline}{block}{newline}").as_bytes());
    text
}

/// Refuses a dangling symlink: replacing it with a file would not be what the user meant.
fn refuse_dangling_link(path: &Path) -> Result<(), ThreadError> {
    match fs::read_link(path) {
        Ok(target) => Err(ThreadError::DanglingLink { path: path.to_owned(), target }),
        Err(_) => Ok(()),
    }
}

impl GuideStatus {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            GuideStatus::Created => "created",
            GuideStatus::Appended => "appended",
            GuideStatus::Updated => "updated",
            GuideStatus::Skipped => "skipped",
        }
    }
}

/// Finds the byte range of the first block that is closed before another opens.
fn find_block(content: &[u8]) -> Option<(usize, usize)> {
    let mut starts = memmem::find_iter(content, OPENING_TAG).peekable();
    while let Some(start) = starts.next() {
        let end = start + memmem::find(&content[start..], CLOSING_TAG)? + CLOSING_TAG.len();
        if starts.peek().is_none_or(|next| *next >= end) {
            return Some((start, end));
        }
    }
    None
}

/// Parses the version in the tag of a block.
fn stated_version(block: &[u8]) -> String {
    let tag = block.split(|byte| *byte == b'>').next().unwrap_or_default();
    let tag = String::from_utf8_lossy(tag);
    let after = tag.split_once(" version=\"").map(|(_, after)| after);
    let version = after.and_then(|after| after.split_once('"')).map(|(version, _)| version);
    version.filter(|version| !version.is_empty()).unwrap_or(UNSTATED_VERSION).to_owned()
}

/// Whether a change from one version to another needs confirmation.
fn needs_confirmation(old: &str, new: &str) -> Result<bool, ThreadError> {
    let (old, new) = (parse_version(old)?, parse_version(new)?);
    Ok(new.3 && (old.0 != new.0 || new < old))
}

/// Parses a version into its three numbers and whether it is a release.
fn parse_version(version: &str) -> Result<(u64, u64, u64, bool), ThreadError> {
    let unreadable = || ThreadError::GuideVersion(version.to_owned());
    let text = version.trim().trim_start_matches(['v', '=']);
    let text = text.split_once('+').map_or(text, |(text, _)| text);
    let (numbers, release) = text.split_once('-').map_or((text, true), |(text, _)| (text, false));
    let mut parts = numbers.split('.').map(|part| part.parse().map_err(|_| unreadable()));
    let mut next = || parts.next().unwrap_or_else(|| Err(unreadable()));
    let found = (next()?, next()?, next()?, release);
    if parts.next().is_some() { Err(unreadable()) } else { Ok(found) }
}

/// Replaces the file, or the target of a symlink, and keeps its mode.
fn replace_file(path: &Path, content: &[u8]) -> Result<(), ThreadError> {
    let path = fs::canonicalize(path).on("open", path)?;
    let mode = fs::metadata(&path).on("open", &path)?.permissions();
    Ok(replace_atomic(&path, |file| {
        file.set_permissions(mode)?;
        file.write_all(content)
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(version: &str, text: &str) -> String {
        format!(
            "<leslie_system_guide version=\"{version}\" description=\"x\">\n{text}\n</leslie_system_guide>"
        )
    }

    fn put(before: &str, version: &str, answer: Option<bool>) -> (&'static str, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("AGENTS.md");
        fs::write(&path, before).unwrap();
        let mut confirm = |_: &str, _: &str| answer.unwrap();
        let confirm: Option<ConfirmUpdate<'_>> = answer.is_some().then_some(&mut confirm);
        let block = block(version, "new");
        let outcome = LeslieGuide { block: &block, version }.put_into(&path, confirm).unwrap();
        (outcome.status.as_str(), fs::read_to_string(&path).unwrap())
    }

    #[test]
    fn ours_is_placed_once_and_then_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("AGENTS.md");
        let first = LeslieGuide::built_in().put_into(&path, None).unwrap();
        assert_eq!(first.status, GuideStatus::Created);
        let text = fs::read(&path).unwrap();
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        for _ in 0..3 {
            let again = LeslieGuide::built_in().put_into(&path, Some(&mut |_, _| false)).unwrap();
            assert_eq!((again.status, again.is_written), (GuideStatus::Updated, false));
            assert_eq!(again.previous_version.as_deref(), Some(LeslieGuide::built_in().version));
        }
        assert_eq!(fs::read(&path).unwrap(), text);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), time);
    }

    #[test]
    fn major_and_older_versions_are_asked_about() {
        for (old, new, asked) in [
            ("1.9.0", "2.0.0", true),
            ("3.0.0", "2.0.0", true),
            ("2.1.0", "2.0.0", true),
            ("2.0.0", "2.0.0", false),
            ("2.0.0", "2.1.0", false),
            ("1.0.0", "2.0.0-rc.1", false),
            ("2.0.0-rc.1", "2.0.0", false),
        ] {
            let before = format!("a\n{}\nb", block(old, "old"));
            let updated = ("updated", format!("a\n{}\nb", block(new, "new")));
            let refused = if asked { ("skipped", before.clone()) } else { updated.clone() };
            assert_eq!(put(&before, new, Some(false)), refused, "{old} {new}");
            assert_eq!(put(&before, new, Some(true)), updated, "{old} {new}");
            assert_eq!(put(&before, new, None), updated, "{old} {new}");
        }
        let unstated = "<leslie_system_guide>\nversion=\"2.0.0\"</leslie_system_guide>";
        assert_eq!(put(unstated, "2.0.0", Some(false)).0, "skipped");
    }

    #[test]
    fn reports_an_unreadable_version() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("AGENTS.md");
        for version in ["two", "1.2", "1.2.3.4", "1.2.x"] {
            fs::write(&path, block(version, "old")).unwrap();
            let error = LeslieGuide::built_in().put_into(&path, None).unwrap_err();
            assert_eq!(
                (error.code(), error.to_string()),
                ("T902", format!("Invalid Version: {version}"))
            );
        }
    }

    #[test]
    fn a_block_without_an_end_keeps_the_following_text() {
        let before = "<leslie_system_guide version=\"1.0.0\">\nmine\n";
        let (status, once) = put(before, "1.0.0", None);
        assert_eq!(
            (status, once.as_str()),
            ("appended", &*format!("{before}\n{}\n", block("1.0.0", "new")))
        );
        let old = once.replace("\nnew\n", "\nold\n");
        assert_eq!(put(&old, "1.0.0", None), ("updated", once));
    }

    #[test]
    fn of_two_blocks_the_first_is_replaced() {
        let before = format!("{}\n{}", block("1.0.0", "a"), block("1.0.0", "b"));
        let after = format!("{}\n{}", block("1.0.1", "new"), block("1.0.0", "b"));
        assert_eq!(put(&before, "1.0.1", None), ("updated", after));
    }

    #[cfg(unix)]
    #[test]
    fn links_modes_and_foreign_bytes_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("CLAUDE.md"), dir.path().join("AGENTS.md"));
        fs::write(&path, b"caf\xe9\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        symlink("CLAUDE.md", &link).unwrap();
        LeslieGuide::built_in().put_into(&link, None).unwrap();
        assert!(link.is_symlink());
        assert!(fs::read(&path).unwrap().starts_with(b"caf\xe9\n\n<leslie"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_nowhere_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("AGENTS.md");
        std::os::unix::fs::symlink("docs/AGENTS.md", &link).unwrap();
        let error = LeslieGuide::built_in().put_into(&link, None).unwrap_err();
        let expected = format!("Dangling link: {} -> docs/AGENTS.md", link.display());
        assert_eq!((error.code(), error.to_string()), ("T902", expected));
        assert!(link.is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_has_the_mode_that_others_have() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("AGENTS.md"), dir.path().join("other"));
        LeslieGuide::built_in().put_into(&path, None).unwrap();
        fs::write(&other, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&other));
    }

    #[test]
    fn lines_end_as_they_did() {
        let crlf = |text: &str| text.replace('\n', "\r\n");
        let before = crlf("# Mine\n\nmore\n");
        let (status, once) = put(&before, "1.0.0", None);
        let expected = crlf(&format!("# Mine\n\nmore\n\n{}\n", block("1.0.0", "new")));
        assert_eq!((status, &once), ("appended", &expected));
        let old = once.replace("new", "old");
        assert_eq!(put(&old, "1.0.0", None), ("updated", once));
        assert_eq!(
            put("a\r\nb", "1.0.0", None).1,
            crlf(&format!("a\nb\n\n{}\n", block("1.0.0", "new")))
        );
    }

    #[test]
    fn every_asset_states_its_use_and_writer() {
        let block = LeslieGuide::built_in().block;
        for kind in ["plan", "progress", "design", "learnings", "discuss", "transcript"] {
            let part = block.split(&format!("\n#### {kind}\n")).nth(1).unwrap();
            let part = part.split("\n#").next().unwrap();
            for name in ["What", "Location", "When", "How to use", "Generation"] {
                assert!(part.contains(&format!("\n- **{name}**: ")), "{kind}: {name}");
            }
        }
    }

    #[test]
    fn our_block_states_its_version() {
        let guide = LeslieGuide::built_in();
        assert_eq!(stated_version(guide.block.as_bytes()), guide.version);
        assert_eq!(find_block(guide.block.as_bytes()), Some((0, guide.block.len())));
    }
}
