//! Parses the part of the syntax of regular expressions that the table of rules uses.
//!
//! All classes are of ASCII, as with `(?-u)`. What is not understood is left to a library for all expressions.

use crate::byte_set::ByteSet;

/// How often a part is repeated if there is no limit.
pub(crate) const UNLIMITED: u32 = u32::MAX;

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternNode {
    Byte(u8),
    Set(ByteSet),
    Assertion(PatternAssertion),
    Sequence(Vec<PatternNode>),
    /// The first that matches is taken.
    Alternatives(Vec<PatternNode>),
    /// A group with its number, from 1 on.
    Group(u8, Box<PatternNode>),
    Repetition {
        node: Box<PatternNode>,
        least: u32,
        most: u32,
        is_greedy: bool,
    },
}

/// What is asserted of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatternAssertion {
    TextStart,
    TextEnd,
    WordBoundary,
}

#[derive(Clone, Copy, Debug, Default)]
struct PatternFlags {
    ignores_case: bool,
    dot_is_any: bool,
}

/// Reads a pattern from left to right.
#[derive(Debug)]
struct PatternParser<'p> {
    rest: &'p [u8],
    flags: PatternFlags,
    groups: u8,
}

/// Parses a pattern. `None` if it has syntax that is not known here.
pub(crate) fn parse_pattern(pattern: &str) -> Option<PatternNode> {
    let mut parser =
        PatternParser { rest: pattern.as_bytes(), flags: PatternFlags::default(), groups: 0 };
    let node = parser.parse_alternatives()?;
    parser.rest.is_empty().then_some(node)
}

impl PatternParser<'_> {
    fn take(&mut self, expected: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn take_byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn parse_alternatives(&mut self) -> Option<PatternNode> {
        let mut alternatives = vec![self.parse_sequence()?];
        while self.take(b"|") {
            alternatives.push(self.parse_sequence()?);
        }
        let is_one = alternatives.len() == 1;
        if is_one { alternatives.pop() } else { Some(PatternNode::Alternatives(alternatives)) }
    }

    fn parse_sequence(&mut self) -> Option<PatternNode> {
        let mut nodes = Vec::new();
        while !matches!(self.rest.first(), None | Some(b'|' | b')')) {
            if let Some(node) = self.parse_atom()? {
                nodes.push(self.parse_repetition(node)?);
            }
        }
        let is_one = nodes.len() == 1;
        if is_one { nodes.pop() } else { Some(PatternNode::Sequence(nodes)) }
    }

    /// A part without its repetition. The inner `None` is for flags, which match nothing.
    fn parse_atom(&mut self) -> Option<Option<PatternNode>> {
        let node = match self.take_byte()? {
            b'(' => return self.parse_group(),
            b'[' => PatternNode::Set(self.parse_class()?),
            b'.' => {
                let mut line_breaks = ByteSet::default();
                line_breaks.insert(b'\n');
                let inner = line_breaks.complement();
                PatternNode::Set(if self.flags.dot_is_any { ByteSet::ALL } else { inner })
            }
            b'^' => PatternNode::Assertion(PatternAssertion::TextStart),
            b'$' => PatternNode::Assertion(PatternAssertion::TextEnd),
            b'\\' if self.take(b"b") => PatternNode::Assertion(PatternAssertion::WordBoundary),
            b'\\' => self.parse_escape()?,
            b'*' | b'+' | b'?' | b'{' => return None,
            byte if byte.is_ascii() => self.literal(byte),
            first => {
                // The bytes of a character are repeated together.
                let length = self.rest.iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
                let (bytes, rest) = self.rest.split_at(length);
                self.rest = rest;
                let bytes = [first].into_iter().chain(bytes.iter().copied());
                PatternNode::Sequence(bytes.map(PatternNode::Byte).collect())
            }
        };
        Some(Some(node))
    }

    fn literal(&self, byte: u8) -> PatternNode {
        if !self.flags.ignores_case || !byte.is_ascii_alphabetic() {
            return PatternNode::Byte(byte);
        }
        let mut set = ByteSet::default();
        set.insert(byte);
        set.fold_case();
        PatternNode::Set(set)
    }

    fn parse_group(&mut self) -> Option<Option<PatternNode>> {
        let outer = self.flags;
        let mut number = None;
        if self.take(b"?") {
            let mut is_on = true;
            loop {
                match self.take_byte()? {
                    b'-' => is_on = false,
                    b'i' => self.flags.ignores_case = is_on,
                    b's' => self.flags.dot_is_any = is_on,
                    b'u' if !is_on => {}
                    b':' => break,
                    b')' => return Some(None),
                    _ => return None,
                }
            }
        } else {
            self.groups += 1;
            number = Some(self.groups);
        }
        let node = self.parse_alternatives()?;
        self.flags = outer;
        if !self.take(b")") {
            return None;
        }
        Some(Some(match number {
            Some(number) => PatternNode::Group(number, Box::new(node)),
            None => node,
        }))
    }

    fn parse_repetition(&mut self, node: PatternNode) -> Option<PatternNode> {
        let (least, most) = match self.rest.first() {
            Some(b'*') => (0, UNLIMITED),
            Some(b'+') => (1, UNLIMITED),
            Some(b'?') => (0, 1),
            Some(b'{') => {
                let end = self.rest.iter().position(|byte| *byte == b'}')?;
                let (bounds, rest) = self.rest.split_at(end);
                self.rest = rest;
                parse_bounds(std::str::from_utf8(&bounds[1..]).ok()?)?
            }
            _ => return Some(node),
        };
        self.take_byte();
        let is_greedy = !self.take(b"?");
        Some(PatternNode::Repetition { node: Box::new(node), least, most, is_greedy })
    }

    /// What is after a backslash outside of classes.
    fn parse_escape(&mut self) -> Option<PatternNode> {
        let byte = self.take_byte()?;
        Some(match named_set(byte) {
            Some(set) => PatternNode::Set(set),
            None => PatternNode::Byte(escaped_byte(byte)?),
        })
    }

    /// A class, after its opening bracket.
    fn parse_class(&mut self) -> Option<ByteSet> {
        let mut set = ByteSet::default();
        let is_negated = self.take(b"^");
        let mut is_first = true;
        loop {
            let first = match self.take_byte()? {
                b']' if !is_first => break,
                b'\\' => {
                    let byte = self.take_byte()?;
                    if let Some(named) = named_set(byte) {
                        set.insert_all(&named);
                        is_first = false;
                        continue;
                    }
                    escaped_byte(byte)?
                }
                // Nested classes and operations.
                b'[' => return None,
                byte if b"&~-".contains(&byte) && self.rest.first() == Some(&byte) => return None,
                byte => byte,
            };
            is_first = false;
            let is_range = self.rest.first() == Some(&b'-') && self.rest.get(1) != Some(&b']');
            let last = match is_range {
                true => {
                    self.take_byte();
                    match self.take_byte()? {
                        b'\\' => escaped_byte(self.take_byte()?)?,
                        byte => byte,
                    }
                }
                false => first,
            };
            if !first.is_ascii() || !last.is_ascii() || first > last {
                return None;
            }
            set.insert_range(first, last);
        }
        if self.flags.ignores_case {
            set.fold_case();
        }
        Some(if is_negated { set.complement() } else { set })
    }
}

