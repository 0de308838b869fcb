//! A session that is being read: where the reader is in it, what is folded, and the rows on the screen.
//!
//! Only entries near the screen are broken into rows, so that the length of a session does not matter.

mod jump;

use std::collections::HashMap;
use std::rc::Rc;

use jiff::tz::TimeZone;
use steno_core::Transcript;
use steno_core::index::Query;

use super::folds::{Folds, Group};
use super::page::{self, Row, Shape};

pub(crate) use jump::Jump;

/// How many entries are remembered as rows.
const REMEMBERED: usize = 512;

/// A row of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) entry: usize,
    pub(crate) row: usize,
}

/// An open session.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) transcript: Transcript,
    /// What is marked.
    pub(crate) find: Option<Query>,
    zone: TimeZone,
    folds: Folds,
    cursor: Spot,
    top: Spot,
    width: usize,
    height: usize,
    rows: HashMap<usize, Rc<[Row]>>,
}

impl Reader {
    pub(crate) fn new(transcript: Transcript, zone: TimeZone) -> Self {
        Self {
            transcript,
            find: None,
            zone,
            folds: Folds::default(),
            cursor: Spot::default(),
            top: Spot::default(),
            width: 1,
            height: 1,
            rows: HashMap::new(),
        }
    }

    /// Takes the size of the pane.
    pub(crate) fn resize(&mut self, (width, height): (usize, usize)) {
        if self.width != width {
            self.rows.clear();
        }
        (self.width, self.height) = (width, height.max(1));
        self.settle();
    }

    pub(crate) fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The row that the reader is at.
    pub(crate) fn cursor(&self) -> Spot {
        self.cursor
    }

    /// The rows on the screen, each with its place.
    pub(crate) fn shown(&mut self) -> Vec<(Spot, Row)> {
        let mut shown = Vec::new();
        let mut spot = (!self.transcript.entries.is_empty()).then_some(self.top);
        while let Some(at) = spot.filter(|_| shown.len() < self.height) {
            shown.push((at, self.rows(at.entry)[at.row].clone()));
            spot = self.below(at);
        }
        shown
    }

    /// Moves by some rows.
    pub(crate) fn step(&mut self, by: isize) {
        self.cursor = self.moved(self.cursor, by);
        self.settle();
    }

    /// Moves by a part of a page, the page with it.
    pub(crate) fn page(&mut self, down: bool, parts: usize) {
        let by = (self.height / parts).max(1) as isize;
        let by = if down { by } else { -by };
        self.cursor = self.moved(self.cursor, by);
        self.top = self.moved(self.top, by);
        self.settle();
    }

    /// Goes to the first row or the last.
    pub(crate) fn edge(&mut self, end: bool) {
        self.cursor = if end { self.last() } else { Spot::default() };
        self.settle();
    }

    /// Folds the entry that the reader is at, or unfolds it.
    pub(crate) fn fold(&mut self) {
        let at = self.cursor.entry;
        let folded = self.is_folded(at);
        self.folds.set(at, !folded);
        self.rows.clear();
        self.cursor.row = self.heading(at);
        self.settle();
    }

    /// Folds all tools or thoughts, or unfolds them.
    pub(crate) fn fold_all(&mut self, group: Group) {
        self.folds.toggle(group, &self.transcript.entries);
        self.rows.clear();
        self.cursor.row = self.heading(self.cursor.entry);
        self.settle();
    }

    fn is_folded(&self, at: usize) -> bool {
        self.folds.is_folded(&self.transcript.entries, at)
    }

    /// The row of an entry where its heading stands.
    fn heading(&self, at: usize) -> usize {
        usize::from(self.is_apart(at))
    }

    /// Whether there is a blank row before an entry: around those that are not folded.
    fn is_apart(&self, at: usize) -> bool {
        at > 0 && !(self.is_folded(at) && self.is_folded(at - 1))
    }

    fn rows(&mut self, at: usize) -> Rc<[Row]> {
        if let Some(rows) = self.rows.get(&at) {
            return Rc::clone(rows);
        }
        if self.rows.len() >= REMEMBERED {
            self.rows.clear();
        }
        let (folded, apart) = (self.is_folded(at), self.is_apart(at));
        let shape = Shape { width: self.width, folded, apart };
        let entry = self.transcript.entries.get(at);
        let rows: Rc<[Row]> =
            entry.map(|entry| page::rows(entry, &self.zone, shape)).unwrap_or_default().into();
        self.rows.insert(at, Rc::clone(&rows));
        rows
    }

    fn below(&mut self, spot: Spot) -> Option<Spot> {
        if spot.row + 1 < self.rows(spot.entry).len() {
            return Some(Spot { row: spot.row + 1, ..spot });
        }
        let entry = spot.entry + 1;
        (entry < self.transcript.entries.len()).then_some(Spot { entry, row: 0 })
    }

    fn above(&mut self, spot: Spot) -> Option<Spot> {
        if spot.row > 0 {
            return Some(Spot { row: spot.row - 1, ..spot });
        }
        let entry = spot.entry.checked_sub(1)?;
        Some(Spot { entry, row: self.rows(entry).len() - 1 })
    }

    /// The spot some rows further on or back, as far as there are any.
    fn moved(&mut self, mut spot: Spot, by: isize) -> Spot {
        for _ in 0..by.unsigned_abs() {
            let next = if by > 0 { self.below(spot) } else { self.above(spot) };
            match next {
                Some(next) => spot = next,
                None => break,
            }
        }
        spot
    }

    fn last(&mut self) -> Spot {
        let entry = self.transcript.entries.len().saturating_sub(1);
        Spot { entry, row: self.rows(entry).len().saturating_sub(1) }
    }

    /// Keeps the cursor on a row that is there and on the screen, and the screen full.
    fn settle(&mut self) {
        let last = self.last();
        self.cursor = self.there(self.cursor.min(last));
        self.top = self.there(self.top.min(self.cursor));
        let back = 1 - self.height as isize;
        if self.moved(self.top, -back) < self.cursor {
            self.top = self.moved(self.cursor, back);
        }
        let lowest = self.moved(last, back);
        self.top = self.top.min(lowest);
    }

    /// The spot, or the last row of its entry if it has fewer now.
    fn there(&mut self, spot: Spot) -> Spot {
        let rows = self.rows(spot.entry).len();
        Spot { row: spot.row.min(rows.saturating_sub(1)), ..spot }
    }
}
