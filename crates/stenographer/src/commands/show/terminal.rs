//! Steno's own view of a session: a heading, then each entry with speaker and time.

use jiff::tz::TimeZone;
use steno_model::{Entry, EntryKind, Role, Session, Timestamp, Transcript};
use steno_vault::notes::Note;
use uuid::Uuid;

use crate::amount::format_dollars;
use crate::text_table::{fit_columns, wrap_columns};
use crate::ui::{StyledText, TextStyle, count_noun, group_digits};

/// Stands between the facts of a heading.
const FACT_SEPARATOR: &str = " · ";

/// How a session is rendered.
pub(super) struct SessionLayout<'a> {
    pub(super) zone: &'a TimeZone,
    /// The heading is wrapped to it.
    pub(super) width: usize,
    /// The id of the entry that was asked for, which gets a mark.
    pub(super) hit: Option<Uuid>,
}

/// Renders the whole session; `noted` are the notes on the session itself.
pub(super) fn render_session(
    transcript: &Transcript,
    noted: &[Note],
    layout: &SessionLayout<'_>,
) -> Vec<StyledText> {
    let SessionLayout { zone, width, hit } = *layout;
    let heading = render_heading(&transcript.session, zone);
    let (title, facts) = heading.split_once('\n').unwrap_or((&heading, ""));
    // A path stays whole, so that it can be copied.
    let wrap_facts = |line: &str| match line.contains(FACT_SEPARATOR) {
        true => wrap_columns(line, width).join("\n") + "\n",
        false => format!("{line}\n"),
    };
    let mut parts = vec![
        StyledText { style: TextStyle::Title, text: format!("{title}\n") },
        StyledText { style: TextStyle::Faint, text: facts.lines().map(wrap_facts).collect() },
    ];
    parts.extend(noted.iter().map(|note| styled_note(note, zone)));
    parts.extend(render_entries(transcript, zone, hit));
    parts
}

/// Renders each entry with speaker, time and notes; a `>` marks the entry with the id `hit`.
pub(super) fn render_entries(
    transcript: &Transcript,
    zone: &TimeZone,
    hit: Option<Uuid>,
) -> Vec<StyledText> {
    let mut parts = Vec::new();
    for entry in &transcript.entries {
        let mark = if hit == Some(entry.entry_id) { "> " } else { "" };
        let caption = format!("\n{mark}{}\n", entry_caption(entry, zone));
        parts.push(StyledText { style: TextStyle::of_entry(entry), text: caption });
        parts.push(StyledText { style: TextStyle::Plain, text: entry_body(entry) });
        let notes = Note::for_entry(&transcript.notes, entry);
        parts.extend(notes.map(|note| styled_note(note, zone)));
    }
    parts
}

fn styled_note(note: &Note, zone: &TimeZone) -> StyledText {
    StyledText { style: TextStyle::Note, text: render_note(note, zone) }
}

impl TextStyle {
    /// Returns the style of an entry's caption.
    fn of_entry(entry: &Entry) -> Self {
        match entry.role {
            _ if entry.kind == EntryKind::Thinking => Self::Faint,
            Role::User => Self::User,
            Role::Assistant => Self::Assistant,
            Role::Tool => Self::Tool,
            _ => Self::Faint,
        }
    }
}

fn render_note(note: &Note, zone: &TimeZone) -> String {
    format!("Noted {}: {}\n", format_time(note.at, zone), note.text)
}

/// Renders one entry with speaker and time.
pub(crate) fn render_entry(entry: &Entry, zone: &TimeZone) -> String {
    format!("{}\n{}", entry_caption(entry, zone), entry_body(entry))
}

/// Renders the content of an entry, or the input of its tool.
fn entry_body(entry: &Entry) -> String {
    match &entry.tool_input {
        _ if !entry.content.is_empty() => {
            format!("{}\n", entry.content.trim_end_matches('\n'))
        }
        Some(input) => format!("{input}\n"),
        None => String::new(),
    }
}

/// Renders one line per entry.
pub(super) fn render_summary(transcript: &Transcript, zone: &TimeZone, width: usize) -> String {
    let mut text = render_heading(&transcript.session, zone);
    text.push('\n');
    for entry in &transcript.entries {
        let content = match (&entry.tool_input, entry.content.is_empty()) {
            (Some(input), true) => input.to_string(),
            _ => entry.content.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        text.push_str(&fit_columns(&format!("{}  {content}", entry_caption(entry, zone)), width));
        text.push('\n');
    }
    text
}

/// Renders title, status, times, totals and project of a session.
pub(crate) fn render_heading(session: &Session, zone: &TimeZone) -> String {
    let mut lines = vec![session.title.clone().unwrap_or_else(|| "(no title)".to_owned())];
    let mut facts = vec![session.agent.clone(), session.id.to_string(), session.status.to_string()];
    facts.extend(session.stop_reason.clone());
    facts.extend(session.parent.iter().map(|parent| format!("from {parent}")));
    lines.push(facts.join(FACT_SEPARATOR));
    let mut facts = Vec::new();
    if let Some(started) = session.started {
        let started = started.in_zone(zone);
        let ended = session.ended.map(|ended| ended.in_zone(zone)).map(|ended| {
            let is_same_day = ended.wall().date() == started.wall().date();
            format!(" to {}", if is_same_day { ended.clock_text() } else { ended.date_and_clock() })
        });
        facts.push(format!("{}{}", started.date_and_clock(), ended.unwrap_or_default()));
    }
    facts.push(count_noun(session.totals.entries, "entry"));
    if !session.totals.usage.is_empty() {
        let usage = &session.totals.usage;
        let (input, output) = (group_digits(usage.prompt_tokens()), group_digits(usage.output));
        facts.push(format!("{input} tokens in, {output} out"));
    }
    facts.extend(session.totals.cost.map(format_dollars));
    facts.extend(session.models.iter().cloned());
    lines.push(facts.join(FACT_SEPARATOR));
    lines.extend(session.project.clone());
    lines.join("\n") + "\n"
}

fn entry_caption(entry: &Entry, zone: &TimeZone) -> String {
    let mut words = Vec::new();
    words.extend(entry.created_at.map(|at| at.in_zone(zone).clock_text()));
    if entry.source != steno_model::entry::PRIMARY_SOURCE {
        words.push(format!("[{}]", entry.source));
    }
    words.push(entry.heading());
    words.join(" ")
}

fn format_time(at: Timestamp, zone: &TimeZone) -> String {
    at.in_zone(zone).date_and_clock()
}
