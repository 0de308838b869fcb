//! `which_session_wrote_line`: from a line of the code to the session and the prompt that wrote it.

use std::path::Path;

use steno_store::blame::{
    BlameError, BlamedFile, GitRepository, LineOrigin, LineSpan, OriginCertainty, OriginEntry,
    RepositoryScope, SessionBlamer,
};

use super::{BYTES_ARGUMENT, answer_bytes};
use crate::agent_history::AgentHistory;
use crate::history_tool::HistoryTool;
use crate::quoted_answer::QuotedAnswer;
use crate::quoted_text::{make_quotable, make_quotable_line};
use crate::tool_arguments::{ToolArgument, ToolArguments};
use crate::tool_error::ToolError;

/// How many lines are asked about at most.
const MAX_LINES: usize = 200;

/// How much of a prompt is quoted, in characters.
const PROMPT_CHARS: usize = 400;

/// The tool.
pub(super) const LINE_TOOL: HistoryTool = HistoryTool {
    name: "which_session_wrote_line",
    description: "Which past session and prompt wrote a line of code: certain, likely or unknown.",
    arguments: &[
        ToolArgument::text("file", "").also(&["path", "file_path", "filename"]).required(),
        ToolArgument::number("line", "").also(&[
            "line_number",
            "first_line",
            "start_line",
            "start",
        ]),
        ToolArgument::number("last_line", "").also(&["end_line", "last", "end"]),
        BYTES_ARGUMENT,
    ],
    example: r#"{"file": "src/login.rs", "line": 42}"#,
    answer: find_line_writers,
};

/// A file and the lines that a call asks about.
struct AskedLines {
    file: String,
    span: LineSpan,
}

impl AskedLines {
    /// Reads `file` and `line`, or `FILE:LINE` in `file`.
    fn from_arguments(arguments: &ToolArguments) -> Result<Self, ToolError> {
        let named = arguments.text("file")?.unwrap_or_default();
        let numbered = named.rsplit_once(':');
        let numbered =
            numbered.and_then(|(file, line)| Some((file.to_owned(), line.parse().ok()?)));
        let (file, first) = match (arguments.number("line")?, numbered) {
            (Some(line), Some((file, _))) => (file, line),
            (Some(line), None) => (named, line),
            (None, Some(numbered)) => numbered,
            (None, None) => {
                return Err(ToolError::arguments("line is missing: its number, from 1"));
            }
        };
        let first = first.max(1);
        let last = arguments.number("last_line")?.unwrap_or(first).clamp(first, first + MAX_LINES);
        Ok(Self { file, span: LineSpan { first, last } })
    }
}

fn find_line_writers(
    history: &AgentHistory,
    arguments: &ToolArguments,
) -> Result<String, ToolError> {
    let asked = AskedLines::from_arguments(arguments)?;
    let path = history.path_in_scope(&asked.file)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let repository = GitRepository::containing(folder).map_err(explain_failure)?;
    let file = BlamedFile::read(&repository, &path, Some(asked.span)).map_err(explain_failure)?;
    let scope = RepositoryScope::new(&repository, history.store_folder());
    let origins = history.query(|index, _| {
        SessionBlamer::new(index, history.vault(), &scope, history.now()).find_origins(&file)
    })?;
    let origins: Vec<LineOrigin> =
        origins.into_iter().map(|origin| hide_unserved(history, origin)).collect();
    let summary = format!("Who wrote {}:", make_quotable_line(&file.path, 200));
    let mut answer = QuotedAnswer::new(summary, answer_bytes(arguments)?);
    let groups: Vec<&[LineOrigin]> = origins.chunk_by(has_same_writer).collect();
    let shown = groups.iter().take_while(|lines| push_lines(history, lines, &mut answer)).count();
    if shown < groups.len() {
        answer.add_footer("More lines did not fit: ask for fewer, or raise max_bytes.");
    }
    answer.add_footer("Read around an entry: read_session_entries({\"at\": \"SESSION:ENTRY\"}).");
    Ok(answer.into_text())
}

fn explain_failure(error: BlameError) -> ToolError {
    ToolError::arguments(error.to_string())
}

/// Removes a writer that is not served, and the reasons that may name it.
fn hide_unserved(history: &AgentHistory, origin: LineOrigin) -> LineOrigin {
    let is_served = |entry: &OriginEntry| history.find_session(entry.session.as_str()).is_ok();
    if origin.entry.as_ref().is_some_and(is_served) {
        return origin;
    }
    let certainty = OriginCertainty::Unknown;
    LineOrigin { entry: None, evidence: Vec::new(), certainty, ..origin }
}

fn has_same_writer(a: &LineOrigin, b: &LineOrigin) -> bool {
    a.entry == b.entry && a.certainty == b.certainty && a.line.commit == b.line.commit
}

/// Adds lines with the same writer. Returns whether they fit.
fn push_lines(history: &AgentHistory, lines: &[LineOrigin], answer: &mut QuotedAnswer) -> bool {
    let (first, last) = (&lines[0].line, &lines[lines.len() - 1].line);
    let numbers = match lines {
        [_] => format!("line {}", first.number),
        _ => format!("lines {}-{}", first.number, last.number),
    };
    let mut heading = format!("{numbers}  {}", lines[0].certainty.as_str());
    let mut quote = String::new();
    if let Some(entry) = &lines[0].entry {
        heading.push_str(&format!(
            "  {}  {}  {}{}",
            entry.link(),
            history.date(entry.time),
            entry.agent,
            history.owner_words(&entry.agent, entry.session.as_str())
        ));
        if let Some(prompt) = &entry.prompt {
            let text = make_quotable_line(&prompt.text, PROMPT_CHARS);
            quote.push_str(&format!("prompt {}:{}: {text}\n", entry.session, prompt.number));
        }
    }
    if let Some(commit) = &first.commit {
        heading.push_str(&format!("  commit {}", &commit[..commit.len().min(12)]));
    }
    for reason in &lines[0].evidence {
        quote.push_str(&format!("{}\n", make_quotable_line(reason, 200)));
    }
    quote.push_str(&make_quotable(first.text.trim()));
    answer.push_whole(&heading, &quote)
}
