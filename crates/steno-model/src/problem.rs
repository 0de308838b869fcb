//! Problems: records that could not be read, printed as `path:line: reason`.

use std::fmt;
use std::path::{Path, PathBuf};

/// A record that could not be read. Its bytes stay in the file, and reading continues after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file that holds the record.
    pub path: PathBuf,
    /// Its line number, counted from 1; absent if the file has no lines or is bad as a whole.
    pub line: Option<u64>,
    /// Why it could not be read.
    pub reason: String,
    /// Whether everything was read and this is only information.
    pub is_notice: bool,
}

impl Problem {
    /// A problem with one line of a file.
    pub fn at(path: &Path, line: u64, reason: impl fmt::Display) -> Self {
        Self { line: Some(line), ..Self::of(path, reason) }
    }

    /// A problem with a file as a whole.
    pub fn of(path: &Path, reason: impl fmt::Display) -> Self {
        let (path, reason) = (path.to_owned(), reason.to_string());
        Self { path, line: None, reason, is_notice: false }
    }

    /// Information about a file without any loss.
    pub fn notice(path: &Path, reason: impl fmt::Display) -> Self {
        Self { is_notice: true, ..Self::of(path, reason) }
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
const KEPT: usize = 1000;

/// The problems of one session. Counts all but keeps only the first, because a file of garbage has one per line.
#[derive(Clone, Debug, Default)]
pub struct ProblemList {
    first: Vec<Problem>,
    count: u64,
    notices: u64,
}

impl ProblemList {
    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        self.count += 1;
        self.notices += u64::from(problem.is_notice);
        if self.first.len() < KEPT {
            self.first.push(problem);
        }
    }

    /// Adds the problems of another list.
    pub fn append(&mut self, other: Self) {
        let room = KEPT - self.first.len();
        self.count += other.count;
        self.notices += other.notices;
        self.first.extend(other.first.into_iter().take(room));
    }

    /// The first `limit` problems, and the number of further ones.
    pub fn first(&self, limit: usize) -> (&[Problem], u64) {
        let listed = &self.first[..limit.min(self.first.len())];
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
        let mut problems = self.first;
        let more = self.count - problems.len() as u64;
        if let Some(last) = problems.last().filter(|_| more > 0) {
            let reason = format!("{more} more problems, not listed");
            problems.push(Problem::of(&last.path.clone(), reason));
        }
        problems
    }
}

/// The error message of `serde_json`, without the line number, which would always be 1.
pub fn json_reason(error: &serde_json::Error) -> String {
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
        (1..=KEPT as u64 + 5).for_each(|line| list.push(Problem::at(Path::new("x"), line, "bad")));
        assert_eq!(list.count(), KEPT as u64 + 5);
        let problems = list.into_problems();
        assert_eq!(problems.len(), KEPT + 1);
        assert_eq!(problems[KEPT - 1].to_string(), "x:1000: bad");
        assert_eq!(problems[KEPT].to_string(), "x: 5 more problems, not listed");
    }

    #[test]
    fn lists_are_joined() {
        let list = |count: u64| {
            let mut list = ProblemList::default();
            (1..=count).for_each(|line| list.push(Problem::at(Path::new("x"), line, "bad")));
            list
        };
        let mut all = list(3);
        all.append(list(KEPT as u64 + 5));
        assert_eq!((all.count(), all.first.len()), (KEPT as u64 + 8, KEPT));
        let (listed, more) = all.first(4);
        assert_eq!((listed.len(), more), (4, KEPT as u64 + 4));
        assert_eq!(list(2).first(4).1, 0);
    }

    #[test]
    fn few_problems_are_all_kept() {
        let mut list = ProblemList::default();
        list.push(Problem::of(Path::new("x"), "bad"));
        assert_eq!(list.into_problems(), [Problem::of(Path::new("x"), "bad")]);
    }
}