/// The bounds of `{2}`, `{2,}` or `{2,4}`.
fn parse_bounds(bounds: &str) -> Option<(u32, u32)> {
    match bounds.split_once(',') {
        None => Some((bounds.parse().ok()?, bounds.parse().ok()?)),
        Some((least, "")) => Some((least.parse().ok()?, UNLIMITED)),
        Some((least, most)) => Some((least.parse().ok()?, most.parse().ok()?)),
    }
}

/// The set that a letter after a backslash names, such as `s` for spaces.
fn named_set(letter: u8) -> Option<ByteSet> {
    let mut set = ByteSet::default();
    match letter.to_ascii_lowercase() {
        b's' => b"\t\n\x0b\x0c\r ".iter().for_each(|byte| set.insert(*byte)),
        b'd' => set.insert_range(b'0', b'9'),
        b'w' => {
            set.insert_range(b'0', b'9');
            set.insert_range(b'A', b'Z');
            set.insert_range(b'a', b'z');
            set.insert(b'_');
        }
        _ => return None,
    }
    Some(if letter.is_ascii_uppercase() { set.complement() } else { set })
}

/// The byte that is written with a backslash. `None` for letters with other meanings.
fn escaped_byte(byte: u8) -> Option<u8> {
    match byte {
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        byte if byte.is_ascii_punctuation() => Some(byte),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_syntax_is_not_parsed() {
        for pattern in [
            "a{",
            "(a",
            "a)",
            "*",
            "(?x:a)",
            "[[:alpha:]]",
            r"\pL",
            "[a-\u{e9}]",
            "[a--b]",
            "[--b]",
        ] {
            assert_eq!(parse_pattern(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn flags_end_with_their_group() {
        let parse = |pattern| parse_pattern(pattern).expect("known syntax");
        assert_eq!(parse("(?i:a)a"), parse("[aA]a"));
        assert_eq!(parse("(?i)a(?-i:a)a"), parse("[aA]a[aA]"));
        assert_eq!(parse("(?:(?s).)."), parse(r"[\s\S][^\n]"));
    }
}
