//! Entries as HTML: the same for the page and for the file that is shared.
//!
//! What a transcript says is hostile. It reaches the page as escaped text or as Markdown without HTML, links lead to
//! the web only, and nothing is loaded from anywhere.

pub(crate) mod diff;
mod entry;
pub(crate) mod markdown;
pub(crate) mod minimap;
pub(crate) mod plain;
mod tool;

use std::ops::Range;

use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_core::Entry;
use steno_core::entry::PRIMARY;
use steno_core::view::pictures::Pictures;

/// Tool output that a page shows at once; the rest is asked for.
const SHOWN_AT_ONCE: usize = 20_000;

/// How many entries back a model's name still counts as told.
const LOOKED_BACK: usize = 20;

/// How entries are shown.
#[derive(Clone, Copy)]
pub(crate) struct Show<'a> {
    /// Whose clock times are told by.
    pub(crate) zone: &'a TimeZone,
    /// The pictures of the session.
    pub(crate) pictures: &'a Pictures,
    /// Where the page asks for what it does not hold; nothing in a file, which holds all.
    pub(crate) base: Option<&'a str>,
}

impl Show<'_> {
    /// Some of a session's entries, numbered from 0.
    pub(crate) fn entries(&self, all: &[Entry], range: Range<usize>) -> String {
        let mut text = String::new();
        let range = range.start.min(all.len())..range.end.min(all.len());
        for number in range {
            let before = number.checked_sub(1).map(|before| &all[before]);
            text.push_str(&self.breaks(&all[number], before).0);
            let model =
                all[..number].iter().rev().take(LOOKED_BACK).find_map(|it| it.model.as_deref());
            text.push_str(&self.entry(number, &all[number], model).0);
        }
        text
    }

    /// What stands before an entry: its day, and whose lane it is in, where those change.
    fn breaks(&self, entry: &Entry, before: Option<&Entry>) -> Markup {
        let day = |entry: &Entry| entry.created_at.map(|at| at.in_zone(self.zone).wall().date());
        let is_new_day = day(entry).is_some() && before.and_then(day) != day(entry);
        let source = before.map_or(PRIMARY, |before| before.source.as_str());
        html! {
            @if let Some(day) = day(entry).filter(|_| is_new_day) {
                h2.day { (day.strftime("%A, %-d %B %Y")) }
            }
            @if source != entry.source {
                @if let Some(name) = entry.source.strip_prefix("subagent:") {
                    p.lane-name.lane.(colour(&entry.source)) { "Subagent " b { (plain::clean(name)) } }
                } @else if before.is_some() {
                    p.lane-name { "Back to the main agent" }
                }
            }
        }
    }
}

/// One of four colours for the lane of a subagent.
fn colour(source: &str) -> &'static str {
    let sum =
        source.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    ["c0", "c1", "c2", "c3"][(sum % 4) as usize]
}

#[cfg(test)]
mod tests;
