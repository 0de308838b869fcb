//! What people have noted, apart from what was said.

use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_core::vault::notes::Note;

use super::markdown::Rich;

/// A note; where it can be removed, a page adds what does so.
pub(crate) fn note(note: &Note, zone: &TimeZone) -> Markup {
    let at = note.at.in_zone(zone).wall();
    html! {
        aside.note data-note=(note.id) aria-label="Note" {
            small { "Noted " (at.strftime("%-d %b %Y, %H:%M").to_string()) }
            .md { (Rich { text: &note.text, breaks: true }) }
        }
    }
}
