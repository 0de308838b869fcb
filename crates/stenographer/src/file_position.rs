//! A file on the command line, with or without lines: `FILE`, `FILE:12` or `FILE:12-20`.

use std::path::{Path, PathBuf};

use steno_store::blame::LineSpan;

use crate::error::CommandError;

/// A file and the lines that are meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FilePosition {
    pub(crate) path: PathBuf,
    pub(crate) span: Option<LineSpan>,
}

impl FilePosition {
    /// Parses a position. A file whose name ends like one is taken as it is.
    pub(crate) fn parse(cwd: &Path, text: &str) -> Result<Self, CommandError> {
        let whole = cwd.join(text);
        let position = match text.rsplit_once(':') {
            Some((name, lines)) if !whole.exists() && !name.is_empty() => {
                Self { path: cwd.join(name), span: Some(parse_span(lines)?) }
            }
            _ => Self { path: whole, span: None },
        };
        if position.path.is_dir() {
            let error = CommandError::user(format!("is a folder: {}", position.path.display()));
            return Err(error.hint("give a file, such as src/main.rs:12"));
        }
        Ok(position)
    }
}

fn parse_span(lines: &str) -> Result<LineSpan, CommandError> {
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    let span = match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) => LineSpan { first, last },
        _ => LineSpan { first: 0, last: 0 },
    };
    if span.first == 0 || span.last < span.first {
        let error = CommandError::usage(format!("not a line or range of lines: {lines}"));
        return Err(error.hint("use FILE:12 or FILE:12-20; the first line is 1"));
    }
    Ok(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_follow_the_last_colon() {
        let parse = |text| FilePosition::parse(Path::new("/nowhere"), text);
        let lines = |first, last| Some(LineSpan { first, last });
        assert_eq!(parse("a.rs").unwrap().span, None);
        assert_eq!(parse("a.rs:7").unwrap().span, lines(7, 7));
        let position = parse("src/a:b.rs:7-9").unwrap();
        assert_eq!(
            (position.path.to_str(), position.span),
            (Some("/nowhere/src/a:b.rs"), lines(7, 9))
        );
        for wrong in ["a.rs:0", "a.rs:x", "a.rs:9-7", "a.rs:"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_with_a_colon_is_a_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a:1"), "").unwrap();
        let position = FilePosition::parse(folder.path(), "a:1").unwrap();
        assert_eq!(position.span, None);
    }
}
