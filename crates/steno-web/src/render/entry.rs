//! Renders one entry, according to its kind.

use jiff::civil::DateTime;
use maud::{Markup, Render, html};
use std::fmt::Write;
use steno_model::entry::PRIMARY_SOURCE;
use steno_model::{Entry, EntryKind, Role, Usage};
use steno_store::amount::format_count;
use steno_store::view::markdown::capitalize_first;
use steno_store::view::pictures::{TextSegment, names_picture, split_pictures};
use steno_vault::notes::Note;

use super::markdown::{self, SafeMarkdown};
use super::note::note_aside;
use super::plain::{CleanText, clean_text, first_line, size_label, text_prefix};
use super::result_text::ResultText;
use super::{EntryRenderer, MAX_INLINE_BYTES, depth_class, is_other_minute, lane_colour};
use crate::outline::{CompactedSpan, compacted_span, cost_text};
use crate::units::{count_of, format_duration};

/// How many characters of a folded text are shown.
const PREVIEW_CHARS: usize = 160;

/// The longest unfolded notice.
const MAX_NOTICE_CHARS: usize = 300;

/// The position of an entry and what the reader has seen before it.
pub(super) struct EntryPlace<'a> {
    /// All entries of the session.
    pub(super) all: &'a [Entry],
    /// The position of the entry.
    pub(super) place: usize,
    /// The number of the entry.
    pub(super) number: usize,
    /// The entry above it.
    pub(super) before: Option<&'a Entry>,
    /// How many agents are above the one that speaks.
    pub(super) depth: usize,
    /// The last model shown.
    pub(super) last_model: Option<&'a str>,
    /// The time of the entry, and of the last one with a time above it.
    pub(super) time: Option<DateTime>,
    pub(super) last_time: Option<DateTime>,
}

