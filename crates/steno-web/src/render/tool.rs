//! Renders tool calls: a summary line, and the arguments or edits when unfolded.

use maud::{Markup, Render, html};
use serde_json::Value;
use steno_model::Entry;
use steno_store::view::edits;

use super::entry::{TokenCounts, text_block};
use super::markdown::SafeMarkdown;
use super::plain::{clean_text, first_line};
use super::{EntryRenderer, diff};
use crate::addresses::{last_segment, path_in_project};

/// Arguments that summarize a call best, with the names that agents use.
const SUMMARY_ARGUMENTS: [&str; 14] = [
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

/// Arguments that contain shell code.
const SHELL_ARGUMENTS: [&str; 3] = ["command", "cmd", "script"];

/// Arguments that contain a plan, and the fields with the text of a step.
const PLAN_ARGUMENTS: [&str; 3] = ["todos", "plan", "steps"];
const PLAN_TEXTS: [&str; 4] = ["content", "step", "text", "title"];

/// How many characters of an argument are in the summary.
const ARGUMENT_PREVIEW_CHARS: usize = 160;

impl EntryRenderer<'_> {
    /// Renders a tool call.
    pub(super) fn render_tool_call(&self, page: &mut String, number: usize, entry: &Entry) {
        let edits = edits::find_edits(entry);
        let name = entry.tool_name.as_deref().unwrap_or("tool");
        if let Some(message) = entry.text_beside_call() {
            page.push_str("<div class=md>");
            self.render_markdown(page, message, false);
            page.push_str("</div>");
        }
        let call = html! {
            details open[diff::is_short_edit(&edits)] {
                summary {
                    b { (clean_text(name)) } code { (path_in_project(&call_summary(entry), self.project)) }
                    @if let [edit] = edits.as_slice() { (diff::edit_amount(edit)) }
                    @if let Some((at, count)) = self.outline.parallel_calls.get(&number) { small.at-once { (at) " of " (count) " at once" } }
                    (TokenCounts::new(entry))
                }
                @match edits.as_slice() {
                    [] => (call_arguments(entry)),
                    [edit] => (diff::edit_lines(&edit.lines)),
                    several => { @for edit in several { (diff::edit_details(edit, self.project)) } },
                }
            }
        };
        call.render_to(page);
    }
}

/// The summary of a call, in one line.
pub(crate) fn call_summary(entry: &Entry) -> String {
    let Some(input) = &entry.tool_input else {
        return first_line(&entry.content, ARGUMENT_PREVIEW_CHARS);
    };
    if let Some((_, steps)) = plan_steps(input) {
        return plan_summary(&steps);
    }
    let value = SUMMARY_ARGUMENTS.iter().find_map(|name| input.get(name)).or(match input {
        Value::Object(fields) => fields.values().next(),
        other => Some(other),
    });
    let words =
        |items: &[Value]| items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
    match value {
        Some(Value::String(text)) => first_line(text, ARGUMENT_PREVIEW_CHARS),
        Some(list @ Value::Array(_)) if shell_script(list).is_some() => {
            first_line(shell_script(list).unwrap_or_default(), ARGUMENT_PREVIEW_CHARS)
        }
        Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
            first_line(&words(items), ARGUMENT_PREVIEW_CHARS)
        }
        Some(Value::Null) | None => String::new(),
        Some(other) => first_line(&other.to_string(), ARGUMENT_PREVIEW_CHARS),
    }
}

/// The script of a command such as `["bash", "-lc", SCRIPT]`.
fn shell_script(command: &Value) -> Option<&str> {
    let words: Option<Vec<&str>> = command.as_array()?.iter().map(Value::as_str).collect();
    let [shell, flag, script] = words?.try_into().ok()?;
    let is_shell = matches!(last_segment(shell), "bash" | "sh" | "zsh");
    (is_shell && matches!(flag, "-c" | "-lc")).then_some(script)
}

fn call_arguments(entry: &Entry) -> Markup {
    let Some(input) = &entry.tool_input else {
        return text_block(&entry.content).render();
    };
    let Some(fields) = input.as_object() else { return argument_value("", input) };
    let plan = plan_steps(input);
    html! {
        dl {
            @for (name, value) in fields {
                dt { (clean_text(name)) }
                @match plan.as_ref().filter(|(plan, _)| plan == name) {
                    Some((_, steps)) => dd { (plan_list(steps)) },
                    None => dd { (argument_value(name, value)) },
                }
            }
        }
    }
}

