//! A note for whoever continues a session: its task, decisions, changed files and open ends, quoted from the record.
//!
//! No model writes it: every line is a quotation with the number of its entry, or a count.

mod open_ends;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::file_changes::find_file_changes;
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role};
use steno_model::prompt::{without_agent_blocks, without_thread_blocks};
use steno_model::session::{Session, Transcript};

/// The most requests that are quoted: the first and the last ones.
const MAX_REQUESTS: usize = 4;

/// The most decisions, the last ones.
const MAX_DECISIONS: usize = 12;

/// The most files, those that were edited last.
const MAX_FILES: usize = 40;

/// The longest quotation of a request, in characters.
const MAX_REQUEST_CHARS: usize = 2_000;

/// The longest quotation of anything else, in characters.
const MAX_QUOTE_CHARS: usize = 400;

/// Words of sentences in which a model decides something.
const MODEL_DECISION_WORDS: [&str; 11] = [
    "decided",
    "decision",
    "instead of",
    "rather than",
    "i chose",
    "chose to",
    "going with",
    "we agreed",
    "root cause",
    "trade-off",
    "won't ",
];

/// Words of sentences in which a user decides something.
const USER_DECISION_WORDS: [&str; 9] = [
    "instead",
    "must ",
    "do not ",
    "don't ",
    "never ",
    "always ",
    "decided",
    "rather ",
    "keep the ",
];

/// The note.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HandoffNote {
    /// Steno's id of the session.
    pub session: String,
    /// Its agent.
    pub agent: String,
    /// Its title.
    pub title: Option<String>,
    /// Its project folder.
    pub project: Option<String>,
    /// The branch checked out there.
    pub branch: Option<String>,
    /// The first request, and the last ones.
    pub task: Vec<QuotedEntry>,
    /// The number of requests between them, which are not quoted.
    pub omitted_requests: usize,
    /// Sentences in which something was decided, the last ones.
    pub decisions: Vec<QuotedEntry>,
    /// Files that were edited.
    pub files: Vec<HandedOffFile>,
    /// The number of further files.
    pub omitted_files: usize,
    /// What was not finished.
    pub open_ends: Vec<OpenEnd>,
    /// The last answer.
    pub last_answer: Option<QuotedEntry>,
}

/// A quotation from an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QuotedEntry {
    /// `SESSION:NUMBER`, which `steno show` accepts.
    pub id: String,
    /// Who wrote it.
    pub role: String,
    /// The text.
    pub text: String,
}

/// A file that the session edited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HandedOffFile {
    /// The path, as the agent names it.
    pub path: String,
    /// The number of edits.
    pub edits: usize,
    /// The last edit.
    pub last_edit: String,
}

/// Something that was not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenEnd {
    /// What: `unanswered request`, `call without result`, `failed call`, `open task` or `question`.
    pub kind: &'static str,
    /// The entry.
    #[serde(flatten)]
    pub quote: QuotedEntry,
}

impl HandoffNote {
    /// Makes the note of a session.
    pub fn from_transcript(transcript: &Transcript) -> Self {
        let Transcript { session, entries, .. } = transcript;
        let quotes = EntryQuotes { session: session.id.as_str(), entries };
        let (task, omitted_requests) = quotes.quote_task();
        let (files, omitted_files) = quotes.list_files();
        let Session { agent, title, project, branch, .. } = session.clone();
        Self {
            session: session.id.as_str().to_owned(),
            agent,
            title,
            project,
            branch,
            task,
            omitted_requests,
            decisions: quotes.find_decisions(),
            files,
            omitted_files,
            open_ends: open_ends::find_open_ends(&quotes),
            last_answer: quotes.last_answer(),
        }
    }

    /// The note as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut lines = vec![format!("# Hand-off: {}", self.title.as_deref().unwrap_or("session"))];
        lines.push(String::new());
        lines.push(format!("- Session: {} ({})", self.session, self.agent));
        lines.extend(self.project.iter().map(|project| format!("- Folder: {project}")));
        lines.extend(self.branch.iter().map(|branch| format!("- Branch: {branch}")));
        lines.push(format!("- Whole record: `steno show {}`", self.session));
        self.push_task(&mut lines);
        push_section(&mut lines, "Decisions", self.decisions.iter().map(quote_line));
        let omitted =
            (self.omitted_files > 0).then(|| format!("- and {} more", self.omitted_files));
        let files = self.files.iter().map(|file| {
            let noun = if file.edits == 1 { "edit" } else { "edits" };
            format!("- {} ({} {noun}, the last is {})", file.path, file.edits, file.last_edit)
        });
        push_section(&mut lines, "Files changed", files.chain(omitted));
        let ends = self.open_ends.iter().map(|end| {
            let QuotedEntry { id, text, .. } = &end.quote;
            format!("- {}: {} ({id})", end.kind, text.replace('\n', " "))
        });
        push_section(&mut lines, "Open ends", ends);
        let last = self.last_answer.iter().map(block_quote);
        push_section(&mut lines, "Last answer", last);
        lines.push(String::new());
        lines.join("\n")
    }

    fn push_task(&self, lines: &mut Vec<String>) {
        let mut task: Vec<String> = self.task.iter().map(block_quote).collect();
        if self.omitted_requests > 0 && !task.is_empty() {
            task.insert(
                1,
                match self.omitted_requests {
                    1 => "(1 request is not quoted)".to_owned(),
                    several => format!("({several} requests are not quoted)"),
                },
            );
        }
        push_section(lines, "Task", task.into_iter());
    }
}