impl EntryRenderer<'_> {
    /// Renders an entry. In an exported file, a script adds the numbers and the class of the most frequent entries:
    /// answers.
    pub(super) fn render_entry(&self, page: &mut String, entry: &Entry, place: &EntryPlace<'_>) {
        page.push_str("<li");
        if self.base.is_some() || !is_plain_answer(entry) {
            page.push_str(" class=");
            self.push_classes(page, entry, place);
        }
        if self.base.is_some() {
            write!(page, " id=e{}", place.number).expect("a string takes all");
        }
        if is_empty_notice(entry) && Note::for_entry(self.notes, entry).next().is_none() {
            page.push_str(" hidden");
        }
        page.push('>');
        self.render_time(page, place);
        self.render_body(page, entry, place);
        Note::for_entry(self.notes, entry)
            .for_each(|one| note_aside(one, self.zone).render_to(page));
    }

    /// Renders the time. An exported file leaves out what a script adds: the date, and a time that the entry above has too.
    fn render_time(&self, page: &mut String, place: &EntryPlace<'_>) {
        let EntryPlace { time, last_time, .. } = *place;
        let is_exported = self.base.is_none();
        match time {
            Some(time)
                if is_exported && last_time.is_some_and(|last| !is_other_minute(last, time)) =>
            {
                Ok(())
            }
            Some(time) if is_exported => {
                write!(page, "<a>{:02}:{:02}</a>", time.hour(), time.minute())
            }
            Some(time) => {
                write!(
                    page,
                    "<a title=\"{}\">{:02}:{:02}</a>",
                    time.strftime("%A, %-d %B %Y, %H:%M:%S"),
                    time.hour(),
                    time.minute()
                )
            }
            None if is_exported && last_time.is_some() => write!(page, "<a></a>"),
            None => Ok(()),
        }
        .expect("a string takes all");
    }

    fn render_body(&self, page: &mut String, entry: &Entry, place: &EntryPlace<'_>) {
        match entry.kind {
            EntryKind::Text if entry.role != Role::System => {
                self.render_message(page, entry, place)
            }
            EntryKind::Thinking => thinking_details(entry).render_to(page),
            EntryKind::ToolCall => self.render_tool_call(page, place.number, entry),
            EntryKind::ToolResult => self.tool_result(entry, place).render_to(page),
            EntryKind::Compaction => self.compaction_details(entry, place).render_to(page),
            EntryKind::Error => {
                html! { b { "Error" } (text_block(&entry.content)) }.render_to(page)
            }
            _ => self.notice_line(place.number, entry).render_to(page),
        }
    }

    fn render_message(&self, page: &mut String, entry: &Entry, place: &EntryPlace<'_>) {
        let model = entry.model.as_deref().filter(|model| place.last_model != Some(*model));
        let cost = self.outline.lone_answer(place.place).and_then(cost_text);
        let is_named = !matches!(entry.role, Role::User | Role::Assistant);
        let heading = html! {
            @if is_named { b { (capitalize_first(entry.role.as_str())) } }
            @if let Some(model) = model { small { (clean_text(model)) } }
            (TokenCounts { usage: entry.usage.as_ref(), cost })
        };
        heading.render_to(page);
        if markdown::is_plain_line(&entry.content) {
            return clean_text(&entry.content).render_to(page);
        }
        page.push_str("<div class=md>");
        self.render_markdown(page, &entry.content, entry.role == Role::User);
        page.push_str("</div>");
    }

    /// Renders Markdown, and the pictures that it refers to.
    pub(super) fn render_markdown(&self, page: &mut String, text: &str, breaks: bool) {
        for piece in split_pictures(text) {
            match piece {
                TextSegment::Text(text) => SafeMarkdown { text, breaks }.render_to(page),
                TextSegment::Picture { media_type, hash: sum } => {
                    self.picture_tag(media_type, sum).render_to(page);
                }
            }
        }
    }

    fn picture_tag(&self, media_type: &str, sum: &str) -> Markup {
        let Some(picture) = self.pictures.get(sum) else {
            return html! { p.missing { "Picture (" (clean_text(media_type)) "), not recorded" } };
        };
        let url = match self.base {
            Some(base) => format!("{base}/picture/{sum}"),
            None => format!("data:{};base64,{}", picture.media_type, picture.base64),
        };
        if !picture.is_image() {
            return html! {
                p.missing {
                    "Picture (" (clean_text(media_type)) "), cannot be shown: its bytes are no PNG, JPEG, GIF or WebP image. "
                    @if self.base.is_some() { a href=(url) download="picture" { "Save them" } }
                }
            };
        }
        html! { img.picture src=(url) alt="Picture in the conversation: show it large" title="Show it large" role="button" tabindex="0" loading="lazy"; }
    }

    fn tool_result(&self, entry: &Entry, place: &EntryPlace<'_>) -> Markup {
        let parsed = ResultText::parse(&entry.content);
        let text = parsed.output.trim_end();
        let is_error = is_error_entry(entry);
        let heading = html! {
            (result_heading(entry, place))
            @if let Some(code) = parsed.exit_code.filter(|code| *code != 0) { small title="The exit code of the command" { "exit " (code) } }
        };
        if text.len() <= PREVIEW_CHARS && !text.contains('\n') && !names_picture(text) {
            let text = clean_text(if text.is_empty() { "(empty)" } else { text });
            return html! { p.line { (heading) code { (text) } } };
        }
        let limit = if is_error { SHORT_ERROR } else { SHORT_RESULT };
        html! {
            details open[limit.contains(text)] {
                summary { (heading) code { (first_line(text, PREVIEW_CHARS)) } small { (pictures_label(text).unwrap_or_else(|| size_label(text))) } }
                (self.long_text(place.number, text))
            }
        }
    }

    fn compaction_details(&self, entry: &Entry, place: &EntryPlace<'_>) -> Markup {
        let span = compacted_span(place.all, self.lanes, place.place);
        html! {
            details {
                summary {
                    b { "The agent's context was compacted here" }
                    span {
                        (count_of(span.entries as u64, "entry")) " above left the context"
                        (context_change(&span))
                    }
                }
                @if entry.content.trim().is_empty() {
                    p { "The summary that replaced them was not recorded." }
                } @else {
                    .md { (SafeMarkdown { text: &entry.content, breaks: false }) }
                }
            }
        }
    }

    /// A text as it is. A page contains only the prefix of a very long one.
    fn long_text(&self, number: usize, text: &str) -> Markup {
        let cut = self.base.and_then(|base| Some((base, text_prefix(text, MAX_INLINE_BYTES)?)));
        html! {
            @for piece in split_pictures(cut.map_or(text, |(_, shown)| shown)) {
                @match piece {
                    TextSegment::Text(text) => (text_block(text)),
                    TextSegment::Picture { media_type, hash } => (self.picture_tag(media_type, hash)),
                }
            }
            @if let Some((base, _)) = cut {
                a.more href={ (base) "/entry/" (number) } target="_blank" { "Show all " (size_label(text)) }
            }
        }
    }

    /// A message of the program, or an instruction to the model.
    fn notice_line(&self, number: usize, entry: &Entry) -> Markup {
        let name = capitalize_first(&entry.heading());
        let text = entry.content.trim_end();
        if text.len() <= MAX_NOTICE_CHARS && !text.contains('\n') {
            return html! { p.line { b { (name) } span { (clean_text(text)) } } };
        }
        html! {
            details {
                summary { b { (name) } span { (first_line(text, PREVIEW_CHARS)) } small { (size_label(text)) } }
                (self.long_text(number, text))
            }
        }
    }

    /// Appends the classes of an entry.
    fn push_classes(&self, page: &mut String, entry: &Entry, place: &EntryPlace<'_>) {
        let name = class_name(entry);
        let (is_lane, is_bad) = (entry.source != PRIMARY_SOURCE, is_error_entry(entry));
        if !is_lane && !is_bad {
            return page.push_str(name);
        }
        page.push('"');
        page.push_str(name);
        if is_lane {
            let (colour, deep) = (lane_colour(&entry.source), depth_class(place.depth));
            let runs = self.run_classes(place.place, None);
            write!(page, " lane {colour}{runs} {deep}").expect("a string takes all");
        }
        page.push_str(if is_bad { " bad\"" } else { "\"" });
    }
}

