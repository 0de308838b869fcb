//! Problems: records that could not be read, printed as `path:line: reason`.

use std::fmt;
use std::path::{Path, PathBuf};

/// A record that could not be read, or damage of a kept file. Reading continues after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file that holds the record.
    pub path: PathBuf,
    /// Its line number, counted from 1; absent if the file has no lines or is bad as a whole.
    pub line: Option<u64>,
    /// Why it could not be read.
    pub reason: String,
    /// What the problem means for the record.
    pub kind: ProblemKind,
}

/// What a [`Problem`] means for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// A record is as its agent wrote it, and cannot be read.
    UnreadableRecord,
    /// Bytes that Steno kept are changed or missing, so anything read from them is incomplete.
    Damage,
    /// Everything was read; this is only information.
    Notice,
}

impl Problem {
    /// A problem with one line of a file.
    pub fn at_line(path: &Path, line: u64, reason: impl fmt::Display) -> Self {
        Self { line: Some(line), ..Self::for_file(path, reason) }
    }

    /// A problem with a file as a whole.
    pub fn for_file(path: &Path, reason: impl fmt::Display) -> Self {
        let (path, reason) = (path.to_owned(), reason.to_string());
        Self { path, line: None, reason, kind: ProblemKind::UnreadableRecord }
    }

    /// Damage of a kept file.
    pub fn damage_in_file(path: &Path, reason: impl fmt::Display) -> Self {
        Self { kind: ProblemKind::Damage, ..Self::for_file(path, reason) }
    }

    /// Damage of one line of a kept file.
    pub fn damage_at_line(path: &Path, line: u64, reason: impl fmt::Display) -> Self {
        Self { kind: ProblemKind::Damage, ..Self::at_line(path, line, reason) }
    }

    /// Information about a file without any loss.
    pub fn notice_for_file(path: &Path, reason: impl fmt::Display) -> Self {
        Self { kind: ProblemKind::Notice, ..Self::for_file(path, reason) }
    }

    /// Whether kept bytes are changed or missing.
    pub fn is_damage(&self) -> bool {
        self.kind == ProblemKind::Damage
    }

    /// Whether everything was read.
    pub fn is_notice(&self) -> bool {
        self.kind == ProblemKind::Notice
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.reason)
    }
}

/// Maximum number of problems kept per session.
const MAX_KEPT_PROBLEMS: usize = 1000;

/// The problems of one session. Counts all but keeps only the first, because a file of garbage has one per line.
#[derive(Clone, Debug, Default)]
pub struct ProblemList {
    kept: Vec<Problem>,
    count: u64,
    notices: u64,
}

impl ProblemList {
    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        self.count += 1;
        self.notices += u64::from(problem.is_notice());
        if self.kept.len() < MAX_KEPT_PROBLEMS {
            self.kept.push(problem);
        }
    }

    /// Adds the problems of another list.
    pub fn append(&mut self, other: Self) {
        let room = MAX_KEPT_PROBLEMS - self.kept.len();
        self.count += other.count;
        self.notices += other.notices;
        self.kept.extend(other.kept.into_iter().take(room));
    }

    /// The first `limit` problems, and the number of further ones.
    pub fn first_kept(&self, limit: usize) -> (&[Problem], u64) {
        let listed = &self.kept[..limit.min(self.kept.len())];
        (listed, self.count - listed.len() as u64)
    }

    /// Number of problems, including those not kept.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Number of records that could not be read.
    pub fn bad_count(&self) -> u64 {
        self.count - self.notices
    }

    /// The kept problems, and a last one with the number of the others.
    pub fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.kept;
        let more = self.count - problems.len() as u64;
        if let Some(last) = problems.last().filter(|_| more > 0) {
            let reason = format!("{more} more problems, not listed");
            problems.push(Problem::for_file(&last.path.clone(), reason));
        }
        problems
    }
}

/// The error message of `serde_json`, without the line number, which would always be 1.
pub fn json_error_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let reason = match text.rfind(" at line ") {
        Some(at) => &text[..at],
        None => &text,
    };
    format!("not JSON: {reason} (column {})", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_beyond_the_first_are_only_counted() {
        let mut list = ProblemList::default();
        (1..=MAX_KEPT_PROBLEMS as u64 + 5)
            .for_each(|line| list.push(Problem::at_line(Path::new("x"), line, "bad")));
        assert_eq!(list.count(), MAX_KEPT_PROBLEMS as u64 + 5);
        let problems = list.into_problems();
        assert_eq!(problems.len(), MAX_KEPT_PROBLEMS + 1);
        assert_eq!(problems[MAX_KEPT_PROBLEMS - 1].to_string(), "x:1000: bad");
        assert_eq!(problems[MAX_KEPT_PROBLEMS].to_string(), "x: 5 more problems, not listed");
    }

    #[test]
    fn lists_are_joined() {
        let list = |count: u64| {
            let mut list = ProblemList::default();
            (1..=count).for_each(|line| list.push(Problem::at_line(Path::new("x"), line, "bad")));
            list
        };
        let mut all = list(3);
        all.append(list(MAX_KEPT_PROBLEMS as u64 + 5));
        assert_eq!(
            (all.count(), all.kept.len()),
            (MAX_KEPT_PROBLEMS as u64 + 8, MAX_KEPT_PROBLEMS)
        );
        let (listed, more) = all.first_kept(4);
        assert_eq!((listed.len(), more), (4, MAX_KEPT_PROBLEMS as u64 + 4));
        assert_eq!(list(2).first_kept(4).1, 0);
    }

    #[test]
    fn few_problems_are_all_kept() {
        let mut list = ProblemList::default();
        list.push(Problem::for_file(Path::new("x"), "bad"));
        assert_eq!(list.into_problems(), [Problem::for_file(Path::new("x"), "bad")]);
    }
}
