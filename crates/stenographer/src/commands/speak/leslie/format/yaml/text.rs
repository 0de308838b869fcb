//! Formats a text as a YAML scalar: plain if unambiguous, a block for several lines, else quoted.

use std::cmp::Ordering;

use serde_json::Value;

use super::fold::{FoldMode, FoldedText, LINE_WIDTH, fold_text, utf16_length};

/// The position of a text in the document.
#[derive(Clone, Copy)]
pub(super) struct ScalarContext {
    /// Indent of its further lines.
    pub(super) indent: usize,
    /// Characters before it on its first line, if there is a key.
    pub(super) before: Option<usize>,
    /// Whether it is a key, which must be on one line.
    pub(super) is_key: bool,
}

/// A shorter quoted text keeps its newlines as escapes.
const MIN_MULTILINE_LENGTH: usize = 40;

/// Formats the text for its position.
pub(super) fn format_scalar(text: &str, context: ScalarContext) -> String {
    let has_lines = text.contains('\n');
    if text.chars().any(is_control) {
        return double_quote_text(text, context);
    }
    let is_quoted = match context.is_key {
        true => has_lines || is_ambiguous(text),
        false => !has_lines && is_ambiguous(text),
    };
    if is_quoted {
        return quote_text(text, context);
    }
    if has_lines {
        return format_block(text, context);
    }
    let marks_document = ["%", "---", "..."].iter().any(|mark| text.starts_with(mark));
    if is_other_type(text)
        || marks_document && context.is_key && context.indent == super::INDENT_STEP
    {
        return quote_text(text, context);
    }
    fold_scalar(text, context, FoldMode::Flow)
}

/// Returns whether only a double-quoted text can contain the character.
fn is_control(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// Returns whether a plain text would parse as something else than this text.
fn is_ambiguous(text: &str) -> bool {
    let starts = text.starts_with(|c| "\n\t ,[]{}#&*!|>'\"%@`".contains(c));
    let is_mark = |mark: &str| {
        text.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
    };
    let parts = [": ", ":\t", "\n ", "\n\t", " \n", "\t\n", "\n#", "\t#", " #"];
    starts
        || is_mark("?")
        || is_mark("-")
        || parts.iter().any(|part| text.contains(part))
        || text.ends_with(['\n', '\t', ' ', ':'])
}

/// Returns whether a plain text would parse as null, a boolean or a number.
fn is_other_type(text: &str) -> bool {
    let words = [
        "", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE", ".nan",
        ".NaN", ".NAN",
    ];
    if words.contains(&text) {
        return true;
    }
    let all = |digits: &str, is_digit: fn(&char) -> bool| {
        !digits.is_empty() && digits.chars().all(|c| is_digit(&c))
    };
    if text.strip_prefix("0o").is_some_and(|rest| all(rest, |c| ('0'..='7').contains(c)))
        || text.strip_prefix("0x").is_some_and(|rest| all(rest, char::is_ascii_hexdigit))
    {
        return true;
    }
    let number = text.strip_prefix(['-', '+']).unwrap_or(text);
    if [".inf", ".Inf", ".INF"].contains(&number) {
        return true;
    }
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (number, None),
    };
    let is_exponent =
        |text: &str| all(text.strip_prefix(['-', '+']).unwrap_or(text), char::is_ascii_digit);
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    is_digits(whole)
        && is_digits(part)
        && !(whole.is_empty() && part.is_empty())
        && exponent.is_none_or(is_exponent)
}

fn fold_scalar(text: &str, context: ScalarContext, mode: FoldMode) -> String {
    if context.is_key {
        return text.to_owned();
    }
    fold_text(text, context.indent, mode, context.before).text
}

/// Quotes a text: with single quotes if it contains only double ones, else with double quotes.
fn quote_text(text: &str, context: ScalarContext) -> String {
    let breaks_badly = [" \n", "\t\n", "\n ", "\n\t"].iter().any(|part| text.contains(part));
    let has_lines = text.contains('\n');
    let is_single = text.contains('"') && !text.contains('\'');
    if !is_single || context.is_key && has_lines || breaks_badly {
        return double_quote_text(text, context);
    }
    let indent = " ".repeat(context.indent);
    fold_scalar(
        &format!("'{}'", insert_after_newlines(text, &format!("\n{indent}"))),
        context,
        FoldMode::Flow,
    )
}

