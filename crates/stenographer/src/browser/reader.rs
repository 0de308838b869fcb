//! An open session: the cursor, the folds and the visible rows.
//!
//! Only entries near the screen are laid out, so the cost does not depend on the session's length.

mod jump;

use std::collections::HashMap;
use std::rc::Rc;

use jiff::tz::TimeZone;
use steno_model::{SessionStatus, Transcript};
use steno_store::index::SearchQuery;

use super::entry_folds::{EntryFolds, FoldGroup};
use super::entry_rows::{self, EntryLayout, ScreenRow};

pub(crate) use jump::JumpTarget;

/// Limit of entries with cached rows.
const MAX_CACHED_ENTRIES: usize = 512;

/// A row of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowPosition {
    pub(crate) entry: usize,
    pub(crate) row: usize,
}

/// An open session.
#[derive(Debug)]
pub(crate) struct SessionReader {
    pub(crate) transcript: Transcript,
    /// Query with marked matches.
    pub(crate) find: Option<SearchQuery>,
    /// Whether the session may get new entries.
    pub(crate) is_running: bool,
    /// Stored size of the session when it was read, once it is known.
    pub(crate) stored_size: Option<u64>,
    zone: TimeZone,
    folds: EntryFolds,
    cursor: RowPosition,
    top: RowPosition,
    width: usize,
    height: usize,
    row_cache: HashMap<usize, Rc<[ScreenRow]>>,
}

impl SessionReader {
    pub(crate) fn new(transcript: Transcript, zone: TimeZone) -> Self {
        Self {
            is_running: transcript.session.status == SessionStatus::Running,
            stored_size: None,
            transcript,
            find: None,
            zone,
            folds: EntryFolds::default(),
            cursor: RowPosition::default(),
            top: RowPosition::default(),
            width: 1,
            height: 1,
            row_cache: HashMap::new(),
        }
    }

    /// Sets the size of the pane.
    pub(crate) fn resize(&mut self, width: usize, height: usize) {
        if self.width != width {
            self.row_cache.clear();
        }
        (self.width, self.height) = (width, height.max(1));
        self.clamp_cursor();
    }

    /// Replaces the session by a later state of it. A cursor at the end stays there. Returns how many entries are new.
    pub(crate) fn update_transcript(&mut self, transcript: Transcript) -> usize {
        let was_at_end = self.is_at_end();
        let added = transcript.entries.len().saturating_sub(self.transcript.entries.len());
        self.is_running = transcript.session.status == SessionStatus::Running;
        self.transcript = transcript;
        self.row_cache.clear();
        if was_at_end && added > 0 {
            self.cursor = self.last_row();
        }
        self.clamp_cursor();
        added
    }

    /// Whether the cursor is in the last entry.
    pub(crate) fn is_at_end(&self) -> bool {
        self.cursor.entry + 1 >= self.transcript.entries.len()
    }

    pub(crate) fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Returns the cursor.
    pub(crate) fn cursor(&self) -> RowPosition {
        self.cursor
    }

    /// Returns the visible rows with their positions.
    pub(crate) fn visible_rows(&mut self) -> Vec<(RowPosition, ScreenRow)> {
        let mut shown = Vec::new();
        let mut spot = (!self.transcript.entries.is_empty()).then_some(self.top);
        while let Some(at) = spot.filter(|_| shown.len() < self.height) {
            shown.push((at, self.entry_rows(at.entry)[at.row].clone()));
            spot = self.row_below(at);
        }
        shown
    }

    /// Moves the cursor by rows.
    pub(crate) fn move_by(&mut self, by: isize) {
        self.cursor = self.offset_position(self.cursor, by);
        self.clamp_cursor();
    }

    /// Scrolls by a fraction of a page.
    pub(crate) fn move_page(&mut self, down: bool, parts: usize) {
        let by = (self.height / parts).max(1) as isize;
        let by = if down { by } else { -by };
        self.cursor = self.offset_position(self.cursor, by);
        self.top = self.offset_position(self.top, by);
        self.clamp_cursor();
    }

    /// Moves to the first or last row.
    pub(crate) fn move_to_edge(&mut self, end: bool) {
        self.cursor = if end { self.last_row() } else { RowPosition::default() };
        self.clamp_cursor();
    }