/// The class of an entry, by its kind.
fn class_name(entry: &Entry) -> &'static str {
    match entry.kind {
        EntryKind::Text if entry.role == Role::User => "user",
        EntryKind::Text if entry.role != Role::System => "said",
        EntryKind::Thinking => "thought",
        EntryKind::ToolCall => "call",
        EntryKind::ToolResult => "result",
        EntryKind::Compaction => "seam",
        EntryKind::Error => "error",
        _ => "notice",
    }
}

/// Whether an entry is a text of the main agent.
fn is_plain_answer(entry: &Entry) -> bool {
    class_name(entry) == "said" && entry.source == PRIMARY_SOURCE && !is_error_entry(entry)
}

/// Whether an entry is a notice that may be folded with others.
pub(super) fn is_plain_notice(entry: &Entry) -> bool {
    class_name(entry) == "notice" && !is_error_entry(entry)
}

/// Whether an entry is a notice without a text.
pub(super) fn is_empty_notice(entry: &Entry) -> bool {
    is_plain_notice(entry) && entry.content.trim().is_empty()
}

/// The largest text that is shown whole.
struct ShownWhole {
    bytes: usize,
    lines: usize,
}

/// The largest result and the largest error that are not folded.
const SHORT_RESULT: ShownWhole = ShownWhole { bytes: 1200, lines: 12 };
const SHORT_ERROR: ShownWhole = ShownWhole { bytes: 6000, lines: 60 };

impl ShownWhole {
    fn contains(&self, text: &str) -> bool {
        text.len() <= self.bytes && text.lines().nth(self.lines).is_none()
    }
}

/// How many pictures a text is; `None` if it has words.
fn pictures_label(text: &str) -> Option<String> {
    let segments = split_pictures(text);
    let is_picture = |one: &&TextSegment<'_>| matches!(one, TextSegment::Picture { .. });
    let is_blank =
        |one: &TextSegment<'_>| matches!(one, TextSegment::Text(text) if text.trim().is_empty());
    let pictures = segments.iter().filter(is_picture).count();
    let has_words = segments.iter().any(|one| !is_picture(&one) && !is_blank(one));
    (pictures > 0 && !has_words).then(|| count_of(pictures as u64, "picture"))
}

