//! Renders Markdown as safe HTML. HTML in the text is escaped, links lead to the web only, and pictures from elsewhere
//! are replaced by their descriptions.

use maud::Render;
use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html,
};

use super::plain::{escape_html, visible_text};

/// Markdown to render.
pub(crate) struct SafeMarkdown<'a> {
    /// The text.
    pub(crate) text: &'a str,
    /// Whether to keep line breaks, as in text that a person typed.
    pub(crate) breaks: bool,
}

impl Render for SafeMarkdown<'_> {
    fn render_to(&self, page: &mut String) {
        let text = visible_text(self.text);
        let options =
            Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
        let has_rtl = text.chars().any(is_right_to_left);
        let mut tamer = EventSanitizer { breaks: self.breaks, has_rtl, open: Vec::new() };
        page.reserve(text.len() + text.len() / 4);
        html::push_html(page, Parser::new_ext(&text, options).map(|event| tamer.sanitize(event)));
    }
}

/// Whether a text is one line without Markdown syntax, so that it needs no paragraph.
pub(crate) fn is_plain_line(text: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphabetic() || *byte >= 0x80;
    let is_meant = |byte: u8| byte < b' ' || b"*_~`[]<>&\\!#|".contains(&byte);
    text.as_bytes().first().is_some_and(is_word) && !text.bytes().any(is_meant)
}

/// The text of Markdown without its marks, with a space between blocks.
pub(crate) fn plain_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                plain.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak | Event::Rule => plain.push(' '),
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough)
            | Event::End(TagEnd::Link | TagEnd::Image) => {}
            Event::End(_) => plain.push(' '),
            _ => {}
        }
    }
    plain
}

/// Replaces unsafe events of the parser.
struct EventSanitizer {
    breaks: bool,
    /// Whether the text has letters that are written from right to left.
    has_rtl: bool,
    /// The closing tags of open links and pictures.
    open: Vec<&'static str>,
}

impl EventSanitizer {
    fn sanitize<'a>(&mut self, event: Event<'a>) -> Event<'a> {
        match event {
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::SoftBreak if self.breaks => Event::HardBreak,
            Event::TaskListMarker(done) => Event::Text(if done { "☑ " } else { "☐ " }.into()),
            Event::Start(Tag::Link { dest_url, .. }) => self.open_link(&dest_url),
            Event::Start(Tag::Image { dest_url, .. }) => self.open_picture(&dest_url),
            Event::End(TagEnd::Link | TagEnd::Image) => {
                Event::InlineHtml(self.open.pop().unwrap_or_default().into())
            }
            Event::Start(Tag::Heading { level, .. }) => Event::Start(Tag::Heading {
                level: lower_heading(level),
                id: None,
                classes: Vec::new(),
                attrs: Vec::new(),
            }),
            Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(lower_heading(level))),
            // Alignment would need inline styles, which the content security policy forbids.
            Event::Start(Tag::Table(columns)) => {
                Event::Start(Tag::Table(vec![Alignment::None; columns.len()]))
            }
            // The bullets of a list are on the side where its text begins.
            Event::Start(Tag::List(start)) if self.has_rtl => Event::InlineHtml(match start {
                Some(start) => format!("<ol dir=\"auto\" start=\"{start}\">\n").into(),
                None => "<ul dir=\"auto\">\n".into(),
            }),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language_name(&language))))
            }
            other => other,
        }
    }

    fn open_link<'a>(&mut self, url: &str) -> Event<'a> {
        if !is_web_url(url) {
            self.open.push("</span>");
            return Event::InlineHtml(url_tag("<span class=\"link\" title=\"", url, "\">"));
        }
        self.open.push("</a>");
        let rest = "\" rel=\"noopener noreferrer nofollow\" target=\"_blank\">";
        Event::InlineHtml(url_tag("<a href=\"", url, rest))
    }

    /// A picture is not loaded; its description is shown instead.
    fn open_picture<'a>(&mut self, url: &str) -> Event<'a> {
        if is_web_url(url) {
            return self.open_link(url);
        }
        self.open.push("</span>");
        Event::InlineHtml("<span class=\"link\">".into())
    }
}

/// Whether a character is of a script that is written from right to left: Hebrew, Arabic and their relatives.
fn is_right_to_left(character: char) -> bool {
    matches!(character, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}')
}

/// Headings in a message are below those of the page.
fn lower_heading(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

/// The language of a code block, without other attributes.
fn language_name<'a>(language: &str) -> CowStr<'a> {
    let is_part = |c: char| c.is_alphanumeric() || "+#-_.".contains(c);
    let word: String = language.chars().take_while(|c| is_part(*c)).take(24).collect();
    word.to_lowercase().into()
}

fn is_web_url(url: &str) -> bool {
    let lower = url.trim_start().to_ascii_lowercase();
    ["http://", "https://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme))
}

fn url_tag<'a>(before: &str, url: &str, after: &str) -> CowStr<'a> {
    let mut text = before.to_owned();
    escape_html(url, &mut text);
    text.push_str(after);
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_has_no_marks() {
        let text = "## Report\n\n- **Branch**: `main`\n- [file](a.md) <b>x</b>\n\n1 * 2 * 3";
        let plain = plain_text(text);
        let words = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words, "Report Branch: main file <b>x</b> 1 * 2 * 3");
    }

    fn rendered(text: &str) -> String {
        SafeMarkdown { text, breaks: false }.render().0
    }

    #[test]
    fn html_is_escaped() {
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
    fn lists_of_right_to_left_text_begin_on_the_right() {
        assert!(rendered("- אור").contains("<ul dir=\"auto\">"));
        assert!(rendered("7. ضوء").contains("<ol dir=\"auto\" start=\"7\">"));
        assert!(rendered("- light").contains("<ul>"));
    }

    #[test]
    fn a_plain_line_needs_no_paragraph() {
        for text in ["Yes, do it (now).", "é: 50% done - 3 left"] {
            assert!(is_plain_line(text), "{text}");
            assert_eq!(rendered(text), format!("<p>{text}</p>\n"));
        }
        for text in ["", " x", "- x", "1. x", "a\nb", "a *b*", "a & b", "[x]", "> x", "a\\b"] {
            assert!(!is_plain_line(text), "{text}");
        }
    }

    #[test]
    fn output_has_no_inline_styles_or_forms() {
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
