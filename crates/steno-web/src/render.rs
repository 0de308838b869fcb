//! Renders entries as HTML, for the pages and for exported files.
//!
//! Transcripts are untrusted. Their text is escaped, or rendered as Markdown without HTML. Links lead to the web only,
//! and nothing is loaded from elsewhere. A session may have ten thousand short entries, so the markup around each one
//! is minimal.

mod branch;
pub(crate) mod diff;
mod entry;
pub(crate) mod markdown;
pub(crate) mod minimap;
pub(crate) mod note;
pub(crate) mod plain;
pub(crate) mod result_text;
pub(crate) mod tool;

use std::ops::Range;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use maud::{Markup, Render, html};
use std::fmt::Write;
use steno_model::Entry;
use steno_model::entry::PRIMARY_SOURCE;
use steno_store::view::lanes::SubagentLanes;
use steno_store::view::pictures::SessionPictures;
use steno_vault::notes::Note;

use self::entry::EntryPlace;
pub(crate) use self::entry::is_error_entry;
use self::entry::{is_empty_notice, is_plain_notice};
use self::plain::{clean_text, first_line, preview_text, text_prefix};
use crate::addresses::encode_query_text;
use crate::outline::{SessionOutline, totals_line};
use crate::subagent_run::OutlinedRun;
use crate::units::count_of;

/// How much tool output a page contains; the rest is requested on demand.
const MAX_INLINE_BYTES: usize = 20_000;

/// How many entries back the model's name counts as known to the reader.
const MODEL_LOOKBACK: usize = 20;

/// How many characters of a subagent's task are shown.
const MAX_TASK_CHARS: usize = 80;

/// How many characters of a subagent's prompt and answer are shown while it is folded.
const MAX_BRIEF_CHARS: usize = 280;

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
    /// The turns and the runs of subagents.
    pub(crate) outline: &'a SessionOutline,
    /// Where the session left the one that it was forked from.
    pub(crate) fork: Option<&'a ForkPoint>,
    /// The run of the subagent that is shown alone.
    pub(crate) alone: Option<usize>,
    /// The project folder. Paths inside it are shown relative to it.
    pub(crate) project: Option<&'a str>,
}

/// Where a session left the one that it was forked from.
pub(crate) struct ForkPoint {
    /// The position of the first entry of its own.
    pub(crate) place: usize,
    /// The number of the call in the other session that started this one, if they have no entries in common.
    pub(crate) call: Option<usize>,
    /// The address of the other session.
    pub(crate) address: String,
    /// The title of the other session.
    pub(crate) title: String,
}

