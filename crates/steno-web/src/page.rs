//! The frame of every page.

use jiff::tz::TimeZone;
use maud::{DOCTYPE, Markup, html};

use crate::assets::ASSETS_VERSION;
use crate::heading;
use crate::help_dialog::{HelpTopic, help_dialog};
use crate::render::plain::clean_text;
use crate::viewer::PageViewer;

/// The pages in the navigation bar: address and name.
const NAV_PAGES: [(&str, &str); 9] = [
    ("/", "Sessions"),
    ("/search", "Search"),
    ("/activity", "Activity"),
    ("/trends", "Trends"),
    ("/quality", "Quality"),
    ("/cost", "Cost"),
    ("/edits", "Edits"),
    ("/compare", "Compare"),
    ("/threads", "Threads"),
];

/// Commands that act on the current page: an element's id, and the name. Only those whose element exists are offered.
const PAGE_COMMANDS: [(&str, &str); 12] = [
    ("call-back", "Go back to the call that started this subagent"),
    ("replay-link", "Replay this session"),
    ("export-open", "Export this session"),
    ("print", "Print this session"),
    ("subagents-open", "Show the subagents of this session"),
    ("changes-open", "Show the files that this session changed"),
    ("quality-open", "Show retries, failures and undone edits of this session"),
    ("compare-link", "Compare this session with another"),
    ("annotate", "Add a note to this session"),
    ("resume", "Resume this session"),
    ("theme", "Switch between light and dark"),
    ("help", "Show help and keys"),
];

/// The title of a page, its place in the navigation bar, and the zone of its times.
pub(crate) struct PageHead<'a> {
    title: &'a str,
    current: &'a str,
    zone: Option<&'a TimeZone>,
    /// Where the link to the content leads.
    content: &'a str,
    help: HelpTopic,
}

impl<'a> PageHead<'a> {
    /// A page with this title. `current` is its address in [`NAV_PAGES`].
    pub(crate) fn new(title: &'a str, current: &'a str) -> Self {
        let help = HelpTopic::of_page(current);
        Self { title, current, zone: None, content: "#main", help }
    }

    /// Names the zone of the page, so that a script can request another one.
    pub(crate) fn viewed_by(mut self, viewer: &'a PageViewer) -> Self {
        self.zone = Some(&viewer.zone);
        self
    }

    /// Sets where the link to the content leads, if that is not the begin of the main element.
    pub(crate) fn skips_to(mut self, content: &'a str) -> Self {
        self.content = content;
        self
    }

    /// Sets what the help of the page is about, if that is not what the navigation bar marks.
    pub(crate) fn helps_with(mut self, help: HelpTopic) -> Self {
        self.help = help;
        self
    }

    /// A page with the search bar.
    pub(crate) fn with_body(&self, body: &Markup) -> Markup {
        self.with_main(&html! { main #main { (body) } })
    }

    /// A page with the search bar and its own `main` element.
    pub(crate) fn with_main(&self, main: &Markup) -> Markup {
        let bar = html! {
            @if self.current != "/search" {
                form action="/search" role="search" {
                    input #query name="q" type="search" placeholder="Search all sessions"
                        aria-label="Search all sessions";
                }
            }
            (common_buttons())
        };
        self.with_bar(&bar, main)
    }

    /// A page with its own bar and body.
    pub(crate) fn with_bar(&self, bar: &Markup, body: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" data-zone=[self.zone.map(|zone| zone.iana_name().unwrap_or_default())] {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (clean_text(self.title)) " · Steno" }
                    link rel="icon" href="data:,";
                    link rel="stylesheet" href={ "/assets/" (*ASSETS_VERSION) "/style.css" };
                    script type="module" src={ "/assets/" (*ASSETS_VERSION) "/app.js" } {}
                }
                body {
                    a.skip href=(self.content) { "Skip to the content" }
                    header.top {
                        button #menu type="button" aria-label="Pages" title="Pages" aria-expanded="false" aria-controls="pages" { "☰" }
                        a.name href="/" { "Steno" }
                        nav #pages aria-label="Pages" {
                            @for (address, name) in NAV_PAGES {
                                a href=(address) aria-current=[(address == self.current).then_some("page")] { (name) }
                            }
                        }
                        span.room {}
                        (bar)
                    }
                    (body)
                    (help_dialog(self.help))
                    (palette_dialog())
                }
            }
        }
    }
}

/// The buttons at the right end of every bar, always in this order.
pub(crate) fn common_buttons() -> Markup {
    html! { (palette_button()) (help_button()) (heading::theme_button()) }
}

/// The button that opens the palette.
fn palette_button() -> Markup {
    html! { button #palette-open type="button" title="Go to a session, search, or run a command (Ctrl+K)" { "Go to… " kbd { "Ctrl K" } } }
}

/// The button that shows the keys.
pub(crate) fn help_button() -> Markup {
    html! { button #help type="button" aria-label="Help" title="Help and keys (?)" { "?" } }
}

/// The palette, which is closed at first.
fn palette_dialog() -> Markup {
    html! {
        dialog #palette aria-label="Go to a session, search, or run a command" {
            input #palette-input type="text" role="combobox" autocomplete="off" spellcheck="false"
                aria-expanded="true" aria-controls="palette-list" aria-autocomplete="list"
                placeholder="Go to a session, search, or run a command" aria-label="Go to a session, search, or run a command";
            ul #palette-list role="listbox" tabindex="0" aria-label="Results" {
                @for (address, name) in NAV_PAGES {
                    li role="option" data-command data-href=(address) { b { "Go to" } span { (name) } }
                }
                @for (id, name) in PAGE_COMMANDS {
                    li role="option" data-command data-click=(id) { b { "Do" } span { (name) } }
                }
            }
            p.palette-keys aria-hidden="true" { kbd { "↑" } kbd { "↓" } " choose " kbd { "Enter" } " open " kbd { "Esc" } " close" }
        }
    }
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