fn push_section(lines: &mut Vec<String>, title: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        return;
    }
    lines.extend([String::new(), format!("## {title}"), String::new()]);
    lines.extend(items);
}

fn quote_line(quote: &QuotedEntry) -> String {
    format!("- {}: \"{}\" ({})", quote.role, quote.text.replace('\n', " "), quote.id)
}

fn block_quote(quote: &QuotedEntry) -> String {
    let lines: Vec<String> = quote.text.lines().map(|line| format!("> {line}")).collect();
    format!("{} ({}):\n{}", quote.role, quote.id, lines.join("\n"))
}

/// Quotes the entries of a session.
struct EntryQuotes<'a> {
    session: &'a str,
    entries: &'a [Entry],
}

impl<'a> EntryQuotes<'a> {
    /// The entries of the main agent, with their numbers.
    fn primary(&self) -> impl DoubleEndedIterator<Item = (usize, &'a Entry)> {
        let numbered = self.entries.iter().enumerate();
        numbered.filter(|(_, entry)| entry.source == PRIMARY_SOURCE)
    }

    fn texts(&self, role: Role) -> impl DoubleEndedIterator<Item = (usize, &'a Entry)> {
        let is_wanted = move |(_, entry): &(usize, &Entry)| {
            entry.kind == EntryKind::Text && entry.role == role && !entry.content.trim().is_empty()
        };
        self.primary().filter(is_wanted)
    }

    fn quote_entry(&self, number: usize, text: &str, limit: usize) -> QuotedEntry {
        let role = self.entries[number].role.as_str().to_owned();
        QuotedEntry {
            id: format!("{}:{number}", self.session),
            role,
            text: shorten_text(text, limit),
        }
    }

    /// The first and the last requests, and the number of those between them.
    fn quote_task(&self) -> (Vec<QuotedEntry>, usize) {
        let request = |(number, entry): (usize, &Entry)| {
            let text = without_agent_blocks(without_thread_blocks(&entry.content)).trim();
            (!text.is_empty()).then(|| self.quote_entry(number, text, MAX_REQUEST_CHARS))
        };
        let mut requests: Vec<QuotedEntry> = self.texts(Role::User).filter_map(request).collect();
        let omitted = requests.len().saturating_sub(MAX_REQUESTS);
        if omitted > 0 {
            requests.drain(1..=omitted);
        }
        (requests, omitted)
    }

    fn find_decisions(&self) -> Vec<QuotedEntry> {
        let mut found = Vec::new();
        for (number, entry) in self.primary().filter(|(_, entry)| entry.kind == EntryKind::Text) {
            let words: &[&str] = match entry.role {
                Role::User => &USER_DECISION_WORDS,
                Role::Assistant => &MODEL_DECISION_WORDS,
                _ => continue,
            };
            for sentence in sentences(without_agent_blocks(&entry.content)) {
                let lower = format!("{} ", sentence.to_lowercase());
                if words.iter().any(|word| lower.contains(word)) {
                    found.push(self.quote_entry(number, sentence, MAX_QUOTE_CHARS));
                }
            }
        }
        found.drain(..found.len().saturating_sub(MAX_DECISIONS));
        found
    }

    fn list_files(&self) -> (Vec<HandedOffFile>, usize) {
        let mut changes = find_file_changes(self.entries);
        changes.sort_by_key(|change| change.entries.last().copied());
        let omitted = changes.len().saturating_sub(MAX_FILES);
        let files = changes.into_iter().skip(omitted).map(|change| {
            let last = change.entries.last().copied().unwrap_or_default();
            let last_edit = format!("{}:{last}", self.session);
            HandedOffFile { path: change.path, edits: change.entries.len(), last_edit }
        });
        (files.collect(), omitted)
    }

    fn last_answer(&self) -> Option<QuotedEntry> {
        let (number, entry) = self.texts(Role::Assistant).next_back()?;
        Some(self.quote_entry(number, entry.content.trim(), MAX_REQUEST_CHARS))
    }
}

/// The sentences of a text, without lists' marks. Lines of code blocks are left out.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            let line = line.trim().trim_start_matches(['-', '*', '#', '>']).trim();
            found.extend(split_line(line));
        }
    }
    found.into_iter().map(str::trim).filter(|sentence| !sentence.is_empty()).collect()
}

/// The sentences of a line: each ends with a mark before a space.
fn split_line(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut begin = 0;
    for (at, _) in line.match_indices(' ') {
        if line[begin..at].ends_with(['.', '!', '?']) {
            found.push(&line[begin..at]);
            begin = at + 1;
        }
    }
    found.push(&line[begin..]);
    found
}

/// A text of at most `limit` characters.
fn shorten_text(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}
