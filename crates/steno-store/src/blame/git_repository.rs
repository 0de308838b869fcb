//! A Git repository, asked through the `git` program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::BlameError;
use super::blamed_line::{BlamedLine, parse_porcelain};
use crate::repository::CheckoutFolders;

/// A checkout of a Git repository.
#[derive(Clone, Debug)]
pub struct GitRepository {
    /// The root folder of this checkout, without links.
    pub root: PathBuf,
    /// The root folders of all checkouts, this one first.
    pub worktrees: Vec<PathBuf>,
    /// The Git folder that all checkouts share, if Git was not needed to find it.
    git: Option<PathBuf>,
}

/// Lines of a file to blame, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineSpan {
    /// The first line.
    pub first: usize,
    /// The last line.
    pub last: usize,
}

impl GitRepository {
    /// Finds the repository that contains a folder. Git is asked only if its files do not show it: starting it takes
    /// longer than the search for a line.
    pub fn containing(folder: &Path) -> Result<Self, BlameError> {
        match CheckoutFolders::containing(folder) {
            Some(CheckoutFolders { roots, git }) => {
                Ok(Self { root: roots[0].clone(), worktrees: roots, git: Some(git) })
            }
            None => Self::ask_git(folder),
        }
    }

    fn ask_git(folder: &Path) -> Result<Self, BlameError> {
        let root = run_git(folder, &["rev-parse", "--show-toplevel"])
            .map_err(|_| BlameError::NoRepository(folder.to_owned()))?;
        let root = PathBuf::from(String::from_utf8_lossy(&root).trim_end());
        let root = root.canonicalize().unwrap_or(root);
        let mut worktrees = vec![root.clone()];
        let listed = run_git(&root, &["worktree", "list", "--porcelain"]).unwrap_or_default();
        for line in String::from_utf8_lossy(&listed).lines() {
            if let Some(folder) = line.strip_prefix("worktree ") {
                let folder = PathBuf::from(folder);
                let folder = folder.canonicalize().unwrap_or(folder);
                if !worktrees.contains(&folder) {
                    worktrees.push(folder);
                }
            }
        }
        Ok(Self { root, worktrees, git: None })
    }

    /// A path relative to the root, with `/` between folders, as Git names it.
    pub fn relative_path(&self, path: &Path) -> Result<String, BlameError> {
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        let full = match (folder, path.file_name()) {
            (Some(folder), Some(name)) => folder.join(name),
            _ => path.to_owned(),
        };
        let relative = full
            .strip_prefix(&self.root)
            .map_err(|_| BlameError::OutsideRepository(path.to_owned()))?;
        Ok(relative
            .components()
            .map(|part| part.as_os_str().to_string_lossy())
            .collect::<Vec<_>>()
            .join("/"))
    }

    /// Which commit brought each line of a file in the checkout. Lines of which only white space changed belong to the
    /// commit that wrote them.
    ///
    /// Git follows renames of files. It is not asked for copied lines (`-C`): it takes a line that two people wrote
    /// for a copy, and the commit that brought it into this file is lost. Copies are found by their text.
    pub fn blame_file(
        &self,
        file: &str,
        span: Option<LineSpan>,
    ) -> Result<Vec<BlamedLine>, BlameError> {
        let mut args = ["blame", "--porcelain", "--no-textconv", "-w"].map(str::to_owned).to_vec();
        if let Some(LineSpan { first, last }) = span {
            args.push(format!("-L{first},{last}"));
        }
        args.extend(["--".to_owned(), file.to_owned()]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Ok(parse_porcelain(&String::from_utf8_lossy(&run_git(&self.root, &args)?)))
    }

    /// The lines of a file in a commit. Fails if the commit has no such file.
    pub fn file_in_commit(&self, commit: &str, file: &str) -> Result<Vec<String>, BlameError> {
        let blob = run_git(&self.root, &["cat-file", "blob", &format!("{commit}:{file}")])?;
        Ok(String::from_utf8_lossy(&blob).lines().map(str::to_owned).collect())
    }

    /// The full hash of a commit. Fails if there is no such commit.
    pub fn resolve_commit(&self, name: &str) -> Result<String, BlameError> {
        let wanted = format!("{name}^{{commit}}");
        let hash =
            run_git(&self.root, &["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted])
                .map_err(|_| BlameError::UnknownCommit(name.to_owned()))?;
        Ok(String::from_utf8_lossy(&hash).trim().to_owned())
    }

    /// Whether a ref may exist; `false` only if it does not. Does not start Git.
    pub(super) fn may_have_ref(&self, name: &str) -> bool {
        let Some(git) = &self.git else { return true };
        let is_packed = |text: String| text.lines().any(|line| line.ends_with(&format!(" {name}")));
        git.join(name).exists()
            || git.join("reftable").exists()
            || fs::read_to_string(git.join("packed-refs")).is_ok_and(is_packed)
    }

    /// Runs Git in the root folder and returns its output as text; `None` if it fails.
    pub(super) fn try_text(&self, args: &[&str]) -> Option<String> {
        let output = run_git(&self.root, args).ok()?;
        Some(String::from_utf8_lossy(&output).into_owned())
    }

    /// Runs Git in the root folder and returns its output.
    pub(super) fn run(&self, args: &[&str]) -> Result<Vec<u8>, BlameError> {
        run_git(&self.root, args)
    }
}

/// Runs Git and returns its output. `GIT_OPTIONAL_LOCKS` keeps it from writing to the index.
fn run_git(folder: &Path, args: &[&str]) -> Result<Vec<u8>, BlameError> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["-c", "core.quotePath=false", "--no-pager"]).args(args);
    command.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C").stdin(Stdio::null());
    let output = command.output().map_err(BlameError::GitNotStarted)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let message = message.strip_prefix("fatal: ").unwrap_or(&message).to_owned();
    Err(BlameError::GitFailed {
        command: args.first().copied().unwrap_or_default().to_owned(),
        message,
    })
}
