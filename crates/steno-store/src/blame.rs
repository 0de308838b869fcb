//! Which session wrote a line: from `git blame` to the session, entry and prompt.
//!
//! [`BlamedFile`] asks Git which commit wrote each line. [`SessionBlamer`] looks for the text of the line and its
//! neighbours in what edit tools wrote in the sessions of the repository before that commit. The time alone proves
//! nothing. Notes of git-ai and trailers of Entire are further evidence.
//!
//! # Performance
//! Candidates come from the full-text index. The arguments of a call are recovered from the text that the index holds;
//! a session is read from the vault only if that text is ambiguous or a tool failed nearby.

mod added_lines;
pub mod agent_trace;
mod blamed_line;
mod commit_clues;
mod edit_archive;
mod file_history;
mod git_repository;
mod heredoc;
mod indexed_input;
mod line_judge;
mod line_origin;
mod line_text;
mod line_writers;
mod path_edits;
mod recent_edits;
mod recorded_edit;
mod repository_scope;
mod session_blamer;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use self::blamed_line::BlamedLine;
use self::commit_clues::{CommitClues, read_commit_clues};
pub use self::file_history::{FileSession, find_file_sessions};
pub use self::git_repository::{GitRepository, LineSpan};
pub use self::line_origin::{
    LineOrigin, LineOriginRow, OriginCertainty, OriginEntry, OriginPrompt,
};
use self::line_text::{notebook_cell_line, without_line_end};
pub use self::recent_edits::{EditedFile, RecentEdit, RecentEdits, find_recent_edits};
pub use self::repository_scope::RepositoryScope;
pub use self::session_blamer::SessionBlamer;

/// Why Git could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum BlameError {
    /// The `git` program did not start.
    #[error("could not run git: {0}")]
    GitNotStarted(#[source] io::Error),
    /// Git reported an error.
    #[error("git {command}: {message}")]
    GitFailed {
        /// The Git command.
        command: String,
        /// What Git wrote.
        message: String,
    },
    /// The folder is in no Git repository.
    #[error("not in a Git repository: {0}")]
    NoRepository(PathBuf),
    /// The file is in no folder of the repository.
    #[error("outside the repository: {0}")]
    OutsideRepository(PathBuf),
    /// There is no such commit.
    #[error("no such commit: {0}")]
    UnknownCommit(String),
    /// The file could not be read.
    #[error("could not read {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// A file, its lines, and the commits that wrote them.
#[derive(Clone, Debug)]
pub struct BlamedFile {
    /// The path relative to the repository's root.
    pub path: String,
    /// All lines of the file.
    lines: Vec<String>,
    /// The lines that are asked about.
    pub blamed: Vec<BlamedLine>,
    clues: HashMap<String, CommitClues>,
    repository: GitRepository,
}

impl BlamedFile {
    /// Asks Git about the lines of a file in the checkout; about all without `span`. Fails if Git does.
    pub fn read(
        repository: &GitRepository,
        file: &Path,
        span: Option<LineSpan>,
    ) -> Result<Self, BlameError> {
        let path = repository.relative_path(file)?;
        let content = fs::read(repository.root.join(&path))
            .map_err(|source| BlameError::File { path: file.to_owned(), source })?;
        let lines = String::from_utf8_lossy(&content);
        let lines = lines.lines().map(|line| without_line_end(line).to_owned()).collect();
        let blamed = repository.blame_file(&path, span)?;
        Ok(Self::new(repository, path, lines, blamed))
    }

    /// Asks Git which lines a commit added, in all its files. A merge is compared with its first parent.
    pub fn read_commit(repository: &GitRepository, commit: &str) -> Result<Vec<Self>, BlameError> {
        let commit = repository.resolve_commit(commit)?;
        let mut files = Vec::new();
        for (path, blamed) in repository.lines_added_by(&commit)? {
            let lines = repository.file_in_commit(&commit, &path)?;
            files.push(Self::new(repository, path, lines, blamed));
        }
        Ok(files)
    }

    fn new(
        repository: &GitRepository,
        path: String,
        lines: Vec<String>,
        blamed: Vec<BlamedLine>,
    ) -> Self {
        let commits: BTreeSet<_> = blamed.iter().filter_map(|line| line.commit.clone()).collect();
        let commits: Vec<String> = commits.into_iter().collect();
        let clues = read_commit_clues(repository, &commits);
        let lines = shown_lines(&path, lines);
        Self { path, lines, blamed, clues, repository: repository.clone() }
    }
}

/// The lines of a file as agents write them: those of a notebook's cells without JSON's quotation marks.
fn shown_lines(path: &str, lines: Vec<String>) -> Vec<String> {
    if !path.ends_with(".ipynb") {
        return lines;
    }
    lines.into_iter().map(|line| notebook_cell_line(&line).unwrap_or(line)).collect()
}
