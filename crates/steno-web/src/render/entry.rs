//! One entry as HTML, by what it is.

use jiff::civil::DateTime;
use maud::{Markup, Render, html};
use std::fmt::Write;
use steno_core::entry::PRIMARY;
use steno_core::vault::notes::Note;
use steno_core::view::amount::short;
use steno_core::view::markdown::capitalised;
use steno_core::view::pictures::{Piece, pieces};
use steno_core::{Entry, Kind, Role, Usage};

use super::markdown::{self, Rich};
use super::note::note;
use super::plain::{Clean, beginning, clean, first_line, size};
use super::{SHOWN_AT_ONCE, Show, colour, deep};

/// Characters of a folded text that are shown.
const PREVIEW: usize = 160;

/// The longest notice that is shown whole.
const SHORT: usize = 300;

/// Where an entry stands.
pub(super) struct Place<'a> {
    /// Its number.
    pub(super) number: usize,
    /// How many agents stand above the one that speaks.
    pub(super) depth: usize,
    /// The model that was named last.
    pub(super) told: Option<&'a str>,
    /// When it was said, where that was not told just before.
    pub(super) time: Option<DateTime>,
}

impl Show<'_> {
    /// One entry. In a file, a script gives it its number.
    pub(super) fn entry(&self, page: &mut String, entry: &Entry, place: &Place<'_>) {
        page.push_str("<li class=");
        classes(page, entry, place.depth);
        if self.base.is_some() {
            write!(page, " id=e{}", place.number).expect("a string takes all");
        }
        page.push('>');
        if let Some(time) = place.time {
            write!(page, "<a>{:02}:{:02}</a>", time.hour(), time.minute())
                .expect("a string takes all");
        }
        self.body(page, entry, place);
        Note::of_entry(self.notes, entry).for_each(|one| note(one, self.zone).render_to(page));
    }

    fn body(&self, page: &mut String, entry: &Entry, place: &Place<'_>) {
        match entry.kind {
            Kind::Text if entry.role != Role::System => self.said(page, entry, place.told),
            Kind::Thinking => thought(entry).render_to(page),
            Kind::ToolCall => self.call(page, entry),
            Kind::ToolResult => self.result(place.number, entry).render_to(page),
            Kind::Compaction => seam(entry).render_to(page),
            Kind::Error => html! { b { "Error" } (block(&entry.content)) }.render_to(page),
            _ => self.notice(place.number, entry).render_to(page),
        }
    }

    fn said(&self, page: &mut String, entry: &Entry, told: Option<&str>) {
        let model = entry.model.as_deref().filter(|model| told != Some(*model));
        let is_named = !matches!(entry.role, Role::User | Role::Assistant);
        let heading = html! {
            @if is_named { b { (capitalised(entry.role.as_str())) } }
            @if let Some(model) = model { small { (clean(model)) } }
            (Spent(entry.usage.as_ref()))
        };
        heading.render_to(page);
        if markdown::is_plain(&entry.content) {
            return clean(&entry.content).render_to(page);
        }
        page.push_str("<div class=md>");
        self.rich(page, &entry.content, entry.role == Role::User);
        page.push_str("</div>");
    }

    /// Markdown, with the pictures that the text names.
    pub(super) fn rich(&self, page: &mut String, text: &str, breaks: bool) {
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => Rich { text, breaks }.render_to(page),
                Piece::Picture { media_type, sum } => {
                    self.picture(media_type, sum).render_to(page);
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

    fn result(&self, number: usize, entry: &Entry) -> Markup {
        let text = entry.content.trim_end();
        let name = if is_bad(entry) { "Failed" } else { "Result" };
        if text.len() <= PREVIEW && !text.contains('\n') {
            let text = clean(if text.is_empty() { "(nothing)" } else { text });
            return html! { p.line { b { (name) } code { (text) } } };
        }
        html! {
            details {
                summary { b { (name) } code { (first_line(text, PREVIEW)) } small { (size(text)) } }
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

    /// What the program tells, and instructions to the model.
    fn notice(&self, number: usize, entry: &Entry) -> Markup {
        let name = capitalised(&entry.heading());
        let text = entry.content.trim_end();
        if text.len() <= SHORT && !text.contains('\n') {
            return html! { p.line { b { (name) } span { (clean(text)) } } };
        }
        html! {
            details {
                summary { b { (name) } span { (first_line(text, PREVIEW)) } small { (size(text)) } }
                (self.long(number, text))
            }
        }
    }
}

/// What tells how an entry looks.
fn classes(page: &mut String, entry: &Entry, depth: usize) {
    let name = match entry.kind {
        Kind::Text if entry.role == Role::User => "user",
        Kind::Text if entry.role != Role::System => "said",
        Kind::Thinking => "thought",
        Kind::ToolCall => "call",
        Kind::ToolResult => "result",
        Kind::Compaction => "seam",
        Kind::Error => "error",
        _ => "notice",
    };
    let (is_lane, is_bad) = (entry.source != PRIMARY, is_bad(entry));
    if !is_lane && !is_bad {
        return page.push_str(name);
    }
    page.push('"');
    page.push_str(name);
    if is_lane {
        let (colour, deep) = (colour(&entry.source), deep(depth));
        write!(page, " lane {colour} {deep}").expect("a string takes all");
    }
    page.push_str(if is_bad { " bad\"" } else { "\"" });
}

fn thought(entry: &Entry) -> Markup {
    let text = &entry.content;
    if text.trim().is_empty() {
        return html! { p.line { b { "Thought" } span { "not stated" } (Spent(entry.usage.as_ref())) } };
    }
    html! {
        details {
            summary { b { "Thought" } span { (first_line(text, PREVIEW)) } (Spent(entry.usage.as_ref())) }
            .md { (Rich { text, breaks: false }) }
        }
    }
}

fn seam(entry: &Entry) -> Markup {
    html! {
        details {
            summary {
                b { "The agent's context was shortened here" }
                span { "all that was said before stands above" }
            }
            @if !entry.content.trim().is_empty() {
                .md { (Rich { text: &entry.content, breaks: false }) }
            }
        }
    }
}

/// Lines from which a text may have to be scrolled.
const TALL: usize = 20;

/// A text as it is; one that has to be scrolled can be reached by keys.
pub(super) struct Block<'a>(Clean<'a>, bool);

pub(super) fn block(text: &str) -> Block<'_> {
    Block(clean(text), text.len() > 2000 || text.lines().nth(TALL).is_some())
}

impl Render for Block<'_> {
    fn render_to(&self, page: &mut String) {
        page.push_str(if self.1 { "<pre tabindex=0>" } else { "<pre>" });
        self.0.render_to(page);
        page.push_str("</pre>");
    }
}

/// Whether something went wrong.
pub(crate) fn is_bad(entry: &Entry) -> bool {
    entry.kind == Kind::Error || entry.is_tool_error()
}

/// The tokens of a message: those that went in, and those that came out.
pub(super) struct Spent<'a>(pub(super) Option<&'a Usage>);

impl Render for Spent<'_> {
    fn render_to(&self, page: &mut String) {
        if let Some(usage) = self.0.filter(|usage| !usage.is_empty()) {
            let (read, written) = (short(usage.prompt()), short(usage.output));
            write!(page, "<i>{read}/{written}</i>").expect("a string takes all");
        }
    }
}