impl EntryRenderer<'_> {
    /// Renders the entries at some positions, as items of a list.
    pub(crate) fn render_entries(&self, all: &[Entry], places: Range<usize>) -> String {
        let mut page = String::with_capacity(places.len().min(all.len()) * ENTRY_BYTES_ESTIMATE);
        let places = places.start.min(all.len())..places.end.min(all.len());
        let at = |place: usize| &all[self.lanes.number_at(place)];
        let mut before = places.start.checked_sub(1).map(at);
        let mut last = before.and_then(|entry| self.wall_time(entry));
        let mut fold_end = None;
        for place in places.clone() {
            let entry = at(place);
            let now = self.wall_time(entry);
            if fold_end == Some(place) {
                page.push_str(NOTICE_FOLD_END);
                fold_end = None;
            }
            self.render_marks(&mut page, place);
            self.render_branch(&mut page, all, place);
            self.render_breaks(&mut page, &LaneChange { all, before, entry, place, last, now });
            if fold_end.is_none() {
                fold_end = self.begin_notice_fold(&mut page, all, place..places.end);
            }
            let earlier = (0..place).rev().take(MODEL_LOOKBACK);
            let place = EntryPlace {
                all,
                place,
                number: self.lanes.number_at(place),
                depth: self.lanes.depth_at(place),
                before,
                last_model: earlier.map(at).find_map(|entry| entry.model.as_deref()),
                time: now,
                last_time: last,
            };
            self.render_entry(&mut page, entry, &place);
            (before, last) = (Some(entry), now.or(last));
        }
        if fold_end.is_some() {
            page.push_str(NOTICE_FOLD_END);
        }
        if places.end == all.len() && !places.is_empty() {
            self.render_marks(&mut page, all.len());
        }
        page
    }

    fn wall_time(&self, entry: &Entry) -> Option<DateTime> {
        entry.created_at.map(|at| at.in_zone(self.zone).wall())
    }

    /// Renders what stands between the entries before and after a position: totals of a turn, and a fork.
    fn render_marks(&self, page: &mut String, place: usize) {
        if let Some(line) = self.outline.turn_end(place) {
            line.render_to(page);
        }
        if let Some(fork) = self.fork.filter(|fork| fork.place == place) {
            let line = html! {
                li.fork {
                    "The entries above are from " a href={ (fork.address) "#e" (place.saturating_sub(1)) } { (clean_text(&fork.title)) }
                    ". The fork begins here."
                }
            };
            line.render_to(page);
        }
    }

    /// Renders where the user went back, above the prompt that does so.
    fn render_branch(&self, page: &mut String, all: &[Entry], place: usize) {
        let number = self.lanes.number_at(place);
        let branches = &self.outline.branches;
        if let Ok(at) = branches.binary_search_by_key(&number, |branch| branch.prompt) {
            branch::branch_mark(&branches[at], all).render_to(page);
        }
    }

    /// Renders the date and the name of the agent, where they change.
    fn render_breaks(&self, page: &mut String, change: &LaneChange<'_>) {
        let LaneChange { all, before, entry, place, last, now } = *change;
        let day = now.filter(|now| last.is_none_or(|last| last.date() != now.date()));
        let source = before.map_or(PRIMARY_SOURCE, |before| before.source.as_str());
        if day.is_none() && source == entry.source {
            return;
        }
        let starts = self.outline.runs_from(place).next().is_some();
        let lane = html! {
            @if let Some(day) = day {
                li.day { h2 { (day.strftime("%A, %-d %B %Y").to_string()) } }
            }
            @for (at, run) in self.outline.runs_from(place) { (self.run_heading(at, run, all)) }
            @if source != entry.source && !starts {
                @if let Some(name) = entry.source.strip_prefix("subagent:") {
                    li class={ "lane-name lane " (lane_colour(&entry.source)) " " (depth_class(self.lanes.depth_at(place))) (self.run_classes(place, None)) } {
                        "Back to subagent " b { (clean_text(name)) }
                    }
                } @else if before.is_some() {
                    li.lane-name { "Back to the main agent" }
                }
            }
        };
        lane.render_to(page);
    }

    /// The name, totals, prompt and answer of a subagent, with a button that folds its entries.
    fn run_heading(&self, at: usize, one: &OutlinedRun, all: &[Entry]) -> Markup {
        let place = one.run.places.start;
        html! {
            li class={ "lane-name lane " (lane_colour(&one.run.source)) " " (depth_class(one.run.depth)) (self.run_classes(place, Some(at))) } {
                button type="button" data-run=(at) aria-expanded=(!one.is_folded() || self.alone == Some(at)) title={ "Subagent " (clean_text(one.name())) } {
                    // Alone, its title is the heading of the page.
                    @if self.alone == Some(at) { "All entries" } @else { "Subagent " b { (run_title(one)) } }
                }
                (one.outcome_badge())
                @if let Some(agent_type) = &one.agent_type { span.agent title="The type of agent that the call asked for" { (clean_text(agent_type)) } }
                span title="Messages, tool calls and results, and notices, with those of the subagents that it started" { (count_of(one.totals.entries, "entry")) }
                @if one.nested > 0 { span title="Subagents that this one started, and those that they started" { "with " (count_of(one.nested as u64, "subagent")) } }
                (totals_line(&one.totals))
                (self.run_links(one, self.alone == Some(at)))
                (run_brief(one, all))
            }
        }
    }

    /// The links to the subagent alone and to the call that started it; none in an exported file.
    fn run_links(&self, one: &OutlinedRun, is_alone: bool) -> Markup {
        html! {
            @if let Some(base) = self.base {
                @if !is_alone { a href=(subagent_address(base, one.name())) title="Show only this subagent, with a link back to its call" { "Open alone" } }
                @if let Some(caller) = one.run.caller { a href={ (base) "#e" (caller) } title="Go to the call that started it" { "Call: entry " (caller) } }
            }
        }
    }

    /// The classes of the runs that contain a position, by which scripts hide them; without one of them.
    fn run_classes(&self, place: usize, without: Option<usize>) -> String {
        let runs = self.outline.runs_at(place).filter(|at| Some(*at) != without);
        runs.map(|at| format!(" r{at}")).collect()
    }

    /// Begins a fold if several notices follow each other; returns the position at which it ends.
    fn begin_notice_fold(
        &self,
        page: &mut String,
        all: &[Entry],
        places: Range<usize>,
    ) -> Option<usize> {
        let at = |place: usize| &all[self.lanes.number_at(place)];
        let first = at(places.start);
        let is_folded = |place: &usize| {
            let entry = at(*place);
            let is_own = entry.source == first.source && self.outline.turn_end(*place).is_none();
            is_plain_notice(entry)
                && (*place == places.start || is_own)
                && Note::for_entry(self.notes, entry).next().is_none()
        };
        let count = places.clone().take_while(is_folded).count();
        let folded = places.start..places.start + count;
        let shown = folded.filter(|place| !is_empty_notice(at(*place))).count();
        if shown < MIN_FOLDED_NOTICES {
            return None;
        }
        let classes = self.run_classes(places.start, None);
        let lane = if first.source == PRIMARY_SOURCE { "" } else { " lane" };
        write!(
            page,
            "<li class=\"notices{lane}{classes}\"><details><summary><b>{shown} notices</b>\
             <span>messages of the program and instructions to the model</span></summary><ol class=entries>"
        )
        .expect("a string takes all");
        Some(places.start + count)
    }
}

