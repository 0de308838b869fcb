//! Decides how sure it is that a session wrote a line.
//!
//! The hardest rule is "certain", which must never be wrong. All of this must hold:
//! 1. Of all sessions of the repository before the commit, one wrote the line without having seen it. Another session
//!    that wrote it into the same file, or wrote the same block anywhere, leaves it open who did.
//! 2. No session had seen the line before that. A file that was read shows text that a person may have written.
//! 3. The line is equal, byte for byte. A formatter's change leaves it likely.
//! 4. The line has several words and occurs once in the file; or it is part of a block of at least three lines that the
//!    session wrote in one piece and that occurs once in the file. `}` alone proves nothing: the nearest lines with
//!    words, above and below, must be of the same edit, and a blank line at the end of the block counts only if the
//!    edit ended there too, because somebody may have added another one.
//! 5. The edit did not fail, and the session did not remove the line again.

use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;

use super::edit_archive::EditArchive;
use super::line_text::{is_telling, is_telling_block, search_phrase, without_spaces};
use super::line_writers::{LineWriter, LineWriters, find_writers};
use super::path_edits::find_later_edits;
use super::recorded_edit::{LineChange, LineLikeness, MIN_PART_CHARS, RecordedEdit, RecordedLine};
use crate::index::IndexError;

/// How far from a line a neighbour may be that proves it.
const MAX_NEIGHBOUR_DISTANCE: usize = 40;

/// A line among the lines of its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineContext<'a> {
    pub(super) lines: &'a [String],
    /// The position of the line, from 0.
    pub(super) at: usize,
    /// The paths that the file has had.
    pub(super) paths: [&'a str; 2],
    pub(super) limits: EditTimeLimits,
}

/// When an edit can have written a line, in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct EditTimeLimits {
    /// An edit after this did not write the line.
    pub(super) until: i64,
    /// An edit after this may have changed a commit that existed before.
    pub(super) certain_until: i64,
}

/// A writer that was chosen, and the reasons.
#[derive(Clone, Debug)]
pub(super) struct JudgedLine {
    pub(super) writer: LineWriter,
    pub(super) is_certain: bool,
    pub(super) reason: String,
    rank: LikelyRank,
    /// The line that was looked up, and the lines that the edit wrote in one piece with it.
    proof: usize,
    block: Range<usize>,
}

/// Orders writers that are not certain; the greatest is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LikelyRank {
    is_certain: bool,
    likeness: LineLikeness,
    is_same_path: bool,
    is_original: bool,
    block_lines: usize,
    time: Option<i64>,
}

/// Finds the writer of a line.
pub(super) fn judge_line(
    archive: &mut EditArchive<'_>,
    context: LineContext<'_>,
) -> Result<Option<JudgedLine>, IndexError> {
    if search_phrase(context.line()).is_none() {
        return judge_by_neighbours(archive, context);
    }
    let writers = find_writers(archive, context.line(), context.limits.until)?;
    let mut best = judge_writers(archive, context, context.at, &writers)?;
    if !writers.is_complete {
        best = judge_by_neighbours(archive, context)?;
    }
    if best.is_none() {
        best = judge_similar(archive, context, &writers)?;
    }
    if best.is_none() {
        best = judge_parts(archive, context)?;
    }
    Ok(best)
}

/// Finds the writer of a line that has too few words to be looked up, such as `}`, or that too many entries have. The nearest lines above and below
/// that have enough words must be of the same edit, if it wrote them in one piece with the line.
fn judge_by_neighbours(
    archive: &mut EditArchive<'_>,
    context: LineContext<'_>,
) -> Result<Option<JudgedLine>, IndexError> {
    let mut judged = Vec::new();
    let neighbours = context.nearest_neighbours();
    for neighbour in neighbours {
        let text = &context.lines[neighbour];
        let writers = find_writers(archive, text, context.limits.until)?;
        judged.extend(judge_writers(archive, context, neighbour, &writers)?);
    }
    let best = judged.iter().max_by_key(|judged| judged.rank).cloned();
    let Some(mut best) = best else { return Ok(None) };
    let is_agreed = context.nearest_neighbours().iter().all(|neighbour| {
        let agrees = |judged: &JudgedLine| {
            judged.proof == *neighbour
                && judged.is_certain
                && judged.writer.hit.session_row == best.writer.hit.session_row
                && judged.writer.hit.number == best.writer.hit.number
        };
        !best.block.contains(neighbour) || judged.iter().any(agrees)
    });
    if best.is_certain && !is_agreed {
        best.is_certain = false;
        "a line beside it may be of somebody else".clone_into(&mut best.reason);
    }
    Ok(Some(best))
}

