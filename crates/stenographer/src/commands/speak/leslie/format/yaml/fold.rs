//! Breaks long lines of YAML texts at their blanks. Widths count UTF-16 units, as leslie's library does.

/// The most characters of a line.
pub(super) const LINE_WIDTH: usize = 80;

/// The fewest characters of a text that stand on a line, however far it is indented.
const MIN_TEXT_WIDTH: usize = 20;

/// What kind of text is folded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FoldMode {
    /// A plain text, or one in single quotes.
    Flow,
    /// A block, in which lines that begin with a blank are not folded.
    Block,
    /// A text in double quotes, in which a newline can be escaped.
    Quoted,
}

/// A text whose lines are folded.
pub(super) struct FoldedText {
    pub(super) text: String,
    /// Whether a line is too long all the same.
    pub(super) overflows: bool,
}

/// UTF-16 units of a text.
pub(super) fn utf16_length(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Folds a text whose lines are indented so far; `before` are the characters on its first line before it.
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
    let mut folder = LineFolder::new(&units, mode, (indent, step));
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

/// Where a text is broken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FoldPoint {
    /// Before its first character.
    Start,
    /// At the blank at this place, which the newline replaces.
    Blank(usize),
    /// After the character at this place, by an escaped newline.
    Escaped(usize),
}

/// A text while its folds are looked for.
struct LineFolder<'a> {
    units: &'a [u16],
    mode: FoldMode,
    indent: usize,
    /// Characters of a whole line, and one.
    step: usize,
    folds: Vec<FoldPoint>,
    /// Where the line that is looked at has to end.
    end: usize,
    /// The last blank of it at which it can be broken.
    split: Option<usize>,
    overflows: bool,
    /// Where the last escape begins and ends.
    escape: Option<(usize, usize)>,
}

const NEWLINE: u16 = b'\n' as u16;
const SPACE: u16 = b' ' as u16;
const TAB: u16 = b'\t' as u16;
const BACKSLASH: u16 = b'\\' as u16;

impl<'a> LineFolder<'a> {
    fn new(units: &'a [u16], mode: FoldMode, (indent, step): (usize, usize)) -> Self {
        let end = LINE_WIDTH.saturating_sub(indent);
        let (folds, split, overflows, escape) = (Vec::new(), None, false, None);
        Self { units, mode, indent, step, folds, end, split, overflows, escape }
    }

    /// Finds the folds; nothing can be folded where an escape does not fit on a line.
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

    /// A blank between others than blanks can become a newline.
    fn note_split(&mut self, at: usize, unit: u16, previous: Option<u16>) {
        let is_space = |unit: &u16| matches!(*unit, SPACE | NEWLINE | TAB);
        let follows_text = previous.is_some_and(|previous| !is_space(&previous));
        let next = self.units.get(at + 1);
        if unit == SPACE && follows_text && next.is_some_and(|next| !is_space(next)) {
            self.split = Some(at);
        }
    }

    /// The line is full: breaks it, if it can be broken.
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
        // Blanks at the end of a line may stand beyond it.
        let mut before = self.units.get(at.wrapping_sub(1)).copied();
        while matches!(before, Some(SPACE | TAB)) && *at < self.units.len() {
            before = self.units.get(*at).copied();
            *at += 1;
        }
        *previous = before;
        // An escape is not torn apart.
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

    /// The end of the lines from `start` on that begin with a blank, beyond the indent; nothing where none does.
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

    /// The text with its folds.
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
