//! The heading of a session, and parts that all pages share.

use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_model::{Session, SessionStatus};
use steno_store::view::amount::{format_count, format_dollars};
use steno_store::view::lanes::SubagentLanes;
use steno_vault::notes::Note;

use crate::render::note::note_aside;
use crate::render::plain::{clean_text, visible_text};

/// The title and metadata of a session.
pub(crate) fn session_heading(session: &Session, zone: &TimeZone) -> Markup {
    let usage = &session.totals.usage;
    html! {
        h1 { (session_title(session)) }
        ul.facts {
            li { (agent_badge(session)) }
            @if let Some(started) = session.started {
                li { (started.in_zone(zone).wall().strftime("%-d %B %Y, %H:%M")) }
            }
            @if let Some(length) = session_duration(session) { li { (length) } }
            li { (entry_count(session)) }
            @if !usage.is_empty() {
                li { b { (format_count(usage.prompt_tokens())) } " tokens in, " b { (format_count(usage.output)) } " out" }
            }
            @if let Some(cost) = session.totals.cost { li { b { (format_dollars(cost)) } } }
            @for model in &session.models { li { (clean_text(model)) } }
            @if let Some(project) = &session.project { li { code { (clean_text(project)) } } }
            @if let Some(branch) = &session.branch { li { "on " code { (clean_text(branch)) } } }
            @if let Some(reason) = &session.stop_reason { li { (clean_text(reason)) } }
        }
    }
}

/// The notes on a session.
pub(crate) fn session_notes(notes: &[&Note], zone: &TimeZone) -> Markup {
    html! {
        div #notes .notes {
            @for one in notes { (note_aside(one, zone)) }
        }
    }
}

/// The runs of entries, if they are out of numeric order: first number and count of each.
pub(crate) fn lane_runs(lanes: &SubagentLanes) -> Option<String> {
    let runs = lanes.consecutive_runs();
    let pairs = runs.iter().map(|(first, count)| format!("{first} {count}"));
    (!runs.is_empty()).then(|| pairs.collect::<Vec<_>>().join(" "))
}

/// The title of a session, or its id.
pub(crate) fn session_title(session: &Session) -> String {
    let title = session.title.as_deref().unwrap_or(session.id.as_str());
    visible_text(title).into_owned()
}

/// The agent of a session, and the status unless it is completed.
pub(crate) fn agent_badge(session: &Session) -> Markup {
    html! {
        span.agent { (clean_text(&session.agent)) }
        @match session.status {
            SessionStatus::Running => { " " span.agent.running { "running" } }
            SessionStatus::Failed => { " " span.agent.failed { "failed" } }
            SessionStatus::Canceled => { " " span.agent { "canceled" } }
            SessionStatus::Completed => {}
        }
    }
}

/// The number of entries.
pub(crate) fn entry_count(session: &Session) -> Markup {
    let count = session.totals.entries;
    html! { b { (count) } @if count == 1 { " entry" } @else { " entries" } }
}

/// The duration of a session.
pub(crate) fn session_duration(session: &Session) -> Option<String> {
    let seconds = session.ended?.unix_seconds() - session.started?.unix_seconds();
    Some(match seconds {
        seconds if seconds < 1 => return None,
        seconds if seconds < 60 => format!("{seconds} s"),
        seconds if seconds < 3600 => format!("{} min", seconds / 60),
        seconds if seconds < 86_400 => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
        seconds => format!("{} days", seconds / 86_400),
    })
}

/// The input that finds text in a session: on the page itself, or with the server's help.
pub(crate) fn find_box(server: bool) -> Markup {
    html! {
        span #found .found role="status" {}
        input #find data-server[server] type="search" placeholder="Find in session" aria-label="Find in session";
    }
}

/// The buttons that fold entries, show the keys and change the theme.
pub(crate) fn reader_buttons() -> Markup {
    html! {
        button #unfold type="button" title="Unfold all (E)" { "Unfold" }
        button #fold type="button" title="Fold all (C)" { "Fold" }
        button #help type="button" aria-label="Keys" title="Keys (?)" { "?" }
        (theme_button())
    }
}

/// The button that switches between light and dark.
pub(crate) fn theme_button() -> Markup {
    html! { button #theme type="button" aria-label="Light or dark" title="Light or dark" { "◐" } }
}

/// The dialog that lists the keys.
pub(crate) fn keys_dialog() -> Markup {
    let keys = [
        ("j k", "next and previous entry"),
        ("n p", "next and previous prompt"),
        ("x X", "next and previous error"),
        ("a", "add a note, if allowed"),
        ("o", "fold or unfold"),
        ("E C", "unfold or fold all"),
        ("g g", "first entry"),
        ("G", "last entry"),
        ("/", "find, filter or search"),
        ("?", "this help"),
    ];
    html! {
        dialog #keys aria-labelledby="keys-title" {
            form method="dialog" {
                h2 #keys-title { "Keys" }
                dl.keys {
                    @for (key, does) in keys {
                        dt { @for key in key.split(' ') { kbd { (key) } " " } }
                        dd { (does) }
                    }
                }
                p { button { "Close" } }
            }
        }
    }
}
