//! Folds long lines of YAML text at spaces. Widths count UTF-16 units, as leslie's library does.

/// Maximum width of a line.
pub(super) const LINE_WIDTH: usize = 80;

/// Minimum width of text on a line, at any indent.
const MIN_TEXT_WIDTH: usize = 20;

/// Kind of text to fold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FoldMode {
    /// A plain or single-quoted text.
    Flow,
    /// A block, in which lines that start with a space are not folded.
    Block,
    /// A double-quoted text, in which a newline can be escaped.
    Quoted,
}

/// A folded text.
pub(super) struct FoldedText {
    pub(super) text: String,
    /// Whether a line is still too long.
    pub(super) overflows: bool,
}

/// Returns the length in UTF-16 units.
pub(super) fn utf16_length(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Folds a text at an indent. `before` is the number of characters on its first line before it.
pub(super) fn fold_text(
    text: &str,
    indent: usize,
    mode: FoldMode,
    before: Option<usize>,
) -> FoldedText {
    let units: Vec<u16> = text.encode_utf16().collect();
    let step = (1 + MIN_TEXT_WIDTH).max((1 + LINE_WIDTH).saturating_sub(indent));
    if units.len() <= step {
        return FoldedText { text: text.to_owned(), overflows: false };
    }
    let mut folder = LineFolder::new(&units, mode, indent, step);
    match before {
        Some(before) if before > LINE_WIDTH - MIN_TEXT_WIDTH => folder.folds.push(FoldPoint::Start),
        Some(before) => folder.end = LINE_WIDTH - before,
        None => {}
    }
    if !folder.find_folds() {
        return FoldedText { text: text.to_owned(), overflows: false };
    }
    FoldedText { text: folder.apply_folds(), overflows: folder.overflows }
}

/// A point where a text is folded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FoldPoint {
    /// Before the first character.
    Start,
    /// At the space at this offset, which the newline replaces.
    Blank(usize),
    /// After the character at this offset, with an escaped newline.
    Escaped(usize),
}

/// State of the search for fold points.
struct LineFolder<'a> {
    units: &'a [u16],
    mode: FoldMode,
    indent: usize,
    /// Width of a whole line, plus one.
    step: usize,
    folds: Vec<FoldPoint>,
    /// Offset at which the current line must end.
    end: usize,
    /// Offset of the last space at which the current line can be folded.
    split: Option<usize>,
    overflows: bool,
    /// Start and end offset of the last escape.
    escape: Option<(usize, usize)>,
}

const NEWLINE: u16 = b'\n' as u16;
const SPACE: u16 = b' ' as u16;
const TAB: u16 = b'\t' as u16;
const BACKSLASH: u16 = b'\\' as u16;

impl<'a> LineFolder<'a> {
    fn new(units: &'a [u16], mode: FoldMode, indent: usize, step: usize) -> Self {
        let end = LINE_WIDTH.saturating_sub(indent);
        let (folds, split, overflows, escape) = (Vec::new(), None, false, None);
        Self { units, mode, indent, step, folds, end, split, overflows, escape }
    }

    /// Finds the fold points. Returns false if an escape does not fit on a line; the text is not folded then.
    fn find_folds(&mut self) -> bool {
        let mut at = 0;
        if self.mode == FoldMode::Block
            && let Some(last) = self.skip_indented_lines(0)
        {
            self.end = last + self.step;
            at = last + 1;
        }
        let mut previous = None;
        while let Some(&unit) = self.units.get(at) {
            if self.mode == FoldMode::Quoted && unit == BACKSLASH {
                let begin = at;
                at += self.escape_length(at) - 1;
                self.escape = Some((begin, at));
            }
            if unit == NEWLINE {
                if self.mode == FoldMode::Block {
                    at = self.skip_indented_lines(at + 1).unwrap_or(at);
                }
                (self.end, self.split) = (at + self.indent + self.step, None);
                previous = Some(NEWLINE);
            } else {
                self.note_split(at, unit, previous);
                previous = Some(unit);
                if at >= self.end && !self.end_line(&mut at, &mut previous) {
                    return false;
                }
            }
            at += 1;
        }
        true
    }

    /// Notes a single space between text as a possible fold point.
    fn note_split(&mut self, at: usize, unit: u16, previous: Option<u16>) {
        let is_space = |unit: &u16| matches!(*unit, SPACE | NEWLINE | TAB);
        let follows_text = previous.is_some_and(|previous| !is_space(&previous));
        let next = self.units.get(at + 1);
        if unit == SPACE && follows_text && next.is_some_and(|next| !is_space(next)) {
            self.split = Some(at);
        }
    }

    /// Folds a full line, if possible.
    fn end_line(&mut self, at: &mut usize, previous: &mut Option<u16>) -> bool {
        if let Some(split) = self.split.take() {
            self.folds.push(FoldPoint::Blank(split));
            self.end = split + self.step;
            return true;
        }
        if self.mode != FoldMode::Quoted {
            self.overflows = true;
            return true;
        }
        // Spaces at the end of a line may exceed the width.
        let mut before = self.units.get(at.wrapping_sub(1)).copied();
        while matches!(before, Some(SPACE | TAB)) && *at < self.units.len() {
            before = self.units.get(*at).copied();
            *at += 1;
        }
        *previous = before;
        // An escape is never split.
        let last = match self.escape {
            Some((begin, end)) if *at <= end + 1 => begin.saturating_sub(1),
            _ => at.saturating_sub(2),
        };
        if self.folds.contains(&FoldPoint::Escaped(last)) {
            return false;
        }
        self.folds.push(FoldPoint::Escaped(last));
        self.end = last + self.step;
        true
    }

    /// Returns the end of the lines from `start` on that are indented further; `None` if there are none.
    fn skip_indented_lines(&self, start: usize) -> Option<usize> {
        let (mut start, mut last) = (start, None);
        loop {
            let text = start + self.indent;
            let is_blank = |unit: &u16| matches!(*unit, SPACE | TAB);
            if !self.units.get(start..=text).is_some_and(|lead| lead.iter().all(is_blank)) {
                return last;
            }
            let rest = &self.units[text..];
            let end = rest.iter().position(|unit| *unit == NEWLINE);
            let end = text + end.unwrap_or(rest.len());
            last = Some(end);
            start = end + 1;
        }
    }

    fn escape_length(&self, at: usize) -> usize {
        match self.units.get(at + 1).and_then(|unit| u8::try_from(*unit).ok()) {
            Some(b'x') => 4,
            Some(b'u') => 6,
            Some(b'U') => 10,
            _ => 2,
        }
    }

    /// Returns the text with its folds.
    fn apply_folds(&self) -> String {
        let newline: Vec<u16> =
            std::iter::once(NEWLINE).chain(std::iter::repeat_n(SPACE, self.indent)).collect();
        let mut out = Vec::new();
        let mut begin = 0;
        for fold in &self.folds {
            match *fold {
                FoldPoint::Start => {}
                FoldPoint::Blank(at) => {
                    out.extend_from_slice(&self.units[begin..at]);
                    begin = at + 1;
                }
                FoldPoint::Escaped(at) => {
                    out.extend_from_slice(&self.units[begin..=at]);
                    out.push(BACKSLASH);
                    begin = at + 1;
                }
            }
            out.extend_from_slice(&newline);
        }
        out.extend_from_slice(&self.units[begin..]);
        String::from_utf16_lossy(&out)
    }
}