    /// Folds or unfolds the entry at the cursor.
    pub(crate) fn toggle_fold(&mut self) {
        let at = self.cursor.entry;
        let folded = self.is_folded(at);
        self.folds.set_folded(at, !folded);
        self.row_cache.clear();
        self.cursor.row = self.heading_row(at);
        self.clamp_cursor();
    }

    /// Folds or unfolds all tools or all thoughts.
    pub(crate) fn toggle_group(&mut self, group: FoldGroup) {
        self.folds.toggle_group(group, &self.transcript.entries);
        self.row_cache.clear();
        self.cursor.row = self.heading_row(self.cursor.entry);
        self.clamp_cursor();
    }

    fn is_folded(&self, at: usize) -> bool {
        self.folds.is_folded(&self.transcript.entries, at)
    }

    /// Returns the row index of an entry's caption.
    fn heading_row(&self, at: usize) -> usize {
        usize::from(self.is_apart(at))
    }

    /// Returns whether a blank row precedes an entry: only two folded entries have none between them.
    fn is_apart(&self, at: usize) -> bool {
        at > 0 && !(self.is_folded(at) && self.is_folded(at - 1))
    }

    fn entry_rows(&mut self, at: usize) -> Rc<[ScreenRow]> {
        if let Some(rows) = self.row_cache.get(&at) {
            return Rc::clone(rows);
        }
        if self.row_cache.len() >= MAX_CACHED_ENTRIES {
            self.row_cache.clear();
        }
        let (is_folded, is_apart) = (self.is_folded(at), self.is_apart(at));
        let layout = EntryLayout { width: self.width, is_folded, is_apart };
        let entry = self.transcript.entries.get(at);
        let rows: Rc<[ScreenRow]> = entry
            .map(|entry| entry_rows::layout_entry(entry, &self.zone, layout))
            .unwrap_or_default()
            .into();
        self.row_cache.insert(at, Rc::clone(&rows));
        rows
    }

    fn row_below(&mut self, spot: RowPosition) -> Option<RowPosition> {
        if spot.row + 1 < self.entry_rows(spot.entry).len() {
            return Some(RowPosition { row: spot.row + 1, ..spot });
        }
        let entry = spot.entry + 1;
        (entry < self.transcript.entries.len()).then_some(RowPosition { entry, row: 0 })
    }

    fn row_above(&mut self, spot: RowPosition) -> Option<RowPosition> {
        if spot.row > 0 {
            return Some(RowPosition { row: spot.row - 1, ..spot });
        }
        let entry = spot.entry.checked_sub(1)?;
        Some(RowPosition { entry, row: self.entry_rows(entry).len() - 1 })
    }

    /// Returns the position some rows below or above, within the session.
    fn offset_position(&mut self, mut spot: RowPosition, by: isize) -> RowPosition {
        for _ in 0..by.unsigned_abs() {
            let next = if by > 0 { self.row_below(spot) } else { self.row_above(spot) };
            match next {
                Some(next) => spot = next,
                None => break,
            }
        }
        spot
    }

    fn last_row(&mut self) -> RowPosition {
        let entry = self.transcript.entries.len().saturating_sub(1);
        RowPosition { entry, row: self.entry_rows(entry).len().saturating_sub(1) }
    }

    /// Moves the cursor to an existing row and scrolls so that it is visible and the screen is full.
    fn clamp_cursor(&mut self) {
        let last = self.last_row();
        self.cursor = self.clamp_row(self.cursor.min(last));
        self.top = self.clamp_row(self.top.min(self.cursor));
        let back = 1 - self.height as isize;
        if self.offset_position(self.top, -back) < self.cursor {
            self.top = self.offset_position(self.cursor, back);
        }
        let lowest = self.offset_position(last, back);
        self.top = self.top.min(lowest);
    }

    /// Limits a position to the rows of its entry.
    fn clamp_row(&mut self, spot: RowPosition) -> RowPosition {
        let rows = self.entry_rows(spot.entry).len();
        RowPosition { row: spot.row.min(rows.saturating_sub(1)), ..spot }
    }
}