/// How many notices in a row are folded into one line.
const MIN_FOLDED_NOTICES: usize = 3;

/// What ends a fold of notices.
const NOTICE_FOLD_END: &str = "</ol></details></li>";

/// An entry, and the one before it.
struct LaneChange<'a> {
    all: &'a [Entry],
    before: Option<&'a Entry>,
    entry: &'a Entry,
    place: usize,
    /// The time of the entry before it.
    last: Option<DateTime>,
    now: Option<DateTime>,
}

fn is_other_minute(last: DateTime, now: DateTime) -> bool {
    (last.date(), last.hour(), last.minute()) != (now.date(), now.hour(), now.minute())
}

/// What a subagent was asked to do, in a few words; its id if the call does not say.
pub(crate) fn run_title(one: &OutlinedRun) -> String {
    first_line(one.task.as_deref().unwrap_or(one.name()), MAX_TASK_CHARS)
}

/// The address of the page of a subagent alone.
pub(crate) fn subagent_address(base: &str, name: &str) -> String {
    format!("{base}?subagent={}", encode_query_text(name))
}

/// The begin of a subagent's prompt and of its answer, which are visible while the run is folded.
fn run_brief(one: &OutlinedRun, all: &[Entry]) -> Markup {
    // A long text is cut first. Its marks count, too, so more of it is parsed than is shown.
    let preview = |number: usize| {
        let text = &all[number].content;
        let begin = text_prefix(text, 8 * MAX_BRIEF_CHARS).unwrap_or(text);
        let shown = preview_text(&markdown::plain_text(begin), MAX_BRIEF_CHARS);
        if begin.len() < text.len() && !shown.ends_with('…') { shown + "…" } else { shown }
    };
    html! {
        .brief {
            @if let Some(prompt) = one.prompt { p { b { "Prompt" } " " (preview(prompt)) } }
            @if let Some(answer) = one.answer { p { b { "Answer" } " " (preview(answer)) } }
        }
    }
}

/// The class for the indentation of a lane; the deepest lanes share one.
pub(crate) fn depth_class(depth: usize) -> &'static str {
    ["d1", "d2", "d3", "d4", "d5"][depth.clamp(1, 5) - 1]
}

/// The class for the colour of a subagent's lane.
pub(crate) fn lane_colour(source: &str) -> &'static str {
    let sum =
        source.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    ["c0", "c1", "c2", "c3"][(sum % 4) as usize]
}

#[cfg(test)]
mod tests;
