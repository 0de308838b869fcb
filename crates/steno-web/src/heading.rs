//! What stands above a session, and the parts that all pages share.

use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_core::vault::notes::Note;
use steno_core::view::amount::{dollars, short};
use steno_core::view::lanes::Lanes;
use steno_core::{Session, Status};

use crate::render::note::note;
use crate::render::plain::{clean, visible};

/// What a session is and adds up to.
pub(crate) fn of(session: &Session, zone: &TimeZone) -> Markup {
    let usage = &session.totals.usage;
    html! {
        h1 { (title(session)) }
        ul.facts {
            li { (agent(session)) }
            @if let Some(started) = session.started {
                li { (started.in_zone(zone).wall().strftime("%-d %B %Y, %H:%M")) }
            }
            @if let Some(length) = duration(session) { li { (length) } }
            li { (entries(session)) }
            @if !usage.is_empty() {
                li { b { (short(usage.prompt())) } " tokens in, " b { (short(usage.output)) } " out" }
            }
            @if let Some(cost) = session.totals.cost { li { b { (dollars(cost)) } } }
            @for model in &session.models { li { (clean(model)) } }
            @if let Some(project) = &session.project { li { code { (clean(project)) } } }
            @if let Some(branch) = &session.branch { li { "on " code { (clean(branch)) } } }
            @if let Some(reason) = &session.stop_reason { li { (clean(reason)) } }
        }
    }
}

/// What was noted about a session.
pub(crate) fn notes(notes: &[&Note], zone: &TimeZone) -> Markup {
    html! {
        div #notes .notes {
            @for one in notes { (note(one, zone)) }
        }
    }
}

/// Where entries do not stand in the order of their numbers: for each run of them the first number and how many.
pub(crate) fn runs(lanes: &Lanes) -> Option<String> {
    let runs = lanes.runs();
    let told = runs.iter().map(|(first, count)| format!("{first} {count}"));
    (!runs.is_empty()).then(|| told.collect::<Vec<_>>().join(" "))
}

/// The title of a session, or what stands for one.
pub(crate) fn title(session: &Session) -> String {
    let title = session.title.as_deref().unwrap_or(session.id.as_str());
    visible(title).into_owned()
}

/// Who held a session, and how it stands where that is not well.
pub(crate) fn agent(session: &Session) -> Markup {
    html! {
        span.agent { (clean(&session.agent)) }
        @match session.status {
            Status::Running => { " " span.agent.running { "running" } }
            Status::Failed => { " " span.agent.failed { "failed" } }
            Status::Canceled => { " " span.agent { "canceled" } }
            Status::Completed => {}
        }
    }
}

/// How many entries a session has.
pub(crate) fn entries(session: &Session) -> Markup {
    let count = session.totals.entries;
    html! { b { (count) } @if count == 1 { " entry" } @else { " entries" } }
}

/// How long a session took.
pub(crate) fn duration(session: &Session) -> Option<String> {
    let seconds = session.ended?.unix_seconds() - session.started?.unix_seconds();
    Some(match seconds {
        seconds if seconds < 1 => return None,
        seconds if seconds < 60 => format!("{seconds} s"),
        seconds if seconds < 3600 => format!("{} min", seconds / 60),
        seconds if seconds < 86_400 => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
        seconds => format!("{} days", seconds / 86_400),
    })
}

/// Where one looks for words in a session: on the page alone, or by asking the server.
pub(crate) fn find_box(server: bool) -> Markup {
    html! {
        span #found .found role="status" {}
        input #find data-server[server] type="search" placeholder="Find in session" aria-label="Find in session";
    }
}

/// What folds, explains and darkens.
pub(crate) fn buttons() -> Markup {
    html! {
        button #unfold type="button" title="Unfold all (E)" { "Unfold" }
        button #fold type="button" title="Fold all (C)" { "Fold" }
        button #help type="button" aria-label="Keys" title="Keys (?)" { "?" }
        (theme_button())
    }
}

/// Changes between light and dark.
pub(crate) fn theme_button() -> Markup {
    html! { button #theme type="button" aria-label="Light or dark" title="Light or dark" { "◐" } }
}

/// The keys, as a person asks for them.
pub(crate) fn help() -> Markup {
    let keys = [
        ("j k", "next and last entry"),
        ("n p", "next and last prompt"),
        ("x X", "next and last error"),
        ("a", "note something, where that is possible"),
        ("o", "fold or unfold"),
        ("E C", "unfold or fold all"),
        ("g g", "the beginning"),
        ("G", "the end"),
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
