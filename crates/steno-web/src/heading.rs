//! The heading of a session, and parts that all pages share.

use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_model::{Entry, EntryKind, Role, Session, SessionStatus};
use steno_store::amount::format_count;
use steno_store::view::lanes::SubagentLanes;
use steno_store::view::quality::SessionQuality;
use steno_vault::notes::Note;

use crate::addresses::short_model;
use crate::quality_counts::problem_summary;
use crate::render::ForkPoint;
use crate::render::note::note_aside;
use crate::render::plain::{clean_text, first_line, visible_text};
use crate::session_person::session_person;
use crate::units::{COST_EXPLANATION, exact_count, explain_tokens, format_duration};

/// The title and metadata of a session.
pub(crate) fn session_heading(session: &Session, facts: &HeadingFacts<'_>) -> Markup {
    let usage = &session.totals.usage;
    html! {
        h1 { (full_title(session, facts.entries)) }
        ul.facts {
            li { (agent_label(session)) " " (status_badge(facts.status)) }
            @if let Some(person) = session_person(session) { li title="Whose session it is" { "by " b { (clean_text(person)) } } }
            @if let Some(started) = session.started {
                li title="Start of the session" { (started.in_zone(facts.zone).wall().strftime("%-d %B %Y, %H:%M")) }
            }
            @if let Some(length) = session_duration(session) { li title="From the first entry to the last" { (length) } }
            li title="Messages, tool calls and results, and notices" { (entry_count(session)) }
            @if !usage.is_empty() {
                li title=(explain_tokens(usage)) { b { (format_count(usage.prompt_tokens())) } " tokens in, " b { (format_count(usage.output)) } " out" }
            }
            @if let Some(cost) = &facts.cost { li title=(COST_EXPLANATION) { b { (cost) } } }
            @for model in &session.models { li title={ "Model " (clean_text(model)) } { (clean_text(short_model(model))) } }
            @if let Some(project) = &session.project { li title="Project folder" { code { (clean_text(project)) } } }
            @if let Some(branch) = branch_name(session) { li title="Git branch" { "on " code { (clean_text(branch)) } } }
            @if let Some(reason) = session.stop_reason.as_deref().and_then(stop_text) { li title="Why the agent stopped" { "stopped: " (clean_text(&reason)) } }
            @if let Some(quality) = facts.quality.filter(|quality| !quality.is_clean()) {
                li { a href="#quality" title="Errors, retries, undone edits and compactions: show them" { (problem_summary(quality)) } }
            }
            @if let Some(fork) = facts.fork { li { (fork_fact(fork)) } }
        }
    }
}

/// Why an agent stopped, in words; `None` if it was done.
fn stop_text(reason: &str) -> Option<String> {
    let is_done = matches!(reason, "" | "end_turn" | "stop" | "completed" | "done" | "success");
    (!is_done).then(|| reason.replace(['_', '-'], " "))
}

/// The branch of a session; `None` for a detached head.
pub(crate) fn branch_name(session: &Session) -> Option<&str> {
    session.branch.as_deref().filter(|name| !name.is_empty())
}

/// The links to the list and to the sessions beside this one. A script fills in their addresses.
pub(crate) fn list_links() -> Markup {
    html! {
        nav.list-links aria-label="List of sessions" {
            a #list-back href="/" title="Back to the list (u)" { "‹ All sessions" }
            span.room {}
            small #list-place {}
            a #list-previous { "Previous" }
            a #list-next { "Next" }
        }
    }
}

/// What a heading shows besides the session itself.
pub(crate) struct HeadingFacts<'a> {
    /// The zone of its times.
    pub(crate) zone: &'a TimeZone,
    /// The current status.
    pub(crate) status: SessionStatus,
    /// The cost of the session, as text.
    pub(crate) cost: Option<String>,
    /// Where the session left its parent.
    pub(crate) fork: Option<&'a ForkPoint>,
    /// What went wrong in the session, if the page has a section about it.
    pub(crate) quality: Option<&'a SessionQuality>,
    /// The entries of the session.
    pub(crate) entries: &'a [Entry],
}

