//! What stands around every page.

use maud::{DOCTYPE, Markup, html};

use crate::assets::VERSION;
use crate::heading;
use crate::render::plain::clean;

/// The pages that every page leads to, and their names.
const PAGES: [(&str, &str); 5] = [
    ("/", "Sessions"),
    ("/search", "Search"),
    ("/cost", "Cost"),
    ("/compare", "Compare"),
    ("/threads", "Threads"),
];

/// A page; `current` is the address of the one among [`PAGES`] that it is.
pub(crate) fn shell(title: &str, current: &str, body: &Markup) -> Markup {
    let bar = html! {
        @if current != "/search" {
            form action="/search" role="search" {
                input #query name="q" type="search" placeholder="Search all sessions"
                    aria-label="Search all sessions";
            }
        }
        button #help type="button" aria-label="Keys" title="Keys (?)" { "?" }
        (heading::theme_button())
    };
    framed(title, current, &bar, &html! { main #main { (body) } })
}

/// Says that sessions may be missing, where the index could not be brought up to date.
pub(crate) fn stale_notice(notice: Option<&str>) -> Markup {
    html! { @if let Some(notice) = notice { p.stale role="status" { (notice) } } }
}

/// A page whose bar and body are its own.
pub(crate) fn framed(title: &str, current: &str, bar: &Markup, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (clean(title)) " · Steno" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href={ "/assets/" (*VERSION) "/style.css" };
                script type="module" src={ "/assets/" (*VERSION) "/app.js" } {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    a.name href="/" { "Steno" }
                    nav aria-label="Pages" {
                        @for (address, name) in PAGES {
                            a href=(address) aria-current=[(address == current).then_some("page")] { (name) }
                        }
                    }
                    span.room {}
                    (bar)
                }
                (body)
                (heading::help())
            }
        }
    }
}
