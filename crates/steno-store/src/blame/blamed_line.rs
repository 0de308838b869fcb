//! A line of `git blame --porcelain`.

use std::collections::HashMap;

use super::line_text::without_line_end;

/// A line of a file, and the commit that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlamedLine {
    /// The line's number in the file, from 1.
    pub number: usize,
    /// The text without its line end.
    pub text: String,
    /// The commit that wrote it; `None` if the line is not committed.
    pub commit: Option<String>,
    /// The path of the file in that commit.
    pub original_path: String,
    /// The line's number in that commit, from 1.
    pub original_number: usize,
    /// When the commit was written first, in seconds since 1970. A rebase keeps it.
    pub author_time: i64,
    /// When the commit was made, in seconds since 1970.
    pub committer_time: i64,
}

#[derive(Clone, Default)]
struct CommitHeader {
    author_time: i64,
    committer_time: i64,
    path: String,
}

/// Parses the output of `git blame --porcelain`. What is known of a commit precedes its first line only.
pub(super) fn parse_porcelain(text: &str) -> Vec<BlamedLine> {
    let mut commits: HashMap<&str, CommitHeader> = HashMap::new();
    let mut lines = Vec::new();
    let (mut hash, mut original_number, mut number) = ("", 0, 0);
    for line in text.split('\n') {
        if let Some(content) = line.strip_prefix('\t') {
            let header = commits.get(hash).cloned().unwrap_or_default();
            let is_committed = !hash.bytes().all(|byte| byte == b'0');
            lines.push(BlamedLine {
                number,
                text: without_line_end(content).to_owned(),
                commit: is_committed.then(|| hash.to_owned()),
                original_path: header.path,
                original_number,
                author_time: header.author_time,
                committer_time: header.committer_time,
            });
            continue;
        }
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        let header = commits.entry(hash).or_default();
        match name {
            "author-time" => header.author_time = value.parse().unwrap_or(0),
            "committer-time" => header.committer_time = value.parse().unwrap_or(0),
            "filename" => header.path = value.to_owned(),
            name if is_hash(name) => {
                let mut numbers = value.split(' ').map(|number| number.parse().unwrap_or(0));
                hash = name;
                original_number = numbers.next().unwrap_or(0);
                number = numbers.next().unwrap_or(0);
            }
            _ => {}
        }
    }
    lines
}

fn is_hash(name: &str) -> bool {
    name.len() >= 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_of_a_commit_hold_for_all_its_lines() {
        let (a, zero) = ("a".repeat(40), "0".repeat(40));
        let text = format!(
            "{a} 3 1 2\nauthor Ada\nauthor-time 100\ncommitter-time 200\nsummary x\nfilename old name.rs\n\tone\r\n\
             {a} 4 2\n\t{a} 1 1\n{zero} 9 3 1\nauthor-time 300\ncommitter-time 300\nfilename b.rs\n\t\n"
        );
        let lines = parse_porcelain(&text);
        assert_eq!(lines.len(), 3);
        assert_eq!(
            (lines[0].text.as_str(), lines[0].number, lines[0].original_number),
            ("one", 1, 3)
        );
        assert_eq!(lines[1].text, format!("{a} 1 1"));
        assert_eq!(lines[1].original_path, "old name.rs");
        assert_eq!((lines[1].author_time, lines[1].committer_time), (100, 200));
        assert_eq!((lines[2].commit.as_deref(), lines[2].number), (None, 3));
    }
}
