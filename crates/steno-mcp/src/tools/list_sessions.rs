//! `list_agent_sessions`: lists sessions by time, agent and the file that they touched.

use std::collections::HashMap;

use steno_model::entry::EntryKind;
use steno_store::index::{
    EntryFilter, Index, IndexError, ListedSession, SearchOrder, SearchQuery, SearchRequest,
    SessionFilter,
};

use super::{
    AGENT_ARGUMENT, BYTES_ARGUMENT, PROJECT_ARGUMENT, SINCE_ARGUMENT, UNTIL_ARGUMENT, answer_bytes,
};
use crate::agent_history::{AgentHistory, TimeSpan};
use crate::history_tool::HistoryTool;
use crate::quoted_answer::QuotedAnswer;
use crate::quoted_text::{make_quotable_line, make_quotable_title};
use crate::tool_arguments::{ToolArgument, ToolArguments};
use crate::tool_error::ToolError;

/// How many sessions an answer has unless the call asks for another number, and how many at most.
const DEFAULT_SESSIONS: usize = 15;
const MAX_SESSIONS: usize = 500;

/// How many tool calls that name a file are looked at.
const MAX_CALLS: usize = 2000;

/// The tool.
pub(super) const LIST_TOOL: HistoryTool = HistoryTool {
    name: "list_agent_sessions",
    description: "List past agent sessions, newest first.",
    arguments: &[
        ToolArgument::text("file", "only sessions with tool calls on this file").also(&[
            "path",
            "file_path",
            "filename",
        ]),
        SINCE_ARGUMENT,
        UNTIL_ARGUMENT,
        AGENT_ARGUMENT,
        PROJECT_ARGUMENT,
        ToolArgument::number("limit", "default 15").also(&["max_results", "n", "count"]),
        BYTES_ARGUMENT,
    ],
    example: r#"{"file": "src/login.rs", "since": "30d"}"#,
    answer: list_sessions,
};

/// The tool calls of a session that name a file.
#[derive(Clone, Copy, Debug)]
struct FileCalls {
    count: usize,
    /// The entry of the newest.
    newest: u64,
}

/// The tool calls by agent and session.
type CallsBySession = HashMap<(String, String), FileCalls>;

fn list_sessions(history: &AgentHistory, arguments: &ToolArguments) -> Result<String, ToolError> {
    let span = TimeSpan { since: arguments.text("since")?, until: arguments.text("until")? };
    let scope = EntryFilter {
        agent: arguments.text("agent")?,
        ..history.scope_filter(arguments.text("project")?.as_deref(), &span)?
    };
    let limit = arguments.number("limit")?.unwrap_or(DEFAULT_SESSIONS).clamp(1, MAX_SESSIONS);
    let file = arguments.text("file")?.map(|file| history.relative_path(&file));
    let query = file.as_deref().map(file_query).transpose()?;
    let (sessions, calls) = history.query(|index, private| {
        let scope = EntryFilter { private: private.clone(), ..scope.clone() };
        let calls = match (&query, &file) {
            (Some(query), Some(file)) => {
                Some(find_calls(index, history, &scope, &FileQuery { query, file })?)
            }
            _ => None,
        };
        let (mut sessions, mut left_out) = (Vec::new(), 0_usize);
        index.each_session(&SessionFilter { scope, ..<_>::default() }, None, &mut |listed| {
            let is_touched = calls.as_ref().is_none_or(|calls| calls.contains_key(&key(&listed)));
            match listed.session.totals.entries > 0 && is_touched {
                true if sessions.len() < limit => sessions.push(listed),
                true => left_out += 1,
                false => {}
            }
        })?;
        Ok(((sessions, left_out), calls.unwrap_or_default()))
    })?;
    let (sessions, left_out) = sessions;
    if sessions.is_empty() {
        let about = file.map(|file| format!(" with tool calls on {file:?}")).unwrap_or_default();
        return Ok(format!("No sessions of {}{about} in this time.", history.scope_name()));
    }
    let total = sessions.len() + left_out;
    let summary = format!("{total} session(s) of {}, newest first:", history.scope_name());
    let mut answer = QuotedAnswer::new(summary, answer_bytes(arguments)?);
    let push = |listed: &&ListedSession| push_session(history, listed, &calls, &mut answer);
    let shown = sessions.iter().take_while(push).count();
    if shown < total {
        let left = total - shown;
        answer
            .add_footer(format!("{left} older left out: use until, or raise limit and max_bytes."));
    }
    answer.add_footer("Read one: read_session_entries({\"at\": \"SESSION\"}).");
    Ok(answer.into_text())
}

fn key(listed: &ListedSession) -> (String, String) {
    (listed.session.agent.clone(), listed.session.id.to_string())
}

/// A phrase with the file's path as an agent may have written it.
fn file_query(file: &str) -> Result<SearchQuery, ToolError> {
    let plain = file.replace('"', " ");
    SearchQuery::parse(&format!("\"{plain}\""))
        .map_err(|_| ToolError::arguments(format!("file should be a path, not {file:?}")))
}

/// A file, and the query for its name.
struct FileQuery<'a> {
    query: &'a SearchQuery,
    file: &'a str,
}

/// Finds the tool calls that name a file.
fn find_calls(
    index: &Index,
    history: &AgentHistory,
    scope: &EntryFilter,
    file: &FileQuery<'_>,
) -> Result<CallsBySession, IndexError> {
    let request = SearchRequest {
        query: file.query,
        filter: EntryFilter { since: None, until: None, ..scope.clone() },
        order: SearchOrder::Time,
        limit: MAX_CALLS,
        now: history.now(),
    };
    let mut calls = CallsBySession::new();
    for hit in index.search(&request)? {
        // The words of the path can also be elsewhere in the call.
        if hit.kind == EntryKind::ToolCall && hit.text.contains(file.file) {
            let session = (hit.agent, hit.session.to_string());
            let found = FileCalls { count: 0, newest: hit.number };
            calls.entry(session).or_insert(found).count += 1;
        }
    }
    Ok(calls)
}

/// Adds a session. Returns whether it fits.
fn push_session(
    history: &AgentHistory,
    listed: &ListedSession,
    calls: &CallsBySession,
    answer: &mut QuotedAnswer,
) -> bool {
    let session = &listed.session;
    let date = history.date(session.started);
    let mut heading = format!("{}  {date}  {}", session.id, session.agent);
    heading.push_str(&history.owner_words(&session.agent, session.id.as_str()));
    heading.push_str(&format!("  {} entries", session.totals.entries));
    if let Some(calls) = calls.get(&key(listed)) {
        heading.push_str(&format!("  {} call(s) on the file, last :{}", calls.count, calls.newest));
    }
    let mut quote = make_quotable_title(session.title.as_deref().unwrap_or("(no title)"), 120);
    if history.serves_all()
        && let Some(project) = &session.project
    {
        quote.push_str(&format!("\nin {}", make_quotable_line(project, 160)));
    }
    answer.push_whole(&heading, &quote)
}
