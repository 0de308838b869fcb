//! Markdown as HTML that is safe whatever the text says: HTML in it is shown as text, links lead to the web only, and
//! pictures from elsewhere are named, not loaded.

use maud::Render;
use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html,
};

use super::plain::{escape, visible};

/// A text as HTML.
pub(crate) struct Rich<'a> {
    /// The Markdown.
    pub(crate) text: &'a str,
    /// Whether a line break counts, as where a person typed it.
    pub(crate) breaks: bool,
}

impl Render for Rich<'_> {
    fn render_to(&self, page: &mut String) {
        let text = visible(self.text);
        let options =
            Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
        let mut tamer = Tamer { breaks: self.breaks, open: Vec::new() };
        page.reserve(text.len() + text.len() / 4);
        html::push_html(page, Parser::new_ext(&text, options).map(|event| tamer.tame(event)));
    }
}

/// Whether a text is one line in which nothing has a meaning, so that it needs no paragraph of its own.
pub(crate) fn is_plain(text: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphabetic() || *byte >= 0x80;
    let is_meant = |byte: u8| byte < b' ' || b"*_~`[]<>&\\!#|".contains(&byte);
    text.as_bytes().first().is_some_and(is_word) && !text.bytes().any(is_meant)
}

/// Turns what could do harm into what cannot.
struct Tamer {
    breaks: bool,
    /// How each link and picture that is open has to be closed.
    open: Vec<&'static str>,
}

impl Tamer {
    fn tame<'a>(&mut self, event: Event<'a>) -> Event<'a> {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::SoftBreak if self.breaks => Event::HardBreak,
            Event::TaskListMarker(done) => Event::Text(if done { "☑ " } else { "☐ " }.into()),
            Event::Start(Tag::Link { dest_url, .. }) => self.link(&dest_url),
            Event::Start(Tag::Image { dest_url, .. }) => self.picture(&dest_url),
            Event::End(TagEnd::Link | TagEnd::Image) => {
                Event::InlineHtml(self.open.pop().unwrap_or_default().into())
            }
            Event::Start(Tag::Heading { level, .. }) => Event::Start(Tag::Heading {
                level: below(level),
                id: None,
                classes: Vec::new(),
                attrs: Vec::new(),
            }),
            Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(below(level))),
            // Alignment would need a style of its own.
            Event::Start(Tag::Table(columns)) => {
                Event::Start(Tag::Table(vec![Alignment::None; columns.len()]))
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(word(&language))))
            }
            other => other,
        }
    }

    fn link<'a>(&mut self, url: &str) -> Event<'a> {
        if !leads_to_the_web(url) {
            self.open.push("</span>");
            return Event::InlineHtml(tag("<span class=\"link\" title=\"", url, "\">"));
        }
        self.open.push("</a>");
        let rest = "\" rel=\"noopener noreferrer nofollow\" target=\"_blank\">";
        Event::InlineHtml(tag("<a href=\"", url, rest))
    }

    /// A picture is not loaded: its words stand for it.
    fn picture<'a>(&mut self, url: &str) -> Event<'a> {
        if leads_to_the_web(url) {
            return self.link(url);
        }
        self.open.push("</span>");
        Event::InlineHtml("<span class=\"link\">".into())
    }
}

/// Headings of a message stand below those of the page.
fn below(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

/// The language of a block of code, without what else stands there.
fn word<'a>(language: &str) -> CowStr<'a> {
    let is_part = |c: char| c.is_alphanumeric() || "+#-_.".contains(c);
    let word: String = language.chars().take_while(|c| is_part(*c)).take(24).collect();
    word.to_lowercase().into()
}

fn leads_to_the_web(url: &str) -> bool {
    let lower = url.trim_start().to_ascii_lowercase();
    ["http://", "https://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme))
}

fn tag<'a>(before: &str, url: &str, after: &str) -> CowStr<'a> {
    let mut text = before.to_owned();
    escape(url, &mut text);
    text.push_str(after);
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> String {
        Rich { text, breaks: false }.render().0
    }

    #[test]
    fn html_is_text() {
        let text = rendered("a <script>alert(1)</script> <b onclick=x>\n\n<style>p{}</style>\n");
        assert!(
            !text.contains("<script") && !text.contains("<b ") && !text.contains("<style"),
            "{text}"
        );
        assert!(text.contains("&lt;script&gt;"), "{text}");
    }

    #[test]
    fn links_lead_to_the_web_only() {
        let text = rendered(
            "[a](https://x.y/?a=\"b) [b](javascript:alert(1)) [c](/etc) <data:text/html,x>",
        );
        assert_eq!(text.matches("<a href").count(), 1, "{text}");
        assert!(text.contains("href=\"https://x.y/?a=&quot;b\" rel=\"noopener"), "{text}");
    }

    #[test]
    fn pictures_are_not_loaded() {
        let text = rendered("![cat](https://x.y/c.png) ![d](data:image/svg+xml,x)");
        assert!(!text.contains("<img"), "{text}");
        assert!(
            text.contains(">cat</a>") && text.contains("<span class=\"link\">d</span>"),
            "{text}"
        );
    }

    #[test]
    fn a_line_without_a_meaning_is_no_paragraph() {
        for text in ["Yes, do it (now).", "é: 50% done - 3 left"] {
            assert!(is_plain(text), "{text}");
            assert_eq!(rendered(text), format!("<p>{text}</p>\n"));
        }
        for text in ["", " x", "- x", "1. x", "a\nb", "a *b*", "a & b", "[x]", "> x", "a\\b"] {
            assert!(!is_plain(text), "{text}");
        }
    }

    #[test]
    fn nothing_needs_a_style_or_a_form() {
        let text = rendered(
            "|a|b|\n|:-|-:|\n|1|2|\n\n- [x] done\n\n# Top\n\n```rust,ignore x=\"y\nfn\n```",
        );
        assert!(!text.contains("style=") && !text.contains("<input"), "{text}");
        assert!(
            text.contains("<h3>Top</h3>") && text.contains("class=\"language-rust\""),
            "{text}"
        );
    }
}
