//! The lines that a commit added, by file.

use super::BlameError;
use super::blamed_line::BlamedLine;
use super::git_repository::GitRepository;
use super::line_text::without_line_end;

impl GitRepository {
    /// The lines that a commit added, by file. A merge is compared with its first parent.
    pub(super) fn lines_added_by(
        &self,
        commit: &str,
    ) -> Result<Vec<(String, Vec<BlamedLine>)>, BlameError> {
        let times = self.run(&["show", "-s", "--format=%at %ct", commit])?;
        let times = String::from_utf8_lossy(&times).into_owned();
        let mut times = times.split_whitespace().map(|time| time.parse().unwrap_or(0));
        let (author_time, committer_time) = (times.next().unwrap_or(0), times.next().unwrap_or(0));
        let diff = self.run(&[
            "show",
            "--format=",
            "-p",
            "-U0",
            "-M",
            "-m",
            "--first-parent",
            "--root",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            commit,
        ])?;
        let files = parse_added_lines(&String::from_utf8_lossy(&diff)).into_iter();
        let files = files.map(|(path, lines)| {
            let to_blamed = |(number, text): (usize, String)| BlamedLine {
                number,
                text,
                commit: Some(commit.to_owned()),
                original_path: path.clone(),
                original_number: number,
                author_time,
                committer_time,
            };
            let lines = lines.into_iter().map(to_blamed).collect();
            (path.clone(), lines)
        });
        Ok(files.collect())
    }
}

/// The added lines of a diff without context, each with its number, by file.
fn parse_added_lines(diff: &str) -> Vec<(String, Vec<(usize, String)>)> {
    let mut files: Vec<(String, Vec<(usize, String)>)> = Vec::new();
    let (mut number, mut removed, mut added) = (0, 0, 0);
    for line in diff.split('\n') {
        if added > 0
            && let Some(text) = line.strip_prefix('+')
        {
            if let Some((_, lines)) = files.last_mut() {
                lines.push((number, without_line_end(text).to_owned()));
            }
            number += 1;
            added -= 1;
        } else if removed > 0 && line.starts_with('-') {
            removed -= 1;
        } else if let Some(path) = line.strip_prefix("+++ b/") {
            files.push((path.trim_end_matches('\t').to_owned(), Vec::new()));
        } else if let Some(header) = line.strip_prefix("@@ -") {
            let mut ranges = header.split(' ');
            (_, removed) = parse_range(ranges.next().unwrap_or_default());
            let range = ranges.next().unwrap_or_default();
            (number, added) = parse_range(range.strip_prefix('+').unwrap_or(range));
        }
    }
    files.retain(|(_, lines)| !lines.is_empty());
    files
}

/// Parses `START,COUNT` or `START`.
fn parse_range(range: &str) -> (usize, usize) {
    let (start, count) = range.split_once(',').unwrap_or((range, "1"));
    (start.parse().unwrap_or(0), count.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_looks_like_a_header_is_text() {
        let diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@ fn\n--- a/y\n+++ b/z\n+two\r\n@@ -9,0 +11 @@\n+eleven\n";
        let files = parse_added_lines(diff);
        let lines = [(1, "++ b/z".to_owned()), (2, "two".to_owned()), (11, "eleven".to_owned())];
        assert_eq!(files, [("x".to_owned(), lines.to_vec())]);
    }
}
