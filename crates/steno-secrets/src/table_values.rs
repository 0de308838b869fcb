//! Finds the values under the head of a column in tables: Markdown, CSV, and what clients of databases print.

use std::ops::Range;

/// Longer lines are no rows.
const MAX_ROW_BYTES: usize = 1000;

/// How many rows after the head are read.
const MAX_ROWS: usize = 50;

/// The cells under the head that `name` is in. Empty if it is in no head.
pub(crate) fn find_column_cells(text: &[u8], name: &Range<usize>) -> Vec<Range<usize>> {
    let Some(delimiter) = head_delimiter(text, name) else { return Vec::new() };
    let start = name.start - bytes_before_line_break(text, name.start);
    let end = line_end(text, name.end);
    let head = &text[start..end];
    let columns = head.split(|byte| *byte == delimiter).count();
    if head.len() > MAX_ROW_BYTES || !is_head(head, delimiter) {
        return Vec::new();
    }
    let column = text[start..name.start].iter().filter(|byte| **byte == delimiter).count();
    let mut cells = Vec::new();
    let mut at = end + 1;
    for _ in 0..MAX_ROWS {
        let Some(row) = text.get(at..line_end(text, at)) else { break };
        let is_rule = !row.is_empty() && row.iter().all(|byte| b"-:|+= \r".contains(byte));
        if !is_rule {
            let mut parts = row.split(|byte| *byte == delimiter);
            if parts.clone().count() != columns {
                break;
            }
            if let Some(cell) = parts.nth(column) {
                let offset = cell.as_ptr().addr() - text.as_ptr().addr();
                cells.push(trim_cell(text, offset..offset + cell.len()));
            }
        }
        at += row.len() + 1;
    }
    cells
}

/// What divides the cells, if the bytes around a name may be the bounds of a cell.
fn head_delimiter(text: &[u8], name: &Range<usize>) -> Option<u8> {
    let is_outer = |byte: &&u8| !b" \"'*`".contains(byte);
    let before = text[..name.start].iter().rev().take(40).find(is_outer).copied();
    let after = text[name.end..].iter().take(40).find(is_outer).copied();
    match (before, after) {
        (_, Some(byte @ (b'|' | b',' | b';' | b'\t'))) => matches!(before, None | Some(b'\n'))
            .then_some(byte)
            .or((before == Some(byte)).then_some(byte)),
        (Some(byte @ (b'|' | b',' | b';' | b'\t')), None | Some(b'\n' | b'\r')) => Some(byte),
        _ => None,
    }
}

/// Whether a line has several cells, each with a short name.
fn is_head(line: &[u8], delimiter: u8) -> bool {
    let is_name = |cell: &[u8]| {
        cell.len() <= 60
            && cell
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || b" _.-*`\"'/\r".contains(byte))
    };
    let cells = line.split(|byte| *byte == delimiter);
    let named = cells.clone().filter(|cell| !cell.trim_ascii().is_empty()).count();
    // Literals in code have spaces between them, and a comma at the end of the line.
    let is_packed = delimiter == b'|'
        || cells
            .clone()
            .all(|cell| !cell.is_empty() && !cell.starts_with(b" ") && !cell.starts_with(b"'"));
    named >= 2 && is_packed && cells.clone().all(is_name)
}

fn bytes_before_line_break(text: &[u8], at: usize) -> usize {
    text[..at].iter().rev().take(MAX_ROW_BYTES).take_while(|byte| **byte != b'\n').count()
}

fn line_end(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.iter().take(MAX_ROW_BYTES).take_while(|byte| **byte != b'\n').count()
}

fn trim_cell(text: &[u8], mut cell: Range<usize>) -> Range<usize> {
    let is_edge = |byte: &u8| b" \"'`*\r".contains(byte);
    while cell.start < cell.end && is_edge(&text[cell.start]) {
        cell.start += 1;
    }
    while cell.start < cell.end && is_edge(&text[cell.end - 1]) {
        cell.end -= 1;
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
        let at = text.find(name).expect("the name is in the text");
        let cells = find_column_cells(text.as_bytes(), &(at..at + name.len()));
        cells.into_iter().map(|cell| &text[cell]).collect()
    }

    #[test]
    fn cells_under_a_head_are_found() {
        let markdown =
            "| user | password |\n|---|---|\n| bob | `kestrel7` |\n| eve | heron42 |\n\nend";
        assert_eq!(cells(markdown, "password"), ["kestrel7", "heron42"]);
        assert_eq!(cells("user,password,mail\nbob,\"kestrel7\",b@x\n", "password"), ["kestrel7"]);
        let printed = " id | password \n----+----------\n  1 | kestrel7\n(1 row)\n";
        assert_eq!(cells(printed, "password"), ["kestrel7"]);
    }

    #[test]
    fn arguments_and_sentences_are_no_head() {
        assert!(cells("connect(user, password, host)\na, b2, c\n", "password").is_empty());
        assert!(cells("'name', 'password', 'PARAM2',\n'a', 'b2', 'c',\n", "password").is_empty());
        assert!(cells("password,\nuser1,\n", "password").is_empty());
        assert!(cells("Give the password, please.\nNo, thanks2.", "password").is_empty());
    }
}