impl<'a> LineContext<'a> {
    fn line(&self) -> &'a str {
        &self.lines[self.at]
    }

    /// The nearest lines above and below that have enough words to be looked up.
    fn nearest_neighbours(&self) -> Vec<usize> {
        let has_words = |at: &usize| search_phrase(&self.lines[*at]).is_some();
        let first = self.at.saturating_sub(MAX_NEIGHBOUR_DISTANCE);
        let last = self.lines.len().min(self.at + 1 + MAX_NEIGHBOUR_DISTANCE);
        let above = (first..self.at).rev().find(has_words);
        let below = (self.at + 1..last).find(has_words);
        above.into_iter().chain(below).collect()
    }

    fn is_same_path(&self, writer: &LineWriter) -> bool {
        writer.path.as_deref().is_some_and(|path| self.paths.contains(&path))
    }

    /// Whether the block is nowhere else in the file.
    fn has_once(&self, block: &Range<usize>) -> bool {
        let wanted = &self.lines[block.clone()];
        self.lines.windows(wanted.len()).filter(|window| *window == wanted).count() == 1
    }

    /// Whether the line has several words and is nowhere else in the file, with whatever indentation.
    fn is_distinct(&self) -> bool {
        let line = self.line().trim();
        is_telling(line) && self.lines.iter().filter(|other| other.trim() == line).count() == 1
    }
}

/// Judges the writers of the line at `proof`, which must have written the line of the context in the same piece.
fn judge_writers(
    archive: &mut EditArchive<'_>,
    context: LineContext<'_>,
    proof: usize,
    writers: &LineWriters,
) -> Result<Option<JudgedLine>, IndexError> {
    let mut blocks = Vec::new();
    for writer in &writers.writers {
        let block = WrittenBlock::find(&writer.edit, context.lines, proof);
        blocks.extend(block.map(|block| (writer, block)));
    }
    let covers = |block: &WrittenBlock| block.lines.contains(&context.at);
    let is_block = |block: &WrittenBlock| {
        is_telling_block(context.lines[block.lines.clone()].iter().map(String::as_str))
    };
    // Many sessions write a line of few words; only a block tells them apart.
    let is_telling_line = is_telling(&context.lines[proof]);
    let is_original = |(writer, block): &&(&LineWriter, WrittenBlock)| {
        let is_in_file = is_telling_line && context.is_same_path(writer);
        !writer.is_copy && (is_in_file || is_block(block))
    };
    let originals: Vec<_> = blocks.iter().filter(is_original).collect();
    let sessions: HashSet<i64> =
        originals.iter().map(|(writer, _)| writer.hit.session_row).collect();
    let has_rival = sessions.len() != 1;
    // A session that wrote the line into several files is meant by the entry for this file.
    let of_file = originals.iter().find(|(writer, _)| context.is_same_path(writer));
    let only = if originals.len() == 1 { originals.first() } else { of_file };
    if !has_rival
        && let Some((writer, block)) = only
        && covers(block)
        && let Some(reason) = proof_of(context, proof, writer, block)
        && writers.is_complete
        && writers.first_shown.is_none_or(|shown| writer.hit.time.is_some_and(|time| time < shown))
        && writer.hit.time.is_some_and(|time| time <= context.limits.certain_until)
        && !writer.is_removed
        && let Some(writer) = last_introduction(archive, context, proof, writer)?
    {
        let rank = context.rank(&writer, block.lines.len(), true);
        let block = block.lines.clone();
        return Ok(Some(JudgedLine { writer, is_certain: true, reason, rank, proof, block }));
    }
    let is_enough = |(writer, block): &&(&LineWriter, WrittenBlock)| {
        let own_line = proof == context.at && context.is_same_path(writer);
        covers(block)
            && (own_line
                || is_block(block)
                || (block.lines.len() > 1 && context.is_same_path(writer)))
    };
    let likely = blocks.iter().filter(is_enough).map(|(writer, block)| {
        let reason = likely_reason(context, writer, has_rival, writers);
        let rank = context.rank(writer, block.lines.len(), false);
        let (writer, block) = ((*writer).clone(), block.lines.clone());
        JudgedLine { writer, is_certain: false, reason, rank, proof, block }
    });
    Ok(likely.max_by_key(|judged| judged.rank))
}