fn fork_fact(fork: &ForkPoint) -> Markup {
    html! {
        @match fork.place {
            0 => {
                @let call = fork.call.map_or_else(String::new, |call| format!("#e{call}"));
                "started by " a href={ (fork.address) (call) } title="The session, at the call that started this one" { (clean_text(&fork.title)) }
            }
            place => { "forked from " a href={ (fork.address) "#e" (place - 1) } { (clean_text(&fork.title)) } " after entry " (place - 1) }
        }
    }
}

/// The notes on a session.
pub(crate) fn session_notes(notes: &[&Note], zone: &TimeZone) -> Markup {
    html! {
        div #notes .notes {
            @for one in notes { (note_aside(one, zone)) }
        }
    }
}

/// The runs of entries, if they are out of numeric order: first number and count of each.
pub(crate) fn lane_runs(lanes: &SubagentLanes) -> Option<String> {
    let runs = lanes.consecutive_runs();
    let pairs = runs.iter().map(|(first, count)| format!("{first} {count}"));
    (!runs.is_empty()).then(|| pairs.collect::<Vec<_>>().join(" "))
}

/// The title of a session: one readable line, never a blob of data.
pub(crate) fn session_title(session: &Session) -> String {
    let readable = session.title.as_deref().and_then(readable_line);
    readable.unwrap_or_else(|| {
        let id: String = session.id.as_str().chars().take(8).collect();
        format!("Untitled session {id}")
    })
}

/// The title of a session. If it is the begin of a prompt, more of that is shown than in a list.
fn full_title(session: &Session, entries: &[Entry]) -> String {
    let title = session_title(session);
    let longer = || {
        let begin = title.strip_suffix('…')?;
        let is_prompt = |entry: &&Entry| entry.role == Role::User && entry.kind == EntryKind::Text;
        let prompt = entries.iter().find(is_prompt)?;
        let line = prompt.content.lines().map(str::trim).find(|line| line.starts_with(begin))?;
        Some(first_line(line, MAX_TITLE_CHARS))
    };
    longer().unwrap_or(title)
}

/// The most characters of a title above its session.
const MAX_TITLE_CHARS: usize = 200;

/// The first line of a title that a person can read; tags around it are left out.
fn readable_line(title: &str) -> Option<String> {
    let shown = visible_text(title);
    let mut lines = shown.lines().map(|line| strip_outer_tag(line.trim()));
    lines.find(|line| !line.is_empty() && !is_blob(line)).map(str::to_owned)
}

/// A line without the tag that it begins with and the one that closes it: `<task>Fix it</task>` is `Fix it`.
fn strip_outer_tag(line: &str) -> &str {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let tag = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    let Some((name, inner)) = tag.filter(|(name, _)| is_name(name)) else { return line };
    let close = format!("</{name}>");
    match inner.strip_suffix(&close) {
        Some(inner) => inner.trim(),
        None if inner.contains(&close) => line,
        None => inner.trim(),
    }
}

/// Whether a line is data: JSON, or a long run of characters without a space.
fn is_blob(line: &str) -> bool {
    let is_json = line.starts_with(['{', '[']) && line.contains("\":");
    let longest = line.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
    let is_address = line.contains("://") || line.contains('/');
    is_json || (longest > MAX_WORD_CHARS && !is_address)
}

/// The longest word of a readable title, in characters.
const MAX_WORD_CHARS: usize = 60;

/// The agent of a session.
pub(crate) fn agent_label(session: &Session) -> Markup {
    html! { span.agent { (clean_text(&session.agent)) } }
}

/// The status of a session, unless it is completed.
pub(crate) fn status_badge(status: SessionStatus) -> Markup {
    html! {
        @match status {
            SessionStatus::Running => span.agent.running title="It is being recorded, or was active in the last minutes" { "running" },
            SessionStatus::Failed => span.agent.failed { "failed" },
            SessionStatus::Canceled => span.agent { "canceled" },
            SessionStatus::Completed => {}
        }
    }
}

