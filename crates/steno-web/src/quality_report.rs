//! The section about the quality of a session: what went wrong, what repaired it, and how full the context became.
//! The page and exported files share it.

use maud::{Markup, html};
use steno_model::{Entry, EntryKind};
use steno_store::amount::format_count;
use steno_store::view::failures::{FailureRepair, RepairKind, SessionFailure};
use steno_store::view::quality::{RepeatedEntry, SessionQuality};

use crate::addresses::entry_link;
use crate::quality_counts::{RETRY_MEANING, problem_summary, split_errors};
use crate::render::plain::{clean_text, first_line};
use crate::render::result_text::ResultText;
use crate::render::tool::call_summary;
use crate::units::{count_of, exact_count};

/// How many entries of a group are listed.
const MAX_LISTED: usize = 200;

/// The most entries of a group that is unfolded at first.
const MAX_UNFOLDED: usize = 20;

/// How many characters of an entry are shown.
const PREVIEW_CHARS: usize = 160;

/// Words of the lines in which programs say what went wrong.
const ERROR_WORDS: [&str; 8] =
    ["error", "failed", "panicked", "fatal", "not found", "denied", "cannot", "no such"];

/// The heading of the section.
pub(crate) fn quality_heading(quality: &SessionQuality) -> Markup {
    html! { b { "Quality" } span { (problem_summary(quality)) } }
}

/// What went wrong, each with the entries that show it.
pub(crate) fn quality_report(quality: &SessionQuality, entries: &[Entry]) -> Markup {
    let unrepaired = quality.count_unrepaired();
    let outcome = match (quality.failures.len(), unrepaired) {
        (_, 0) => "Errors and failed tool calls: all repaired later".to_owned(),
        (all, open) if all == open => "Errors and failed tool calls: none repaired".to_owned(),
        (_, open) => {
            format!("Errors and failed tool calls: {} not repaired", exact_count(open as u64))
        }
    };
    let failures = quality.failures.iter().map(|failure| failure_item(failure, entries));
    let compactions = quality.compactions.iter().map(|number| {
        html! { .what { (entry_link(*number)) " " code { (entry_preview(&entries[*number])) } } }
    });
    let retries = pair_items(&quality.retries, "repeated in", entries);
    let undone = pair_items(&quality.undone_edits, "undone in", entries);
    html! {
        (quality_line(quality))
        (group(&outcome, failures))
        (group(&format!("Retries: {}", RETRY_MEANING.to_lowercase()), retries))
        (group("Edits that a later edit undid", undone))
        (group("Compactions of the context", compactions))
    }
}

/// A foldable list; nothing without items.
fn group(name: &str, items: impl ExactSizeIterator<Item = Markup>) -> Markup {
    let count = items.len();
    html! {
        @if count > 0 {
            details.quality open[count <= MAX_UNFOLDED] {
                summary { b { (exact_count(count as u64)) } span { (name) } }
                ul { @for item in items.take(MAX_LISTED) { li { (item) } } }
                @if count > MAX_LISTED { p.hint { (exact_count((count - MAX_LISTED) as u64)) " more are not shown." } }
            }
        }
    }
}

/// A failure: what was called, how it failed, and what repaired it.
fn failure_item(failure: &SessionFailure, entries: &[Entry]) -> Markup {
    let call = failure.call.map(|call| &entries[call]);
    let shown = call.unwrap_or(&entries[failure.number]);
    html! {
        @match failure.repair {
            Some(_) => span.outcome { "repaired" },
            None => span.outcome.unrepaired { "not repaired" },
        }
        .what {
            (entry_link(failure.number)) " " code { (entry_preview(shown)) }
            @if call.is_some() { p.error-line { (error_line(&entries[failure.number])) } }
            p.hint { (outcome_sentence(failure.repair)) }
        }
    }
}

/// What became of a failure.
fn outcome_sentence(repair: Option<FailureRepair>) -> Markup {
    let Some(FailureRepair { number, kind }) = repair else {
        return html! { "Nothing like it succeeded later." };
    };
    let reason = match kind {
        RepairKind::SameCall => "The same call succeeded in ",
        RepairKind::SameFile => "A later call for the same file succeeded in ",
        RepairKind::SameCommand => "The same command succeeded with other arguments in ",
        RepairKind::Continued => "The agent continued in ",
    };
    html! { (reason) (entry_link(number)) "." }
}

