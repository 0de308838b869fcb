//! Calls of tools: in one line what is called with what, and behind it the arguments or the edit.

use maud::{Markup, Render, html};
use serde_json::Value;
use steno_core::Entry;
use steno_core::view::edits;

use super::entry::{Spent, block};
use super::markdown::Rich;
use super::plain::{clean, first_line};
use super::{Show, diff};

/// Arguments that say best what a call is about, in any agent's words.
const TELLING: [&str; 14] = [
    "command",
    "cmd",
    "pattern",
    "file_path",
    "filePath",
    "path",
    "notebook_path",
    "query",
    "url",
    "description",
    "prompt",
    "subject",
    "skill",
    "input",
];

/// Arguments that are code of a shell.
const SHELL: [&str; 3] = ["command", "cmd", "script"];

/// Characters of an argument that are shown in the line.
const PREVIEW: usize = 160;

impl Show<'_> {
    /// A call of a tool.
    pub(super) fn call(&self, page: &mut String, entry: &Entry) {
        let edits = edits::of(entry);
        let name = entry.tool_name.as_deref().unwrap_or("tool");
        if let Some(said) = entry.said_with_call() {
            page.push_str("<div class=md>");
            self.rich(page, said, false);
            page.push_str("</div>");
        }
        let call = html! {
            details open[diff::is_short(&edits)] {
                summary {
                    b { (clean(name)) } code { (about(entry)) }
                    @if let [edit] = edits.as_slice() { (diff::amount(edit)) }
                    (Spent(entry.usage.as_ref()))
                }
                @match edits.as_slice() {
                    [] => (arguments(entry)),
                    [edit] => (diff::lines(&edit.lines)),
                    several => { @for edit in several { (diff::edit(edit)) } },
                }
            }
        };
        call.render_to(page);
    }
}

/// What a call is about, in one line.
pub(crate) fn about(entry: &Entry) -> String {
    let Some(input) = &entry.tool_input else { return first_line(&entry.content, PREVIEW) };
    let told = TELLING.iter().find_map(|name| input.get(name)).or(match input {
        Value::Object(fields) => fields.values().next(),
        other => Some(other),
    });
    let words =
        |items: &[Value]| items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
    match told {
        Some(Value::String(text)) => first_line(text, PREVIEW),
        Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
            first_line(&words(items), PREVIEW)
        }
        Some(Value::Null) | None => String::new(),
        Some(other) => first_line(&other.to_string(), PREVIEW),
    }
}

fn arguments(entry: &Entry) -> Markup {
    let Some(input) = &entry.tool_input else {
        return block(&entry.content).render();
    };
    let Some(fields) = input.as_object() else { return argument("", input) };
    html! {
        dl {
            @for (name, value) in fields {
                dt { (clean(name)) }
                dd { (argument(name, value)) }
            }
        }
    }
}

fn argument(name: &str, value: &Value) -> Markup {
    match value {
        Value::String(text) if SHELL.contains(&name) => code_block(text, "sh"),
        Value::String(text) if name == "prompt" => {
            html! { .md { (Rich { text, breaks: false }) } }
        }
        Value::String(text) if !text.contains('\n') => html! { code { (clean(text)) } },
        Value::String(text) => block(text).render(),
        Value::Array(_) | Value::Object(_) => {
            code_block(&serde_json::to_string_pretty(value).unwrap_or_default(), "json")
        }
        plain => html! { code { (plain.to_string()) } },
    }
}

fn code_block(text: &str, language: &str) -> Markup {
    html! { pre { code class={ "language-" (language) } { (clean(text)) } } }
}
