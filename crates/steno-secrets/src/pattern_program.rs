//! Matches a pattern in a short text by trying one alternative after the other.
//!
//! A rule is mostly applied to a few windows of some hundred bytes. The automata of a library take longer to build than
//! these windows to search. A search that takes too many steps is given up, and left to the library.

use std::ops::Range;

use crate::byte_set::ByteSet;
use crate::pattern_parser::{PatternAssertion, PatternNode, UNLIMITED, parse_pattern};

/// How many offsets the groups of a pattern have, two each. The first group is the whole match.
pub(crate) const MAX_OFFSETS: usize = 16;

/// Larger programs are not made.
const MAX_STEPS: usize = 4000;

/// How many alternatives of a search are tried, and how many more for each byte.
const MIN_ATTEMPTS: usize = 4000;
const ATTEMPTS_PER_BYTE: usize = 16;

/// How many alternatives are open at once. Each takes some stack.
const MAX_DEPTH: usize = 1000;

/// The offsets of all groups.
pub(crate) type GroupOffsets = [Option<usize>; MAX_OFFSETS];

/// A pattern, prepared for matching.
#[derive(Debug)]
pub(crate) struct PatternProgram {
    steps: Vec<ProgramStep>,
    /// The bytes with which a match may start.
    firsts: ByteSet,
}

#[derive(Clone, Copy, Debug)]
enum ProgramStep {
    Byte(u8),
    Set(ByteSet),
    /// As many bytes of a set as possible, or as few.
    Run {
        set: ByteSet,
        least: u32,
        most: u32,
        is_greedy: bool,
    },
    Assertion(PatternAssertion),
    /// Goes on at the first step, or else at the second.
    Split(usize, usize),
    Jump(usize),
    /// Keeps the offset of the start or the end of a group.
    Save(usize),
    Match,
}

/// A search that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SearchTooLong;

impl PatternProgram {
    /// `None` if the pattern has syntax that is not known here, or is too large.
    pub(crate) fn new(pattern: &str) -> Option<Self> {
        let mut program = Self { steps: Vec::new(), firsts: ByteSet::default() };
        program.push_node(&parse_pattern(pattern)?)?;
        program.steps.push(ProgramStep::Match);
        let mut firsts = ByteSet::default();
        program.add_firsts(0, &mut vec![false; program.steps.len()], &mut firsts);
        program.firsts = firsts;
        Some(program)
    }

    /// The groups of the match that starts at an offset.
    pub(crate) fn match_at(
        &self,
        text: &[u8],
        start: usize,
    ) -> Result<Option<GroupOffsets>, SearchTooLong> {
        MatchAttempt::new(self, text, start).match_from(start)
    }

    /// The groups of the first match from an offset on.
    pub(crate) fn search(
        &self,
        text: &[u8],
        start: usize,
    ) -> Result<Option<GroupOffsets>, SearchTooLong> {
        let mut attempt = MatchAttempt::new(self, text, start);
        for at in start..=text.len() {
            if text.get(at).is_some_and(|byte| !self.firsts.contains(*byte)) {
                continue;
            }
            if let Some(offsets) = attempt.match_from(at)? {
                return Ok(Some(offsets));
            }
        }
        Ok(None)
    }

    fn push(&mut self, step: ProgramStep) -> Option<usize> {
        self.steps.push(step);
        (self.steps.len() < MAX_STEPS).then_some(self.steps.len() - 1)
    }

    fn push_node(&mut self, node: &PatternNode) -> Option<()> {
        match node {
            PatternNode::Byte(byte) => drop(self.push(ProgramStep::Byte(*byte))?),
            PatternNode::Set(set) => drop(self.push(ProgramStep::Set(*set))?),
            PatternNode::Assertion(assertion) => {
                self.push(ProgramStep::Assertion(*assertion))?;
            }
            PatternNode::Sequence(nodes) => {
                return nodes.iter().try_for_each(|node| self.push_node(node));
            }
            PatternNode::Alternatives(nodes) => return self.push_alternatives(nodes),
            PatternNode::Group(number, node) => {
                let slot = usize::from(*number) * 2;
                if slot + 1 >= MAX_OFFSETS {
                    return None;
                }
                self.push(ProgramStep::Save(slot))?;
                self.push_node(node)?;
                self.push(ProgramStep::Save(slot + 1))?;
            }
            PatternNode::Repetition { node, least, most, is_greedy } => {
                let (least, most, is_greedy) = (*least, *most, *is_greedy);
                let set = match **node {
                    PatternNode::Set(set) => set,
                    PatternNode::Byte(byte) => {
                        let mut set = ByteSet::default();
                        set.insert(byte);
                        set
                    }
                    _ => return self.push_repetition(node, (least, most), is_greedy),
                };
                self.push(ProgramStep::Run { set, least, most, is_greedy })?;
            }
        }
        Some(())
    }

