//! A session at a glance: a strip of what happened where, by entries from top to bottom.

use maud::{Markup, html};
use steno_core::view::lanes::Lanes;
use steno_core::{Entry, Kind, Role};

use super::entry::is_bad;

/// Bands that a strip has at most.
const BANDS: usize = 240;

/// Rows that a strip has at least, so that few entries make no huge bars.
const ROWS: usize = 48;

/// What some entries that follow each other have in common.
#[derive(Clone, Copy, Default)]
struct Band {
    prompts: u64,
    tools: u64,
    failures: u64,
    seams: u64,
    tokens: u64,
}

/// Where a bar of some sort begins in a band, and how wide it is; `most` has the largest number of each sort.
type Bar = fn(&Band, &Band) -> Option<(u64, u64)>;

/// The sorts of bars, those that must be seen last.
const BARS: [(&str, Bar); 5] = [
    ("tools", |band, most| {
        let width = wide(band.tools, most.tools);
        (width > 0).then_some((30 - width, width))
    }),
    ("spent", |band, most| {
        let width = wide(band.tokens, most.tokens);
        (width > 0).then_some((31, width))
    }),
    ("prompt", |band, _| (band.prompts > 0).then_some((0, 7))),
    ("cut", |band, _| (band.seams > 0).then_some((0, 60))),
    ("fail", |band, _| (band.failures > 0).then_some((53, 7))),
];

/// The strip.
pub(crate) fn strip(entries: &[Entry], lanes: &Lanes) -> Markup {
    let bands = bands(entries, lanes);
    let rows = bands.len().max(ROWS);
    let most = |of: fn(&Band) -> u64| bands.iter().map(of).max().unwrap_or(0).max(1);
    let most = Band {
        tools: most(|band| band.tools),
        tokens: most(|band| band.tokens),
        ..Band::default()
    };
    html! {
        .minimap data-span=(entries.len() * rows / bands.len().max(1)) title="Tools to the left, tokens to the right" {
            svg viewBox={ "0 0 60 " (rows) } preserveAspectRatio="none" role="img"
                aria-label="Prompts, tools, errors and tokens over the session"
            {
                @for (name, bar) in BARS { path class=(name) d=(drawn(&bands, &most, bar)) {} }
            }
            .here {}
        }
    }
}

/// All bars of one sort as one path, which takes far less room than a shape for each.
fn drawn(bands: &[Band], most: &Band, bar: Bar) -> String {
    let bars = bands.iter().enumerate().filter_map(|(y, band)| Some((y, bar(band, most)?)));
    bars.map(|(y, (x, width))| format!("M{x} {y}h{width}v.8h-{width}z")).collect()
}

/// How wide a bar is of the widest, of which it has a share.
fn wide(amount: u64, most: u64) -> u64 {
    (amount as f64 / most as f64 * 21.0).ceil() as u64
}

fn bands(entries: &[Entry], lanes: &Lanes) -> Vec<Band> {
    let size = entries.len().div_ceil(BANDS).max(1);
    let band = |first: usize| {
        let mut band = Band::default();
        for place in first..entries.len().min(first + size) {
            let entry = &entries[lanes.number(place)];
            band.prompts += u64::from(entry.role == Role::User && entry.kind == Kind::Text);
            band.tools += u64::from(entry.kind == Kind::ToolCall);
            band.seams += u64::from(entry.kind == Kind::Compaction);
            band.failures += u64::from(is_bad(entry));
            let usage = entry.usage.as_ref();
            let tokens = usage.map_or(0, |usage| usage.prompt().saturating_add(usage.output));
            band.tokens = band.tokens.saturating_add(tokens);
        }
        band
    };
    (0..entries.len()).step_by(size).map(band).collect()
}
