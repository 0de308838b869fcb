//! A minimap of a session: a strip that shows prompts, tools, errors and tokens from top to bottom.

use maud::{Markup, html};
use steno_model::{Entry, EntryKind, Role};
use steno_store::view::lanes::SubagentLanes;

use super::entry::is_error_entry;

/// The most bands of a strip.
const MAX_BANDS: usize = 240;

/// The fewest rows of a strip, so that a short session does not get huge bars.
const MIN_ROWS: usize = 48;

/// The counts of consecutive entries.
#[derive(Clone, Copy, Default)]
struct MinimapBand {
    prompts: u64,
    tools: u64,
    failures: u64,
    seams: u64,
    tokens: u64,
}

/// The offset and width of a bar in a band, if there is one. The second band has the largest counts.
type BandBar = fn(&MinimapBand, &MinimapBand) -> Option<(u64, u64)>;

/// The kinds of bars. Later ones are drawn over earlier ones.
const BAR_KINDS: [(&str, BandBar); 5] = [
    ("tools", |band, most| {
        let width = bar_width(band.tools, most.tools);
        (width > 0).then_some((30 - width, width))
    }),
    ("spent", |band, most| {
        let width = bar_width(band.tokens, most.tokens);
        (width > 0).then_some((31, width))
    }),
    ("prompt", |band, _| (band.prompts > 0).then_some((0, 7))),
    ("cut", |band, _| (band.seams > 0).then_some((0, 60))),
    ("fail", |band, _| (band.failures > 0).then_some((53, 7))),
];

/// The strip of a session.
pub(crate) fn minimap_strip(entries: &[Entry], lanes: &SubagentLanes) -> Markup {
    let bands = count_bands(entries, lanes);
    let rows = bands.len().max(MIN_ROWS);
    let most = |of: fn(&MinimapBand) -> u64| bands.iter().map(of).max().unwrap_or(0).max(1);
    let most = MinimapBand {
        tools: most(|band| band.tools),
        tokens: most(|band| band.tokens),
        ..MinimapBand::default()
    };
    html! {
        .minimap data-span=(entries.len() * rows / bands.len().max(1)) title="The whole session from top to bottom. Blue: prompts. Grey: tool calls. Brown: tokens. Red: errors. Line: compaction. Click to go there." {
            svg viewBox={ "0 0 60 " (rows) } preserveAspectRatio="none" role="img"
                aria-label="Prompts, tools, errors and tokens over the session"
            {
                @for (name, bar) in BAR_KINDS { path class=(name) d=(bars_path(&bands, &most, bar)) {} }
            }
            .here {}
        }
    }
}

/// All bars of one kind as one path, which is much shorter than one element for each.
fn bars_path(bands: &[MinimapBand], most: &MinimapBand, bar: BandBar) -> String {
    let bars = bands.iter().enumerate().filter_map(|(y, band)| Some((y, bar(band, most)?)));
    bars.map(|(y, (x, width))| format!("M{x} {y}h{width}v.8h-{width}z")).collect()
}

/// The width of a bar, relative to the largest amount.
fn bar_width(amount: u64, most: u64) -> u64 {
    (amount as f64 / most as f64 * 21.0).ceil() as u64
}

fn count_bands(entries: &[Entry], lanes: &SubagentLanes) -> Vec<MinimapBand> {
    let size = entries.len().div_ceil(MAX_BANDS).max(1);
    let band = |first: usize| {
        let mut band = MinimapBand::default();
        for place in first..entries.len().min(first + size) {
            let entry = &entries[lanes.number_at(place)];
            band.prompts += u64::from(entry.role == Role::User && entry.kind == EntryKind::Text);
            band.tools += u64::from(entry.kind == EntryKind::ToolCall);
            band.seams += u64::from(entry.kind == EntryKind::Compaction);
            band.failures += u64::from(is_error_entry(entry));
            let usage = entry.usage.as_ref();
            let tokens =
                usage.map_or(0, |usage| usage.prompt_tokens().saturating_add(usage.output));
            band.tokens = band.tokens.saturating_add(tokens);
        }
        band
    };
    (0..entries.len()).step_by(size).map(band).collect()
}