    fn push_alternatives(&mut self, nodes: &[PatternNode]) -> Option<()> {
        let (last, others) = nodes.split_last()?;
        let mut jumps = Vec::new();
        for node in others {
            let split = self.push(ProgramStep::Split(0, 0))?;
            self.push_node(node)?;
            jumps.push(self.push(ProgramStep::Jump(0))?);
            self.steps[split] = ProgramStep::Split(split + 1, self.steps.len());
        }
        self.push_node(last)?;
        for jump in jumps {
            self.steps[jump] = ProgramStep::Jump(self.steps.len());
        }
        Some(())
    }

    /// Repeats several steps: those that must be there, and those that may.
    fn push_repetition(
        &mut self,
        node: &PatternNode,
        (least, most): (u32, u32),
        is_greedy: bool,
    ) -> Option<()> {
        let split_to = |inner: usize, end: usize| match is_greedy {
            true => ProgramStep::Split(inner, end),
            false => ProgramStep::Split(end, inner),
        };
        (0..least).try_for_each(|_| self.push_node(node))?;
        if most == UNLIMITED {
            let split = self.push(ProgramStep::Split(0, 0))?;
            self.push_node(node)?;
            self.push(ProgramStep::Jump(split))?;
            self.steps[split] = split_to(split + 1, self.steps.len());
            return Some(());
        }
        let mut splits = Vec::new();
        for _ in least..most {
            splits.push(self.push(ProgramStep::Split(0, 0))?);
            self.push_node(node)?;
        }
        for split in splits {
            self.steps[split] = split_to(split + 1, self.steps.len());
        }
        Some(())
    }

    /// Adds the bytes with which what starts at a step may start.
    fn add_firsts(&self, step: usize, seen: &mut Vec<bool>, firsts: &mut ByteSet) {
        if std::mem::replace(&mut seen[step], true) {
            return;
        }
        match &self.steps[step] {
            ProgramStep::Byte(byte) => firsts.insert(*byte),
            ProgramStep::Set(set) => firsts.insert_all(set),
            ProgramStep::Run { set, least, .. } => {
                firsts.insert_all(set);
                if *least == 0 {
                    self.add_firsts(step + 1, seen, firsts);
                }
            }
            ProgramStep::Assertion(_) | ProgramStep::Save(_) => {
                self.add_firsts(step + 1, seen, firsts);
            }
            ProgramStep::Split(first, second) => {
                self.add_firsts(*first, seen, firsts);
                self.add_firsts(*second, seen, firsts);
            }
            ProgramStep::Jump(to) => self.add_firsts(*to, seen, firsts),
            ProgramStep::Match => firsts.insert_all(&ByteSet::ALL),
        }
    }
}

/// A search in one text.
struct MatchAttempt<'a> {
    steps: &'a [ProgramStep],
    text: &'a [u8],
    offsets: GroupOffsets,
    /// How many alternatives are left.
    attempts: usize,
    depth: usize,
}

impl<'a> MatchAttempt<'a> {
    fn new(program: &'a PatternProgram, text: &'a [u8], start: usize) -> Self {
        let bytes = text.len().saturating_sub(start);
        Self {
            steps: &program.steps,
            text,
            offsets: [None; MAX_OFFSETS],
            attempts: MIN_ATTEMPTS + ATTEMPTS_PER_BYTE * bytes,
            depth: 0,
        }
    }

    fn match_from(&mut self, start: usize) -> Result<Option<GroupOffsets>, SearchTooLong> {
        self.offsets = [None; MAX_OFFSETS];
        self.offsets[0] = Some(start);
        Ok(self.run(0, start)?.then_some(self.offsets))
    }

    /// Whether the rest of the program matches at an offset.
    fn run(&mut self, step: usize, at: usize) -> Result<bool, SearchTooLong> {
        if self.attempts == 0 || self.depth == MAX_DEPTH {
            return Err(SearchTooLong);
        }
        self.attempts -= 1;
        self.depth += 1;
        let is_match = self.run_steps(step, at);
        self.depth -= 1;
        is_match
    }

