//! The tools.

mod agent_cost;
mod line_writers;
mod list_sessions;
mod read_entries;
mod search_history;

use crate::history_tool::HistoryTool;
use crate::tool_arguments::{ToolArgument, ToolArguments};
use crate::tool_error::ToolError;

/// All tools. Clients load this list into every conversation, so it must stay short.
pub(crate) const HISTORY_TOOLS: &[&HistoryTool] = &[
    &search_history::SEARCH_TOOL,
    &read_entries::READ_TOOL,
    &list_sessions::LIST_TOOL,
    &agent_cost::COST_TOOL,
    &line_writers::LINE_TOOL,
];

/// The names of all tools. Agents put the server's name before them.
const TOOL_NAMES: [&str; HISTORY_TOOLS.len()] = {
    let mut names = [""; HISTORY_TOOLS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = HISTORY_TOOLS[at].name;
        at += 1;
    }
    names
};

/// The size of an answer unless the call asks for another.
const DEFAULT_ANSWER_BYTES: usize = 4000;

/// The smallest and the largest answer. Agents cut larger ones.
const ANSWER_BYTES_RANGE: (usize, usize) = (1200, 60_000);

const SINCE_ARGUMENT: ToolArgument =
    ToolArgument::text("since", "2026-01-05 or 7d").also(&["after_date", "from", "start"]);
const UNTIL_ARGUMENT: ToolArgument =
    ToolArgument::text("until", "").also(&["before_date", "to", "end"]);
const AGENT_ARGUMENT: ToolArgument = ToolArgument::text("agent", "such as codex");
const PROJECT_ARGUMENT: ToolArgument =
    ToolArgument::text("project", "").also(&["folder", "repo", "cwd"]);
const BYTES_ARGUMENT: ToolArgument =
    ToolArgument::number("max_bytes", "default 4000").also(&["bytes", "max_chars"]);

/// The size that a call allows for its answer.
fn answer_bytes(arguments: &ToolArguments) -> Result<usize, ToolError> {
    let (least, most) = ANSWER_BYTES_RANGE;
    Ok(arguments.number(BYTES_ARGUMENT.name)?.unwrap_or(DEFAULT_ANSWER_BYTES).clamp(least, most))
}