/// The number of entries.
pub(crate) fn entry_count(session: &Session) -> Markup {
    let count = session.totals.entries;
    html! { b { (exact_count(count)) } @if count == 1 { " entry" } @else { " entries" } }
}

/// The duration of a session.
pub(crate) fn session_duration(session: &Session) -> Option<String> {
    let seconds = session.ended?.unix_seconds() - session.started?.unix_seconds();
    match seconds {
        ..1 => None,
        60..3600 => Some(format!("{} min", seconds / 60)),
        _ => Some(format_duration(seconds * 1000)),
    }
}

/// The input that finds text in a session: on the page itself, or with the server's help.
pub(crate) fn find_box(server: bool) -> Markup {
    html! {
        span #found .found role="status" {}
        input #find data-server[server] type="search" placeholder="Find…" aria-label="Find in session";
    }
}

/// The buttons that fold and unfold all entries.
pub(crate) fn reader_buttons() -> Markup {
    html! {
        button #unfold type="button" title="Unfold all (E)" { "Unfold all" }
        button #fold type="button" title="Fold all (C)" { "Fold all" }
    }
}

/// The button that switches between light and dark.
pub(crate) fn theme_button() -> Markup {
    html! { button #theme type="button" aria-label="Light or dark" title="Light or dark" { "◐" } }
}

#[cfg(test)]
mod tests {
    use steno_model::SessionId;

    use super::*;

    fn title_of(title: Option<&str>) -> String {
        let id = "0b1c2d3e-0000-4000-8000-000000000001".parse::<SessionId>();
        let mut session = Session::new(id.expect("the id is valid"), "codex");
        session.title = title.map(str::to_owned);
        session_title(&session)
    }

    #[test]
    fn a_title_is_a_readable_line() {
        assert_eq!(title_of(Some("Fix it")), "Fix it");
        assert_eq!(title_of(Some("\n\n  Fix it\nnow")), "Fix it");
        assert_eq!(
            title_of(Some("<command-message>init is running</command-message>")),
            "init is running"
        );
        assert_eq!(title_of(Some("<b>bold</b> words")), "<b>bold</b> words");
        let address = "see https://example.org/a/very/long/address/that/goes/on/and/on/and/on";
        assert_eq!(title_of(Some(address)), address);
    }

    #[test]
    fn a_cut_title_continues_above_its_session() {
        let prompt = format!("Fix the {} of the harbour", "very ".repeat(20));
        let id = "0b1c2d3e-0000-4000-8000-000000000001".parse::<SessionId>();
        let mut session = Session::new(id.expect("the id is valid"), "codex");
        session.title = Some(format!("{}…", &prompt[..79]));
        let entry = |text: &str| Entry::new(Role::User, EntryKind::Text, text);
        assert_eq!(full_title(&session, &[entry(&prompt)]), prompt);
        assert_eq!(full_title(&session, &[entry("Another prompt")]), session_title(&session));
        let long = format!("{prompt}{}", "!".repeat(200));
        let shown = full_title(&session, &[entry(&long)]);
        assert!(shown.ends_with('…') && shown.chars().count() == MAX_TITLE_CHARS + 1, "{shown}");
    }

    #[test]
    fn only_an_unusual_end_is_named() {
        assert_eq!(stop_text("end_turn"), None);
        assert_eq!(stop_text("max_tokens").as_deref(), Some("max tokens"));
    }

    #[test]
    fn a_blob_is_no_title() {
        for blob in [None, Some(""), Some("{\"role\": \"user\"}"), Some(&"QUJD".repeat(20))] {
            assert_eq!(title_of(blob), "Untitled session 0b1c2d3e");
        }
        assert_eq!(title_of(Some("{\"a\": 1}\nRead this")), "Read this");
    }
}