/// A step of a plan, as agents write it into a tool call.
struct PlanStep<'a> {
    text: &'a str,
    status: &'a str,
}

/// The argument that contains a plan, and its steps. Every step has a text and a status.
fn plan_steps(input: &Value) -> Option<(&'static str, Vec<PlanStep<'_>>)> {
    let (name, all) =
        PLAN_ARGUMENTS.into_iter().find_map(|name| Some((name, input.get(name)?.as_array()?)))?;
    let steps = all.iter().map(plan_step).collect::<Option<Vec<_>>>()?;
    (!steps.is_empty()).then_some((name, steps))
}

fn plan_step(value: &Value) -> Option<PlanStep<'_>> {
    let text = PLAN_TEXTS.into_iter().find_map(|name| value.get(name)?.as_str())?;
    Some(PlanStep { text, status: value.get("status")?.as_str()? })
}

fn is_done(step: &PlanStep<'_>) -> bool {
    matches!(step.status, "completed" | "done")
}

/// How far a plan is, and what is done now.
fn plan_summary(steps: &[PlanStep<'_>]) -> String {
    let done = steps.iter().filter(|step| is_done(step)).count();
    let now = steps.iter().find(|step| !is_done(step)).map_or("", |step| step.text);
    let colon = if now.is_empty() { "" } else { ": " };
    let now = first_line(now, ARGUMENT_PREVIEW_CHARS);
    format!("{done} of {} done{colon}{now}", steps.len())
}

fn plan_list(steps: &[PlanStep<'_>]) -> Markup {
    html! {
        ul.plan {
            @for step in steps {
                li.done[is_done(step)] title=(clean_text(step.status)) {
                    @if is_done(step) { "☑ " } @else if step.status == "in_progress" { "▸ " } @else { "☐ " }
                    (clean_text(step.text))
                }
            }
        }
    }
}

fn argument_value(name: &str, value: &Value) -> Markup {
    match value {
        list @ Value::Array(_) if shell_script(list).is_some() => {
            code_block(shell_script(list).unwrap_or_default(), "sh")
        }
        Value::String(text) if SHELL_ARGUMENTS.contains(&name) => code_block(text, "sh"),
        Value::String(text) if name == "prompt" => {
            html! { .md { (SafeMarkdown { text, breaks: false }) } }
        }
        Value::String(text) if !text.contains('\n') => html! { code { (clean_text(text)) } },
        Value::String(text) => text_block(text).render(),
        Value::Array(_) | Value::Object(_) => {
            code_block(&serde_json::to_string_pretty(value).unwrap_or_default(), "json")
        }
        plain => html! { code { (plain.to_string()) } },
    }
}

fn code_block(text: &str, language: &str) -> Markup {
    html! { pre { code class={ "language-" (language) } { (clean_text(text)) } } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steno_model::{EntryKind, Role};

    use super::*;

    #[test]
    fn a_shell_command_is_its_script() {
        let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        entry.tool_input = Some(json!({"command": ["/bin/bash", "-lc", "cargo test | tail"]}));
        assert_eq!(call_summary(&entry), "cargo test | tail");
        assert!(call_arguments(&entry).0.contains(">cargo test | tail</code>"));
        entry.tool_input = Some(json!({"command": ["git", "-c", "x=y"]}));
        assert_eq!(call_summary(&entry), "git -c x=y");
    }

    #[test]
    fn a_plan_is_a_list_of_steps() {
        let input = json!({"todos": [
            {"content": "Read <it>", "status": "completed"},
            {"content": "Write it", "status": "in_progress"},
            {"content": "Test it", "status": "pending"},
        ]});
        let (name, steps) = plan_steps(&input).expect("there is a plan");
        assert_eq!((name, plan_summary(&steps).as_str()), ("todos", "1 of 3 done: Write it"));
        let list = plan_list(&steps).0;
        assert!(list.contains("☑ Read &lt;it&gt;") && list.contains("▸ Write it"), "{list}");
        assert!(list.contains("☐ Test it"), "{list}");
        let done = json!({"plan": [{"step": "Go", "status": "completed"}]});
        assert_eq!(plan_summary(&plan_steps(&done).expect("there is a plan").1), "1 of 1 done");
        for other in
            [json!({"steps": [1, 2]}), json!({"plan": []}), json!({"todos": [{"content": "x"}]})]
        {
            assert!(plan_steps(&other).is_none(), "{other}");
        }
    }
}