    fn run_steps(&mut self, mut step: usize, mut at: usize) -> Result<bool, SearchTooLong> {
        loop {
            match &self.steps[step] {
                ProgramStep::Byte(_) | ProgramStep::Set(_) => {
                    if !self.may_start(step, at) {
                        return Ok(false);
                    }
                    (step, at) = (step + 1, at + 1);
                }
                ProgramStep::Run { set, least, most, is_greedy } => {
                    let (least, most) = (*least as usize, *most as usize);
                    let rest = self.text.get(at..).unwrap_or_default().iter().take(most);
                    if !is_greedy {
                        return self.run_lazy(step, at);
                    }
                    let length = rest.take_while(|byte| set.contains(**byte)).count();
                    if length < least {
                        return Ok(false);
                    }
                    for length in (least + 1..=length).rev() {
                        if self.may_start(step + 1, at + length)
                            && self.run(step + 1, at + length)?
                        {
                            return Ok(true);
                        }
                    }
                    (step, at) = (step + 1, at + least);
                }
                ProgramStep::Assertion(assertion) => {
                    if !self.holds(*assertion, at) {
                        return Ok(false);
                    }
                    step += 1;
                }
                ProgramStep::Split(first, second) => {
                    let (first, second) = (*first, *second);
                    if self.may_start(first, at) && self.run(first, at)? {
                        return Ok(true);
                    }
                    step = second;
                }
                ProgramStep::Jump(to) => step = *to,
                ProgramStep::Save(slot) => {
                    let slot = *slot;
                    let before = self.offsets[slot].replace(at);
                    let is_match = self.run(step + 1, at)?;
                    if !is_match {
                        self.offsets[slot] = before;
                    }
                    return Ok(is_match);
                }
                ProgramStep::Match => {
                    self.offsets[1] = Some(at);
                    return Ok(true);
                }
            }
        }
    }

    /// Matches as few bytes of a run as possible before the rest.
    fn run_lazy(&mut self, step: usize, at: usize) -> Result<bool, SearchTooLong> {
        let ProgramStep::Run { set, least, most, .. } = self.steps[step] else { return Ok(false) };
        let mut length = 0;
        loop {
            if length >= least as usize
                && self.may_start(step + 1, at + length)
                && self.run(step + 1, at + length)?
            {
                return Ok(true);
            }
            let next = self.text.get(at + length);
            if length == most as usize || !next.is_some_and(|byte| set.contains(*byte)) {
                return Ok(false);
            }
            length += 1;
        }
    }

    /// Whether one step may match at an offset: decides most without another attempt.
    fn may_start(&self, step: usize, at: usize) -> bool {
        match &self.steps[step] {
            ProgramStep::Byte(byte) => self.text.get(at) == Some(byte),
            ProgramStep::Set(set) => self.text.get(at).is_some_and(|byte| set.contains(*byte)),
            ProgramStep::Run { set, least: 1.., .. } => {
                self.text.get(at).is_some_and(|byte| set.contains(*byte))
            }
            _ => true,
        }
    }

    fn holds(&self, assertion: PatternAssertion, at: usize) -> bool {
        let is_word = |at: Option<usize>| {
            let byte = at.and_then(|at| self.text.get(at));
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        };
        match assertion {
            PatternAssertion::TextStart => at == 0,
            PatternAssertion::TextEnd => at == self.text.len(),
            PatternAssertion::WordBoundary => is_word(at.checked_sub(1)) != is_word(Some(at)),
        }
    }
}

/// The range of a group.
pub(crate) fn group_range(offsets: &GroupOffsets, group: usize) -> Option<Range<usize>> {
    Some(offsets[group * 2]?..offsets[group * 2 + 1]?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(pattern: &str, text: &str) -> Vec<Option<Range<usize>>> {
        let program = PatternProgram::new(pattern).expect("known syntax");
        let offsets = program.search(text.as_bytes(), 0).expect("a short search");
        let count = if offsets.is_some() { 3 } else { 0 };
        (0..count).map(|group| group_range(&offsets.unwrap_or_default(), group)).collect()
    }

    #[test]
    fn the_first_alternative_and_the_longest_run_are_taken() {
        assert_eq!(groups("a+(b|bc)(c?)", "xaabc"), [Some(1..5), Some(3..4), Some(4..5)]);
        assert_eq!(groups("a+?(a|b)()", "xaab"), [Some(1..3), Some(2..3), Some(3..3)]);
        assert_eq!(groups("(?:(a)|b){2,3}(c)", "abbc"), [Some(0..4), Some(0..1), Some(3..4)]);
        assert_eq!(groups("(?:ab){2,}?(c)?(ab)?", "ababab"), [Some(0..6), None, Some(4..6)]);
        assert!(groups(r"\bb|^b|b$", "abc").is_empty());
    }

    #[test]
    fn a_search_with_too_many_alternatives_is_given_up() {
        let program = PatternProgram::new("(?:(?:a|aa)+)+b").expect("known syntax");
        assert_eq!(program.search("a".repeat(40).as_bytes(), 0), Err(SearchTooLong));
        let program = PatternProgram::new("(?:ab|c)*d").expect("known syntax");
        assert_eq!(program.search("ab".repeat(MAX_DEPTH).as_bytes(), 0), Err(SearchTooLong));
        let program = PatternProgram::new("(?:a*)*b").expect("known syntax");
        assert_eq!(program.match_at(b"c", 0), Err(SearchTooLong));
    }
}
