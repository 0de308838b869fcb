//! Renders notes.

use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_vault::notes::Note;

use super::markdown::SafeMarkdown;

/// A note. A script adds the button that removes it, if pages may change notes.
pub(crate) fn note_aside(note: &Note, zone: &TimeZone) -> Markup {
    let at = note.at.in_zone(zone).wall();
    html! {
        aside.note data-note=(note.id) aria-label="Note" {
            small { "Noted " (at.strftime("%-d %b %Y, %H:%M").to_string()) }
            .md { (SafeMarkdown { text: &note.text, breaks: true }) }
        }
    }
}
