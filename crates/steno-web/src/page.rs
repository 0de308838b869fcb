//! The frame of every page.

use maud::{DOCTYPE, Markup, html};

use crate::assets::ASSETS_VERSION;
use crate::heading;
use crate::render::plain::clean_text;

/// The pages in the navigation bar: address and name.
const NAV_PAGES: [(&str, &str); 5] = [
    ("/", "Sessions"),
    ("/search", "Search"),
    ("/cost", "Cost"),
    ("/compare", "Compare"),
    ("/threads", "Threads"),
];

/// A page with the search bar. `current` is its address in [`NAV_PAGES`].
pub(crate) fn page_shell(title: &str, current: &str, body: &Markup) -> Markup {
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
    page_frame(title, current, &bar, &html! { main #main { (body) } })
}

/// A notice that sessions may be missing, because the index is not current.
pub(crate) fn stale_notice(notice: Option<&str>) -> Markup {
    html! { @if let Some(notice) = notice { p.stale role="status" { (notice) } } }
}

/// A warning about sessions with missing entries.
pub(crate) fn damage_notice(warnings: &[String]) -> Markup {
    html! {
        @if !warnings.is_empty() {
            details.error open {
                summary { b { "Some sessions are incomplete or unreadable" } }
                pre tabindex="0" { @for warning in warnings { (clean_text(warning)) "\n" } }
            }
        }
    }
}

/// A page with its own bar and body.
pub(crate) fn page_frame(title: &str, current: &str, bar: &Markup, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (clean_text(title)) " · Steno" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href={ "/assets/" (*ASSETS_VERSION) "/style.css" };
                script type="module" src={ "/assets/" (*ASSETS_VERSION) "/app.js" } {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    a.name href="/" { "Steno" }
                    nav aria-label="Pages" {
                        @for (address, name) in NAV_PAGES {
                            a href=(address) aria-current=[(address == current).then_some("page")] { (name) }
                        }
                    }
                    span.room {}
                    (bar)
                }
                (body)
                (heading::keys_dialog())
            }
        }
    }
}
