//! Entries as HTML: the same for the page and for the file that is shared.
//!
//! What a transcript says is hostile. It reaches the page as escaped text or as Markdown without HTML, links lead to
//! the web only, and nothing is loaded from anywhere. A session may have ten thousand entries of a few words: what stands
//! around each of them is as little as possible.

pub(crate) mod diff;
mod entry;
pub(crate) mod markdown;
pub(crate) mod minimap;
pub(crate) mod note;
pub(crate) mod plain;
mod tool;

use std::ops::Range;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use maud::{Render, html};
use steno_core::Entry;
use steno_core::entry::PRIMARY;
use steno_core::vault::notes::Note;
use steno_core::view::lanes::Lanes;
use steno_core::view::pictures::Pictures;

use self::entry::Place;
pub(crate) use self::entry::is_bad;
use self::plain::clean;

/// Tool output that a page shows at once; the rest is asked for.
const SHOWN_AT_ONCE: usize = 20_000;

/// How many entries back a model's name still counts as told.
const LOOKED_BACK: usize = 20;

/// Bytes of page that an entry is expected to take.
const EXPECTED: usize = 1000;

/// How entries are shown.
#[derive(Clone, Copy)]
pub(crate) struct Show<'a> {
    /// Whose clock times are told by.
    pub(crate) zone: &'a TimeZone,
    /// The pictures of the session.
    pub(crate) pictures: &'a Pictures,
    /// Where the page asks for what it does not hold; nothing in a file, which holds all.
    pub(crate) base: Option<&'a str>,
    /// Where subagents stand.
    pub(crate) lanes: &'a Lanes,
    /// What was noted.
    pub(crate) notes: &'a [Note],
}

impl Show<'_> {
    /// The entries at some places of a session, as items of a list.
    pub(crate) fn entries(&self, all: &[Entry], places: Range<usize>) -> String {
        let mut page = String::with_capacity(places.len().min(all.len()) * EXPECTED);
        let places = places.start.min(all.len())..places.end.min(all.len());
        let at = |place: usize| &all[self.lanes.number(place)];
        let mut before = places.start.checked_sub(1).map(at);
        let mut last = before.and_then(|entry| self.wall(entry));
        for place in places {
            let entry = at(place);
            let now = self.wall(entry);
            let depth = self.lanes.depth(place);
            let above = place.checked_sub(1).map_or(0, |before| self.lanes.depth(before));
            let lane = Lane { before, entry, depth, is_back: above > depth };
            lane.breaks(&mut page, last, now);
            let earlier = (0..place).rev().take(LOOKED_BACK);
            let place = Place {
                number: self.lanes.number(place),
                depth,
                told: earlier.map(at).find_map(|entry| entry.model.as_deref()),
                time: now.filter(|now| last.is_none_or(|last| is_other_minute(last, *now))),
            };
            self.entry(&mut page, entry, &place);
            (before, last) = (Some(entry), now.or(last));
        }
        page
    }

    fn wall(&self, entry: &Entry) -> Option<DateTime> {
        entry.created_at.map(|at| at.in_zone(self.zone).wall())
    }
}

/// Whose lane an entry is in, and which entry stands before it.
struct Lane<'a> {
    before: Option<&'a Entry>,
    entry: &'a Entry,
    depth: usize,
    /// Whether whoever speaks has begun the subagent that spoke before.
    is_back: bool,
}

impl Lane<'_> {
    /// What stands before an entry: its day, and whose lane it is in, where those change.
    fn breaks(&self, page: &mut String, last: Option<DateTime>, now: Option<DateTime>) {
        let Self { before, entry, depth, is_back } = *self;
        let day = now.filter(|now| last.is_none_or(|last| last.date() != now.date()));
        let source = before.map_or(PRIMARY, |before| before.source.as_str());
        if day.is_none() && source == entry.source {
            return;
        }
        let lane = html! {
            @if let Some(day) = day {
                li.day { h2 { (day.strftime("%A, %-d %B %Y").to_string()) } }
            }
            @if source != entry.source {
                @if let Some(name) = entry.source.strip_prefix("subagent:") {
                    li class={ "lane-name lane " (colour(&entry.source)) " " (deep(depth)) } {
                        @if is_back { "Back to subagent " } @else { "Subagent " }
                        b { (clean(name)) }
                    }
                } @else if before.is_some() {
                    li.lane-name { "Back to the main agent" }
                }
            }
        };
        lane.render_to(page);
    }
}

fn is_other_minute(last: DateTime, now: DateTime) -> bool {
    (last.date(), last.hour(), last.minute()) != (now.date(), now.hour(), now.minute())
}

/// How far to the right a lane stands; very deep ones no further.
fn deep(depth: usize) -> &'static str {
    ["d1", "d2", "d3", "d4", "d5"][depth.clamp(1, 5) - 1]
}

/// One of four colours for the lane of a subagent.
fn colour(source: &str) -> &'static str {
    let sum =
        source.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    ["c0", "c1", "c2", "c3"][(sum % 4) as usize]
}

#[cfg(test)]
mod tests;