/// Quotes a text as in JSON, with YAML's shorter escapes; a longer one is split at its newlines.
fn double_quote_text(text: &str, context: ScalarContext) -> String {
    let json = Value::from(text).to_string();
    let keeps_escapes = context.is_key || utf16_length(&json) < MIN_MULTILINE_LENGTH;
    let indent = " ".repeat(context.indent);
    let mut out = String::new();
    let mut rest = json.as_str();
    while let Some(c) = rest.chars().next() {
        if rest.starts_with(" \\n") {
            // A space before a line break would be lost.
            out.push_str("\\ ");
            rest = &rest[1..];
            continue;
        }
        if let Some(code) = rest.strip_prefix("\\u") {
            out.push_str(&yaml_escape(&code[..4]));
            rest = &code[4..];
        } else if rest.starts_with("\\n") && rest != "\\n\"" && !keeps_escapes {
            let count = count_newlines(rest);
            out.push_str(&"\n".repeat(count + 1));
            out.push_str(&indent);
            rest = &rest[2 * count..];
            if rest.starts_with(' ') {
                out.push('\\');
            }
        } else {
            let end = if c == '\\' { 2 } else { c.len_utf8() };
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    fold_scalar(&out, context, FoldMode::Quoted)
}

/// Counts consecutive escaped newlines, without one that ends the text.
fn count_newlines(json: &str) -> usize {
    let mut count = 1;
    while json[2 * count..].starts_with("\\n") && &json[2 * count + 2..] != "\"" {
        count += 1;
    }
    count
}

/// Returns YAML's escape for a character code of JSON.
fn yaml_escape(code: &str) -> String {
    match code {
        "0000" => "\\0".to_owned(),
        "0007" => "\\a".to_owned(),
        "000b" => "\\v".to_owned(),
        "001b" => "\\e".to_owned(),
        _ => match code.strip_prefix("00") {
            Some(short) => format!("\\x{short}"),
            None => format!("\\u{code}"),
        },
    }
}

/// Formats a text of several lines as a block: literal if its lines are short, else folded.
fn format_block(text: &str, context: ScalarContext) -> String {
    let blank = |c: char| matches!(c, ' ' | '\t');
    if text.trim_end_matches(blank).ends_with('\n') && text.ends_with(blank) {
        return quote_text(text, context);
    }
    let indent = " ".repeat(context.indent);
    let kept = text.trim_end_matches(['\n', '\t', ' ']);
    let end = &text[kept.len()..];
    let chomp = match end.find('\n') {
        None => "-",
        Some(at) if kept.is_empty() || at + 1 != end.len() => "+",
        Some(_) => "",
    };
    let end = insert_between_newlines(end.strip_suffix('\n').unwrap_or(end), &indent);
    let lead = kept.len() - kept.trim_start_matches([' ', '\n']).len();
    let start_length = kept[..lead].rfind('\n').map_or(lead, |at| at + 1);
    let has_blank = kept[..lead].contains(' ');
    let start_length = if kept[..lead].contains('\n') { start_length } else { 0 };
    let (start, body) = kept.split_at(start_length);
    let start = insert_after_newlines(start, &indent);
    let header = format!("{}{chomp}", if has_blank { "2" } else { "" });
    let is_short = text.split('\n').all(|line| utf16_length(line) + context.indent <= LINE_WIDTH);
    if !is_short {
        let folding = insert_after_newlines(&protect_newlines(body), &indent);
        let whole = format!("{start}{folding}{end}");
        let FoldedText { text, overflows } =
            fold_text(&whole, context.indent, FoldMode::Block, Some(context.indent));
        if !overflows {
            return format!(">{header}\n{indent}{text}");
        }
    }
    format!("|{header}\n{indent}{start}{}{end}", insert_after_newlines(body, &indent))
}

/// Doubles newlines so that they survive folding, which removes one of each run. Folding removes none beside lines
/// that start with a space, except among blank lines between such a line and other text.
fn protect_newlines(text: &str) -> String {
    let is_indented = |line: &str| line.starts_with([' ', '\t']);
    // leslie's library ends a line at these characters, though YAML does not.
    let is_whole = |line: &str| !line.contains(['\u{2028}', '\u{2029}']);
    let lines = nonempty_lines(text);
    let mut out = String::new();
    let mut blanks_until = 0;
    for (at, (newlines, line)) in lines.iter().enumerate() {
        let is_kept = match at.cmp(&blanks_until) {
            Ordering::Less => false,
            Ordering::Equal => true,
            Ordering::Greater => is_indented(line),
        };
        out.push_str(&"\n".repeat(newlines + usize::from(!is_kept)));
        out.push_str(line);
        if at >= blanks_until && is_indented(line) && is_whole(line) {
            let is_text = |(_, line): &(usize, &str)| !line.trim_matches([' ', '\t']).is_empty();
            let next = lines[at + 1..].iter().position(is_text).map(|next| at + 1 + next);
            blanks_until = next.filter(|next| !is_indented(lines[*next].1)).unwrap_or(blanks_until);
        }
    }
    out
}

/// Returns the lines that are not empty, each with the number of newlines before it.
fn nonempty_lines(text: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let mut newlines = 0;
    for (at, line) in text.split('\n').enumerate() {
        newlines += usize::from(at > 0);
        if !line.is_empty() {
            lines.push((newlines, line));
            newlines = 0;
        }
    }
    lines
}

/// Inserts `more` after each run of newlines.
fn insert_after_newlines(text: &str, more: &str) -> String {
    insert_at_newlines(text, more, true)
}

/// Like [`insert_after_newlines`], except for a run at the end.
fn insert_between_newlines(text: &str, more: &str) -> String {
    insert_at_newlines(text, more, false)
}

fn insert_at_newlines(text: &str, more: &str, at_end: bool) -> String {
    let mut out = String::new();
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        out.push(c);
        let ends_run = c == '\n' && letters.peek() != Some(&'\n');
        if ends_run && (at_end || letters.peek().is_some()) {
            out.push_str(more);
        }
    }
    out
}
