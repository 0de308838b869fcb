//! Renders entries as HTML, for the pages and for exported files.
//!
//! Transcripts are untrusted. Their text is escaped, or rendered as Markdown without HTML. Links lead to the web only,
//! and nothing is loaded from elsewhere. A session may have ten thousand short entries, so the markup around each one
//! is minimal.

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
use steno_model::Entry;
use steno_model::entry::PRIMARY_SOURCE;
use steno_store::view::lanes::SubagentLanes;
use steno_store::view::pictures::SessionPictures;
use steno_vault::notes::Note;

use self::entry::EntryPlace;
pub(crate) use self::entry::is_error_entry;
use self::plain::clean_text;

/// How much tool output a page contains; the rest is requested on demand.
const MAX_INLINE_BYTES: usize = 20_000;

/// How many entries back the model's name counts as known to the reader.
const MODEL_LOOKBACK: usize = 20;

/// The expected HTML size of an entry, in bytes.
const ENTRY_BYTES_ESTIMATE: usize = 1000;

/// Renders the entries of a session.
#[derive(Clone, Copy)]
pub(crate) struct EntryRenderer<'a> {
    /// The time zone of displayed times.
    pub(crate) zone: &'a TimeZone,
    /// The pictures of the session.
    pub(crate) pictures: &'a SessionPictures,
    /// The address where the page requests more; `None` in an exported file, which contains everything.
    pub(crate) base: Option<&'a str>,
    /// The order and depth of subagents' entries.
    pub(crate) lanes: &'a SubagentLanes,
    /// The notes of the session.
    pub(crate) notes: &'a [Note],
}

impl EntryRenderer<'_> {
    /// Renders the entries at some positions, as items of a list.
    pub(crate) fn render_entries(&self, all: &[Entry], places: Range<usize>) -> String {
        let mut page = String::with_capacity(places.len().min(all.len()) * ENTRY_BYTES_ESTIMATE);
        let places = places.start.min(all.len())..places.end.min(all.len());
        let at = |place: usize| &all[self.lanes.number_at(place)];
        let mut before = places.start.checked_sub(1).map(at);
        let mut last = before.and_then(|entry| self.wall_time(entry));
        for place in places {
            let entry = at(place);
            let now = self.wall_time(entry);
            let depth = self.lanes.depth_at(place);
            let above = place.checked_sub(1).map_or(0, |before| self.lanes.depth_at(before));
            let lane = LaneChange { before, entry, depth, is_back: above > depth };
            lane.render_breaks(&mut page, last, now);
            let earlier = (0..place).rev().take(MODEL_LOOKBACK);
            let place = EntryPlace {
                number: self.lanes.number_at(place),
                depth,
                last_model: earlier.map(at).find_map(|entry| entry.model.as_deref()),
                time: now.filter(|now| last.is_none_or(|last| is_other_minute(last, *now))),
            };
            self.render_entry(&mut page, entry, &place);
            (before, last) = (Some(entry), now.or(last));
        }
        page
    }

    fn wall_time(&self, entry: &Entry) -> Option<DateTime> {
        entry.created_at.map(|at| at.in_zone(self.zone).wall())
    }
}

/// An entry, and the one before it.
struct LaneChange<'a> {
    before: Option<&'a Entry>,
    entry: &'a Entry,
    depth: usize,
    /// Whether a subagent has ended, and the agent that started it continues.
    is_back: bool,
}

impl LaneChange<'_> {
    /// Renders the date and the name of the agent, where they change.
    fn render_breaks(&self, page: &mut String, last: Option<DateTime>, now: Option<DateTime>) {
        let Self { before, entry, depth, is_back } = *self;
        let day = now.filter(|now| last.is_none_or(|last| last.date() != now.date()));
        let source = before.map_or(PRIMARY_SOURCE, |before| before.source.as_str());
        if day.is_none() && source == entry.source {
            return;
        }
        let lane = html! {
            @if let Some(day) = day {
                li.day { h2 { (day.strftime("%A, %-d %B %Y").to_string()) } }
            }
            @if source != entry.source {
                @if let Some(name) = entry.source.strip_prefix("subagent:") {
                    li class={ "lane-name lane " (lane_colour(&entry.source)) " " (depth_class(depth)) } {
                        @if is_back { "Back to subagent " } @else { "Subagent " }
                        b { (clean_text(name)) }
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

/// The class for the indentation of a lane; the deepest lanes share one.
fn depth_class(depth: usize) -> &'static str {
    ["d1", "d2", "d3", "d4", "d5"][depth.clamp(1, 5) - 1]
}

/// The class for the colour of a subagent's lane.
fn lane_colour(source: &str) -> &'static str {
    let sum =
        source.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    ["c0", "c1", "c2", "c3"][(sum % 4) as usize]
}

#[cfg(test)]
mod tests;
