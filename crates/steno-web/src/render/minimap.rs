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

/// The strip.
pub(crate) fn strip(entries: &[Entry], lanes: &Lanes) -> Markup {
    let bands = bands(entries, lanes);
    let rows = bands.len().max(ROWS);
    let most = |of: fn(&Band) -> u64| bands.iter().map(of).max().unwrap_or(0).max(1);
    let (tools, tokens) = (most(|band| band.tools), most(|band| band.tokens));
    html! {
        .minimap data-span=(entries.len() * rows / bands.len().max(1)) title="Tools to the left, tokens to the right" {
            svg viewBox={ "0 0 60 " (rows) } preserveAspectRatio="none" role="img"
                aria-label="Prompts, tools, errors and tokens over the session"
            {
                @for (y, band) in bands.iter().enumerate() {
                    @if band.tools > 0 {
                        @let width = wide(band.tools, tools);
                        rect.tools x=(30 - width) y=(y) width=(width) height="0.8" {}
                    }
                    @if band.tokens > 0 {
                        rect.spent x="31" y=(y) width=(wide(band.tokens, tokens)) height="0.8" {}
                    }
                    @if band.prompts > 0 { rect.prompt x="0" y=(y) width="7" height="1" {} }
                    @if band.seams > 0 { rect.cut x="0" y=(y) width="60" height="1" {} }
                    @if band.failures > 0 { rect.fail x="53" y=(y) width="7" height="1" {} }
                }
            }
            .here {}
        }
    }
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
