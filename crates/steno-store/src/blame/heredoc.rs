//! Files that a shell command writes from a here-document: `cat > FILE <<'EOF'`.
//!
//! Only forms whose text reaches the file unchanged are recognized: `cat` or `tee` with one file, and a quoted
//! delimiter or a text without anything that the shell replaces.

use std::sync::LazyLock;

use regex::Regex;

use crate::view::edits::{EditLine, FileEdit};

static HEREDOC: LazyLock<Regex> = LazyLock::new(|| {
    let path = r#"(?:'(?<quoted>[^'\n]+)'|"(?<double>[^"$`\n]+)"|(?<plain>[^\s'"<>|;&$`*?]+))"#;
    let mark = r#"<<-?\s*(?<quote>['"]?)(?<mark>\w+)['"]?"#;
    let pattern = format!(
        r"(?:^|[\s;&(])(?:cat\s*>{{1,2}}\s*{path}\s*{mark}|tee\s+(?:-a\s+)?{}\s*{}[^\n|]*)\s*$",
        path.replace("?<", "?<tee_"),
        mark.replace("?<", "?<tee_"),
    );
    let reversed = format!(
        r"(?:^|[\s;&(])cat\s*{}\s*>{{1,2}}\s*{}\s*$",
        mark.replace("?<", "?<end_"),
        path.replace("?<", "?<end_"),
    );
    Regex::new(&format!("(?:{pattern})|(?:{reversed})")).expect("a constant")
});

/// The files that a command writes from here-documents.
pub(super) fn find_heredocs(command: &str) -> Vec<FileEdit<'_>> {
    let mut edits = Vec::new();
    let mut lines = command.lines();
    while let Some(line) = lines.next() {
        if !line.contains("<<") {
            continue;
        }
        let Some(opening) = HeredocOpening::parse(line) else { continue };
        let mut body = Vec::new();
        let mut is_closed = false;
        for line in lines.by_ref() {
            if line.trim_end() == opening.mark {
                is_closed = true;
                break;
            }
            body.push(line);
        }
        let is_literal =
            opening.is_quoted || !body.iter().any(|line| line.contains(['$', '`', '\\']));
        if is_closed && is_literal && !body.is_empty() {
            let lines = body.into_iter().map(EditLine::Added).collect();
            edits.push(FileEdit { path: opening.path, lines, is_deletion: false });
        }
    }
    edits
}

struct HeredocOpening<'a> {
    path: &'a str,
    mark: &'a str,
    is_quoted: bool,
}

impl<'a> HeredocOpening<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let found = HEREDOC.captures(line)?;
        ["", "tee_", "end_"].iter().find_map(|form| {
            let part = |name: &str| found.name(&format!("{form}{name}"));
            let path = part("quoted").or(part("double")).or(part("plain"))?;
            let is_quoted = !part("quote")?.is_empty();
            Some(Self { path: path.as_str(), mark: part("mark")?.as_str(), is_quoted })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_from_a_here_document() {
        let command = "mkdir -p src && cat > src/a.rs <<'EOF'\nfn main() {\n}\nEOF\ncargo run";
        let edits = find_heredocs(command);
        assert_eq!(edits[0].path, "src/a.rs");
        assert_eq!(edits[0].lines, [EditLine::Added("fn main() {"), EditLine::Added("}")]);
        assert_eq!(find_heredocs("cat <<EOF >> 'my notes.md'\none\nEOF")[0].path, "my notes.md");
        assert_eq!(find_heredocs("tee b.txt <<\"END\"\n$one\nEND")[0].path, "b.txt");
    }

    #[test]
    fn what_the_shell_may_change_is_left_out() {
        assert!(find_heredocs("cat > a <<EOF\n$HOME\nEOF").is_empty());
        assert!(find_heredocs("cat > a <<'EOF'\none\n").is_empty());
        assert!(find_heredocs("python3 - <<'EOF'\nprint(1)\nEOF").is_empty());
        assert!(find_heredocs("cat > \"$OUT\" <<'EOF'\none\nEOF").is_empty());
        assert!(find_heredocs("cat <<'EOF' | sort > a\none\nEOF").is_empty());
    }
}
