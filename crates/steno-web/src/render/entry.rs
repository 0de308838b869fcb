//! One entry as HTML, by what it is.

use maud::{Markup, html};
use steno_core::entry::PRIMARY;
use steno_core::view::amount::short;
use steno_core::view::markdown::capitalised;
use steno_core::view::pictures::{Piece, pieces};
use steno_core::{Entry, Kind, Role, Usage};

use super::plain::{beginning, clean, first_line, size};
use super::{SHOWN_AT_ONCE, Show, colour, markdown};

/// Characters of a folded text that are shown.
const PREVIEW: usize = 160;

/// The longest notice that is shown whole.
const SHORT: usize = 300;

impl Show<'_> {
    /// One entry; `told` is the model that was named last.
    pub(super) fn entry(&self, number: usize, entry: &Entry, told: Option<&str>) -> Markup {
        let at = entry.created_at.map(|at| at.in_zone(self.zone).wall());
        let name = at.map_or_else(|| format!("#{number}"), |at| at.strftime("%H:%M").to_string());
        html! {
            article class=(classes(entry)) id={ "e" (number) } {
                a href={ "#e" (number) } { (name) }
                (self.body(number, entry, told))
            }
        }
    }

    fn body(&self, number: usize, entry: &Entry, told: Option<&str>) -> Markup {
        match entry.kind {
            Kind::Text if entry.role != Role::System => self.said(entry, told),
            Kind::Thinking => self.thought(entry),
            Kind::ToolCall => self.call(entry),
            Kind::ToolResult => self.result(number, entry),
            Kind::Compaction => self.seam(entry),
            Kind::Error => html! { b { "Error" } (block(&entry.content)) },
            _ => self.notice(number, entry),
        }
    }

    fn said(&self, entry: &Entry, told: Option<&str>) -> Markup {
        let model = entry.model.as_deref().filter(|model| told != Some(*model));
        html! {
            b { (capitalised(entry.role.as_str())) }
            @if let Some(model) = model { " " small { (clean(model)) } }
            (tokens(entry.usage.as_ref()))
            .md { (self.rich(&entry.content, entry.role == Role::User)) }
        }
    }

    /// Markdown, with the pictures that the text names.
    pub(super) fn rich(&self, text: &str, breaks: bool) -> Markup {
        html! {
            @for piece in pieces(text) {
                @match piece {
                    Piece::Text(text) => (markdown::render(text, breaks)),
                    Piece::Picture { media_type, sum } => (self.picture(media_type, sum)),
                }
            }
        }
    }

    fn picture(&self, media_type: &str, sum: &str) -> Markup {
        let Some(picture) = self.pictures.get(sum) else {
            return html! { p.missing { "Picture (" (clean(media_type)) "), not kept" } };
        };
        let url = match self.base {
            Some(base) => format!("{base}/picture/{sum}"),
            None => format!("data:{};base64,{}", picture.media_type, picture.base64),
        };
        html! { img.picture src=(url) alt="A picture in the conversation" loading="lazy"; }
    }

    fn thought(&self, entry: &Entry) -> Markup {
        if entry.content.trim().is_empty() {
            return html! { p.line { b { "Thought" } " " span { "not stated" } (tokens(entry.usage.as_ref())) } };
        }
        html! {
            details {
                summary {
                    b { "Thought" } " " span { (first_line(&entry.content, PREVIEW)) }
                    (tokens(entry.usage.as_ref()))
                }
                .md { (markdown::render(&entry.content, false)) }
            }
        }
    }

    fn result(&self, number: usize, entry: &Entry) -> Markup {
        let text = entry.content.trim_end();
        let name = if is_bad(entry) { "Failed" } else { "Result" };
        if text.len() <= PREVIEW && !text.contains('\n') {
            let text = if text.is_empty() { "(nothing)".into() } else { clean(text) };
            return html! { p.line { b { (name) } " " code { (text) } } };
        }
        html! {
            details {
                summary {
                    b { (name) } " " code { (first_line(text, PREVIEW)) }
                    small { (size(text)) }
                }
                (self.long(number, text))
            }
        }
    }

    /// A text as it is; on the page, only the beginning of one that is very long.
    fn long(&self, number: usize, text: &str) -> Markup {
        let cut = self.base.and_then(|base| Some((base, beginning(text, SHOWN_AT_ONCE)?)));
        html! {
            @for piece in pieces(cut.map_or(text, |(_, shown)| shown)) {
                @match piece {
                    Piece::Text(text) => (block(text)),
                    Piece::Picture { media_type, sum } => (self.picture(media_type, sum)),
                }
            }
            @if let Some((base, _)) = cut {
                a.more href={ (base) "/entry/" (number) } target="_blank" { "Show all " (size(text)) }
            }
        }
    }

    fn seam(&self, entry: &Entry) -> Markup {
        html! {
            details {
                summary {
                    b { "The agent's context was shortened here" }
                    " " span { "all that was said before stands above" }
                }
                @if !entry.content.trim().is_empty() {
                    .md { (markdown::render(&entry.content, false)) }
                }
            }
        }
    }

    /// What the program tells, and instructions to the model.
    fn notice(&self, number: usize, entry: &Entry) -> Markup {
        let name = capitalised(&entry.heading());
        let text = entry.content.trim_end();
        if text.len() <= SHORT && !text.contains('\n') {
            return html! { p.line { b { (name) } " " span { (clean(text)) } } };
        }
        html! {
            details {
                summary {
                    b { (name) } " " span { (first_line(text, PREVIEW)) }
                    small { (size(text)) }
                }
                (self.long(number, text))
            }
        }
    }
}

/// What tells how an entry looks.
fn classes(entry: &Entry) -> String {
    let mut classes = match entry.kind {
        Kind::Text if entry.role == Role::User => "user",
        Kind::Text if entry.role != Role::System => "said",
        Kind::Thinking => "thought",
        Kind::ToolCall => "call",
        Kind::ToolResult => "result",
        Kind::Compaction => "seam",
        Kind::Error => "error",
        _ => "notice",
    }
    .to_owned();
    if entry.source != PRIMARY {
        classes.push_str(" lane ");
        classes.push_str(colour(&entry.source));
    }
    if is_bad(entry) {
        classes.push_str(" bad");
    }
    classes
}

/// Lines from which a text may have to be scrolled.
const TALL: usize = 20;

/// A text as it is; one that has to be scrolled can be reached by keys.
pub(super) fn block(text: &str) -> Markup {
    let is_tall = text.lines().nth(TALL).is_some() || text.len() > 2000;
    html! { pre tabindex=[is_tall.then_some("0")] { (clean(text)) } }
}

/// Whether something went wrong.
pub(crate) fn is_bad(entry: &Entry) -> bool {
    entry.kind == Kind::Error || entry.is_tool_error()
}

pub(super) fn tokens(usage: Option<&Usage>) -> Markup {
    html! {
        @if let Some(usage) = usage.filter(|usage| !usage.is_empty()) {
            small.tokens { (short(usage.prompt())) " in, " (short(usage.output)) " out" }
        }
    }
}