impl LineContext<'_> {
    fn likely_line(&self, writer: LineWriter, reason: String) -> JudgedLine {
        let rank = self.rank(&writer, 1, false);
        let (proof, block) = (self.at, self.at..self.at + 1);
        JudgedLine { writer, is_certain: false, reason, rank, proof, block }
    }

    fn rank(&self, writer: &LineWriter, block_lines: usize, is_certain: bool) -> LikelyRank {
        LikelyRank {
            is_certain,
            likeness: writer.likeness,
            is_same_path: self.is_same_path(writer),
            is_original: !writer.is_copy,
            block_lines,
            time: writer.hit.time,
        }
    }
}

/// Why a writer is certain, as far as the text goes.
fn proof_of(
    context: LineContext<'_>,
    proof: usize,
    writer: &LineWriter,
    block: &WrittenBlock,
) -> Option<String> {
    let lines = &context.lines[block.lines.clone()];
    let is_proven = is_telling_block(lines.iter().map(String::as_str))
        && context.has_once(&block.lines)
        && (context.is_distinct() || !block.ends_early_at(context.at));
    if is_proven {
        return Some(format!("only this session wrote this block of {} lines", lines.len()));
    }
    (proof == context.at && context.is_distinct() && context.is_same_path(writer))
        .then(|| "only this session wrote this line".to_owned())
}

fn likely_reason(
    context: LineContext<'_>,
    writer: &LineWriter,
    has_rival: bool,
    writers: &LineWriters,
) -> String {
    let time = writer.hit.time;
    let text = if writer.is_copy {
        "the session had seen the line before it wrote it"
    } else if has_rival {
        "several sessions wrote this line"
    } else if time.is_none_or(|time| time > context.limits.certain_until) {
        "the edit is newer than the commit's first version"
    } else if writers.first_shown.is_some_and(|shown| time.is_none_or(|time| shown <= time)) {
        "another session had seen the line before"
    } else if writer.is_removed {
        "the session removed the line again"
    } else if !context.is_same_path(writer) {
        "the session wrote this line into another file"
    } else {
        "the line has too few words to be sure"
    };
    text.to_owned()
}

/// Lines of a file that an edit wrote in one piece.
#[derive(Clone, Debug)]
struct WrittenBlock {
    lines: Range<usize>,
    /// Whether the edit had another line before the block than the file has, and after it. Somebody may have inserted a
    /// line there that equals its neighbour, such as a blank one.
    differs_before: bool,
    differs_after: bool,
}

impl WrittenBlock {
    /// Whether the line is at an end of the block where the file differs from the edit.
    fn ends_early_at(&self, at: usize) -> bool {
        (self.differs_before && at == self.lines.start)
            || (self.differs_after && at + 1 == self.lines.end)
    }

    /// The longest block around `at` that an edit wrote.
    fn find(edit: &RecordedEdit, lines: &[String], at: usize) -> Option<Self> {
        let runs = edit.new_runs();
        let blocks = runs.iter().flat_map(|run| {
            (0..run.len()).filter_map(|place| Self::find_at(run, place, lines, at))
        });
        blocks.max_by_key(|block| block.lines.len())
    }