/// The size of a context before and after a compaction; nothing of an effect that it did not have.
fn context_change(span: &CompactedSpan) -> Markup {
    html! {
        @match (span.tokens_before, span.tokens_after) {
            (Some(before), Some(after)) if after < before => { ", which went from " (format_count(before)) " to " (format_count(after)) " tokens" },
            (Some(before), Some(after)) => { "; it had " (format_count(before)) " tokens before, and the next message read " (format_count(after)) },
            (Some(before), None) => { "; it had " (format_count(before)) " tokens" },
            (None, _) => {},
        }
    }
}

/// The name of a result, and how long the call took. The tool is named unless the call is right above.
fn result_heading(entry: &Entry, place: &EntryPlace<'_>) -> Markup {
    let is_pair =
        |call: &&Entry| call.kind == EntryKind::ToolCall && call.tool_call_id == entry.tool_call_id;
    let call = place.before.filter(is_pair);
    let name = if is_error_entry(entry) { "Failed" } else { "Result" };
    let tool = entry.tool_name.as_deref().filter(|_| call.is_none());
    let time = |entry: &Entry| entry.created_at.map(|at| at.instant().as_millisecond());
    let took = call.and_then(time).zip(time(entry)).map(|(begun, ended)| ended - begun);
    html! {
        b { (name) @if let Some(tool) = tool { " of " (clean_text(tool)) } }
        @if let Some(took) = took.filter(|took| *took >= 1000) {
            small title="From the call to its result" { (format_duration(took)) }
        }
    }
}

fn thinking_details(entry: &Entry) -> Markup {
    let text = &entry.content;
    if text.trim().is_empty() {
        return html! { p.line { b { "Thought" } span { "not recorded" } (TokenCounts::new(entry)) } };
    }
    html! {
        details {
            summary { b { "Thought" } span { (first_line(text, PREVIEW_CHARS)) } (TokenCounts::new(entry)) }
            .md { (SafeMarkdown { text, breaks: false }) }
        }
    }
}

/// The number of lines from which a text may need scrolling.
const SCROLL_LINES: usize = 20;

/// A text as it is. One that may need scrolling is reachable by keyboard.
pub(super) struct TextBlock<'a>(CleanText<'a>, bool);

pub(super) fn text_block(text: &str) -> TextBlock<'_> {
    TextBlock(clean_text(text), text.len() > 2000 || text.lines().nth(SCROLL_LINES).is_some())
}

impl Render for TextBlock<'_> {
    fn render_to(&self, page: &mut String) {
        page.push_str(if self.1 { "<pre tabindex=0>" } else { "<pre>" });
        self.0.render_to(page);
        page.push_str("</pre>");
    }
}

/// Whether an entry is an error.
pub(crate) fn is_error_entry(entry: &Entry) -> bool {
    entry.kind == EntryKind::Error || entry.is_tool_error()
}

/// The tokens of a message: prompt and output, and what they cost if it is a turn of its own.
pub(super) struct TokenCounts<'a> {
    usage: Option<&'a Usage>,
    cost: Option<String>,
}

impl<'a> TokenCounts<'a> {
    pub(super) fn new(entry: &'a Entry) -> Self {
        Self { usage: entry.usage.as_ref(), cost: None }
    }
}

impl Render for TokenCounts<'_> {
    fn render_to(&self, page: &mut String) {
        if let Some(usage) = self.usage.filter(|usage| !usage.is_empty()) {
            let (read, written) = (format_count(usage.prompt_tokens()), format_count(usage.output));
            // What belongs to one message of several is shown under the pointer only: the turn has the totals.
            let class = if self.cost.is_some() { " class=own" } else { "" };
            write!(page, "<i{class}>{read} in, {written} out").expect("a string takes all");
            if let Some(cost) = &self.cost {
                write!(page, ", {cost}").expect("a string takes all");
            }
            page.push_str("</i>");
        }
    }
}