/// Entries that repeat or undo earlier ones.
fn pair_items<'a>(
    pairs: &'a [RepeatedEntry],
    relation: &'a str,
    entries: &'a [Entry],
) -> impl ExactSizeIterator<Item = Markup> + 'a {
    pairs.iter().map(move |pair| {
        html! {
            .what {
                (entry_link(pair.earlier)) " " code { (entry_preview(&entries[pair.earlier])) }
                p.hint { (relation) " " (entry_link(pair.later)) }
            }
        }
    })
}

/// The problems and the context of a session, in one line.
fn quality_line(quality: &SessionQuality) -> Markup {
    let (failed, others) = split_errors(quality);
    let all = [
        (failed, "failed call", "Tool calls whose result is an error"),
        (others, "other error", "Errors that are no results of tools, as of the model's API"),
        (quality.retries.len(), "retry", RETRY_MEANING),
        (quality.undone_edits.len(), "undone edit", "Edits that a later edit reversed"),
        (
            quality.compactions.len(),
            "compaction",
            "How often the agent replaced its context by a summary",
        ),
    ];
    html! {
        p.quality-line {
            @for (count, noun, about) in all {
                span.none[count == 0] title=(about) { (count_of(count as u64, noun)) }
            }
            @if let Some(peak) = quality.largest_context {
                span title={ "The most tokens that the model read at once: " (exact_count(peak.tokens)) } {
                    "largest context " (format_count(peak.tokens)) " tokens, at " (entry_link(peak.number))
                }
            }
        }
    }
}

/// An entry in one line.
fn entry_preview(entry: &Entry) -> Markup {
    let text = match entry.kind {
        EntryKind::ToolCall => call_summary(entry),
        _ => error_line(entry),
    };
    html! { @if let Some(tool) = &entry.tool_name { b { (clean_text(tool)) } " " } (clean_text(&text)) }
}

/// The first line of a result that names an error, or the first line.
fn error_line(entry: &Entry) -> String {
    let result = ResultText::parse(&entry.content);
    let names_error = |line: &&str| {
        let line = line.to_lowercase();
        ERROR_WORDS.iter().any(|word| line.contains(word))
    };
    let output = result.output.as_ref();
    first_line(output.lines().find(names_error).unwrap_or(output), PREVIEW_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steno_model::Role;

    use super::*;

    fn run(id: &str, command: &str, error: Option<&str>) -> [Entry; 2] {
        let mut call = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        call.tool_call_id = Some(id.to_owned());
        call.tool_name = Some("Bash".to_owned());
        call.tool_input = Some(json!({ "command": command }));
        let mut result = Entry::new(Role::Tool, EntryKind::ToolResult, error.unwrap_or("ok"));
        result.tool_call_id = Some(id.to_owned());
        result.extra.insert("is_error".to_owned(), json!(error.is_some()));
        [call, result]
    }

    fn report(entries: &[Entry]) -> String {
        quality_report(&SessionQuality::from_entries(entries), entries).0
    }

    #[test]
    fn a_failure_names_its_call_its_error_and_its_repair() {
        let entries = [
            run("1", "cargo test login", Some("cannot find <value>")),
            run("2", "gh pr create", Some("Asking the server\naccess denied")),
            run("3", "cargo test", None),
        ]
        .concat();
        let report = report(&entries);
        assert!(
            report.contains("2</b><span>Errors and failed tool calls: 1 not repaired"),
            "{report}"
        );
        assert!(
            report.contains("cargo test login") && report.contains("cannot find &lt;value&gt;")
        );
        assert!(report.contains("with other arguments in <a href=\"#e4\">entry 4</a>"), "{report}");
        assert!(report.contains("<p class=\"error-line\">access denied</p>"), "{report}");
        assert!(report.contains("Nothing like it succeeded later."));
    }

    #[test]
    fn groups_of_a_short_session_are_unfolded() {
        let failures = |count: usize| {
            let runs = (0..count).map(|at| run(&at.to_string(), &format!("ls {at}"), Some("no")));
            report(&runs.flatten().collect::<Vec<_>>())
        };
        assert!(failures(MAX_UNFOLDED).contains("<details class=\"quality\" open>"));
        assert!(!failures(MAX_UNFOLDED + 1).contains(" open>"));
        assert!(failures(MAX_LISTED + 2).contains("2 more are not shown."));
    }
}