    fn find_at(run: &[&RecordedLine], place: usize, lines: &[String], at: usize) -> Option<Self> {
        let is_equal =
            |own: usize, line: usize| run[own].likeness(&lines[line]) == Some(LineLikeness::Exact);
        let is_written =
            |own: usize, line: usize| run[own].change == LineChange::Added && is_equal(own, line);
        if !is_written(place, at) {
            return None;
        }
        let most = place.min(at);
        let above = (1..=most).take_while(|step| is_written(place - step, at - step)).count();
        let most = (run.len() - place).min(lines.len() - at);
        let below = (1..most).take_while(|step| is_written(place + step, at + step)).count();
        let (first, last) = (place - above, place + below);
        let (start, end) = (at - above, at + below + 1);
        let differs_before = first > 0 && (start == 0 || !is_equal(first - 1, start - 1));
        let differs_after =
            last + 1 < run.len() && (end == lines.len() || !is_equal(last + 1, end));
        Some(Self { lines: start..end, differs_before, differs_after })
    }
}

/// The edit of a session since which the line has been in the file. A session may write a file again as a whole, with
/// or without the line. `None` if the last such edit left the line out.
fn last_introduction(
    archive: &mut EditArchive<'_>,
    context: LineContext<'_>,
    proof: usize,
    writer: &LineWriter,
) -> Result<Option<LineWriter>, IndexError> {
    let Some(path) = &writer.path else { return Ok(Some(writer.clone())) };
    let line = &context.lines[proof];
    let mut current = Some(writer.clone());
    let Some(later) = find_later_edits(archive, path, &writer.hit)? else { return Ok(None) };
    for next in later {
        let is_before = next.hit.time.is_none_or(|time| time <= context.limits.until);
        if !is_before || !next.edit.is_whole_file {
            continue;
        }
        let has_line = next.edit.adds(line, LineLikeness::Exact);
        if archive.is_failed_call(next.hit.session_row, next.hit.number)? {
            continue;
        }
        current = match (current, has_line) {
            (_, false) => None,
            (None, true) => {
                let (hit, edit) = (next.hit, next.edit.into());
                Some(LineWriter { hit, edit, ..writer.clone() })
            }
            (current, true) => current,
        };
    }
    Ok(current)
}

/// Chooses an edit that wrote the line with other white space, or as a part of another line.
fn judge_similar(
    archive: &mut EditArchive<'_>,
    context: LineContext<'_>,
    writers: &LineWriters,
) -> Result<Option<JudgedLine>, IndexError> {
    let fits = |writer: &&LineWriter| context.is_same_path(writer) || is_telling(context.line());
    let mut similar: Vec<_> = writers.similar.iter().filter(fits).collect();
    similar.sort_by_key(|writer| context.rank(writer, 1, false));
    while let Some(writer) = similar.pop() {
        if archive.is_failed_call(writer.hit.session_row, writer.hit.number)? {
            continue;
        }
        let reason = match writer.likeness {
            LineLikeness::Part => "the session wrote a line with the same text and more",
            _ => "the session wrote this line with other white space",
        };
        let (writer, reason) = (writer.clone(), reason.to_owned());
        return Ok(Some(context.likely_line(writer, reason)));
    }
    Ok(None)
}

/// Chooses the newest edit of the file that wrote a part of the line.
fn judge_parts(
    archive: &mut EditArchive<'_>,
    context: LineContext<'_>,
) -> Result<Option<JudgedLine>, IndexError> {
    if without_spaces(context.line()).len() < MIN_PART_CHARS {
        return Ok(None);
    }
    for path in context.paths {
        for found in archive.recent_edits(path)?.iter().rev() {
            let is_before = found.hit.time.is_none_or(|time| time <= context.limits.until);
            if !is_before
                || !found.edit.adds(context.line(), LineLikeness::Part)
                || archive.is_failed_call(found.hit.session_row, found.hit.number)?
            {
                continue;
            }
            let writer = LineWriter {
                hit: found.hit.clone(),
                session: Rc::clone(&found.session),
                edit: found.edit.clone().into(),
                likeness: LineLikeness::Part,
                is_copy: false,
                is_removed: false,
                path: Some(path.to_owned()),
            };
            let reason = "the session wrote a part of this line".to_owned();
            return Ok(Some(context.likely_line(writer, reason)));
        }
    }
    Ok(None)
}
