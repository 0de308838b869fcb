//! Reads commands that are written as lists of JSON, `["curl", "-u", "bob:..."]`, as a shell would print them.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::unescaped_part::UnescapedPart;

/// How much of a list is read before and after its first option.
const MAX_LIST_BYTES: usize = 4096;

static OPTION_START: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"-"));

/// The commands in a text, each with its arguments joined by spaces.
pub(crate) fn find_argument_lists(text: &[u8]) -> Vec<UnescapedPart> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(option) = OPTION_START.find(&text[at..]).map(|offset| at + offset) {
        let is_inner = |byte: &&u8| !b"[]".contains(byte);
        let before = text[at..option].iter().rev().take(MAX_LIST_BYTES).take_while(is_inner);
        let start = option - before.count();
        let after = text[option..].iter().take(MAX_LIST_BYTES).take_while(is_inner).count();
        let is_list = start > 0 && text[start - 1] == b'[' && text[start..option].contains(&b',');
        if is_list {
            parts.push(join_arguments(text, start, option + after));
        }
        at = option + if is_list { after } else { 2 };
    }
    parts
}

fn join_arguments(text: &[u8], start: usize, end: usize) -> UnescapedPart {
    let (mut decoded, mut offsets) = (Vec::new(), Vec::new());
    let mut at = start;
    while at < end {
        offsets.push(at);
        match separator_length(&text[at..end]) {
            Some(length) => {
                decoded.push(b' ');
                at += length;
            }
            None => {
                decoded.push(text[at]);
                at += 1;
            }
        }
    }
    offsets.push(end);
    UnescapedPart { decoded, offsets }
}

/// The length of what is between two literals, such as `", "` or `\",\"`.
fn separator_length(text: &[u8]) -> Option<usize> {
    let closing = text.iter().take(4).take_while(|byte| **byte == b'\\').count();
    if text.get(closing) != Some(&b'"') {
        return None;
    }
    let is_between = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b',';
    let between = text[closing + 1..].iter().take(80).take_while(is_between).count();
    let rest = &text[closing + 1 + between..];
    let opening = rest.iter().take(4).take_while(|byte| **byte == b'\\').count();
    let is_separator = between > 0 && rest.get(opening) == Some(&b'"');
    is_separator.then_some(closing + 1 + between + opening + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_joined_and_mapped_back() {
        let text = br#"run(["curl", "-u","bob:x y"], 2)"#;
        let parts = find_argument_lists(text);
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].decoded, br#""curl -u bob:x y""#);
        let at = memchr::memmem::find(&parts[0].decoded, b"bob").expect("the argument is there");
        assert_eq!(&text[parts[0].original_range(&(at..at + 7))], b"bob:x y");
        assert!(find_argument_lists(br#"{"a": "-b", "c": "-d"}"#).is_empty());
    }
}
