//! `search_agent_history`: finds entries by words.

use jiff::SignedDuration;
use steno_model::{Timestamp, entry};
use steno_store::index::match_lines::LineLimits;
use steno_store::index::{
    EntryFilter, Index, IndexError, SearchHit, SearchOrder, SearchQuery, SearchRequest, WordCount,
};

use super::{
    AGENT_ARGUMENT, BYTES_ARGUMENT, PROJECT_ARGUMENT, SINCE_ARGUMENT, TOOL_NAMES, UNTIL_ARGUMENT,
    answer_bytes,
};
use crate::agent_history::{AgentHistory, TimeSpan};
use crate::history_tool::HistoryTool;
use crate::quoted_answer::QuotedAnswer;
use crate::quoted_text::{make_quotable, make_quotable_line, make_quotable_title};
use crate::tool_arguments::{ToolArgument, ToolArguments};
use crate::tool_error::ToolError;

/// How many hits an answer has unless the call asks for another number, and how many at most.
const DEFAULT_HITS: usize = 8;
const MAX_HITS: usize = 100;

/// How many more hits are looked for than an answer has, because some are left out.
const SPARE_HITS: usize = 40;

/// Newer hits are probably of the conversation in which the agent asks.
const OWN_CONVERSATION: SignedDuration = SignedDuration::from_mins(10);

/// The tool.
pub(super) const SEARCH_TOOL: HistoryTool = HistoryTool {
    name: "search_agent_history",
    description: "Search what any coding agent said, decided, ran and saw in past sessions of this project. Gives \
                  dated quotes with SESSION:ENTRY ids.",
    arguments: &[
        ToolArgument::text(
            "query",
            "few words, all must occur; \"a phrase\" -not begin* a OR b /regex/",
        )
        .also(&["pattern", "q", "text", "search", "words", "keywords", "question", "input"])
        .required(),
        ToolArgument::text("role", "user, assistant or tool"),
        ToolArgument::text("tool", "only calls of this tool").also(&["tool_name"]),
        ToolArgument::text("order", "best or newest").also(&["sort", "sort_by"]),
        SINCE_ARGUMENT,
        UNTIL_ARGUMENT,
        AGENT_ARGUMENT,
        PROJECT_ARGUMENT,
        ToolArgument::text("session", "only this session").also(&["session_id"]),
        ToolArgument::number("limit", "hits, default 8").also(&[
            "max_results",
            "n",
            "count",
            "top_k",
        ]),
        BYTES_ARGUMENT,
    ],
    example: r#"{"query": "retry policy", "since": "30d"}"#,
    answer: search_history,
};

fn search_history(history: &AgentHistory, arguments: &ToolArguments) -> Result<String, ToolError> {
    let text = arguments.text("query")?.unwrap_or_default();
    let query = parse_query(&text)?;
    let filter = search_filter(history, arguments)?;
    let limit = arguments.number("limit")?.unwrap_or(DEFAULT_HITS).clamp(1, MAX_HITS);
    let order = parse_order(arguments)?;
    let now = history.now();
    let found = history.query(|index, private| {
        let filter = EntryFilter { private: private.clone(), ..filter.clone() };
        // One more tells if there are more.
        let request = SearchRequest { query: &query, filter, order, limit: limit + 1, now };
        let hits = search_without_echoes(index, &request)?;
        let counts = match hits.is_empty() {
            true => index.count_words(&text, &request.filter)?,
            false => Vec::new(),
        };
        Ok((hits, counts))
    })?;
    let (mut hits, counts) = found;
    if hits.is_empty() {
        return Ok(nothing_found(history, &text, &counts));
    }
    let has_more = hits.len() > limit;
    hits.truncate(limit);
    let more = if has_more { ", and more" } else { "" };
    let summary = format!("{}{more} of {}:", count_hits(hits.len()), history.scope_name());
    let mut answer = QuotedAnswer::new(summary, answer_bytes(arguments)?);
    let shown = hits.iter().take_while(|hit| push_hit(history, &query, hit, &mut answer)).count();
    if shown < hits.len() {
        let left = hits.len() - shown;
        answer.add_footer(format!("{left} more did not fit: raise max_bytes or add words."));
    }
    if has_more {
        answer.add_footer("There are more hits: raise limit or add words.");
    }
    answer.add_footer("Read around a hit: read_session_entries({\"at\": \"SESSION:ENTRY\"}).");
    Ok(answer.into_text())
}

/// Searches without what agents asked this server and what it answered. Among the best hits, those of the last minutes
/// come last: the agent knows what it has just said.
fn search_without_echoes(
    index: &Index,
    request: &SearchRequest<'_>,
) -> Result<Vec<SearchHit>, IndexError> {
    let is_late = |hit: &SearchHit| {
        let is_ranked = request.order == SearchOrder::Relevance;
        is_ranked && hit.time.is_some_and(|at| is_recent(at, request.now))
    };
    let mut hits = index.search(request)?;
    if hits.iter().any(|hit| is_echo(hit) || is_late(hit)) {
        let limit = request.limit + SPARE_HITS;
        hits = index.search(&SearchRequest { limit, ..request.clone() })?;
    }
    let (late, mut hits): (Vec<_>, Vec<_>) =
        hits.into_iter().filter(|hit| !is_echo(hit)).partition(is_late);
    hits.extend(late);
    hits.truncate(request.limit);
    Ok(hits)
}

/// Whether a hit is a call of this server, or its answer.
fn is_echo(hit: &SearchHit) -> bool {
    let tool = hit.tool.as_deref().unwrap_or_default();
    TOOL_NAMES.iter().any(|name| tool.ends_with(name))
}

fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    now.instant().duration_since(at.instant()) < OWN_CONVERSATION
}

/// Parses a query. What is no valid query is searched as words.
fn parse_query(text: &str) -> Result<SearchQuery, ToolError> {
    SearchQuery::parse(text).or_else(|error| {
        let words: String =
            text.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
        SearchQuery::parse(&words.to_lowercase()).map_err(|_| {
            ToolError::arguments(format!("{error}\nquery needs at least one word with letters"))
        })
    })
}

fn parse_order(arguments: &ToolArguments) -> Result<SearchOrder, ToolError> {
    match arguments.text("order")?.as_deref() {
        None | Some("best" | "relevance" | "score") => Ok(SearchOrder::Relevance),
        Some("newest" | "time" | "date" | "recent") => Ok(SearchOrder::Time),
        Some(other) => Err(ToolError::arguments(format!("order is best or newest, not {other:?}"))),
    }
}

fn search_filter(
    history: &AgentHistory,
    arguments: &ToolArguments,
) -> Result<EntryFilter, ToolError> {
    let span = TimeSpan { since: arguments.text("since")?, until: arguments.text("until")? };
    let session = arguments.text("session")?;
    let session = session.map(|name| history.find_session(&name)).transpose()?;
    Ok(EntryFilter {
        role: arguments.text("role")?.map(|role| role.to_lowercase()),
        tool: arguments.text("tool")?,
        agent: arguments.text("agent")?,
        session: session.map(|session| session.id),
        ..history.scope_filter(arguments.text("project")?.as_deref(), &span)?
    })
}

/// Adds a hit. Returns whether it fits.
fn push_hit(
    history: &AgentHistory,
    query: &SearchQuery,
    hit: &SearchHit,
    answer: &mut QuotedAnswer,
) -> bool {
    let mut heading = format!("{}:{}", hit.session, hit.number);
    heading.push_str(&format!("  {}  {}", history.date(hit.time), hit.agent));
    heading.push_str(&history.owner_words(&hit.agent, hit.session.as_str()));
    if hit.source != entry::PRIMARY_SOURCE {
        heading.push_str(&format!("  {}", make_quotable_line(&hit.source, 40)));
    }
    heading.push_str(&format!("  {}", make_quotable_line(&hit.heading(), 60)));
    if hit.time.is_some_and(|at| is_recent(at, history.now())) {
        heading.push_str("  (just now, perhaps in this conversation)");
    }
    if hit.copies > 0 {
        heading.push_str(&format!("  (and {} times more)", hit.copies));
    }
    let shown = LineLimits { max_lines: 3, context_lines: 0 };
    // A secret can span lines, so the text is redacted before lines are selected.
    let text = make_quotable(&hit.text);
    let mut quote = String::new();
    if let Some(title) = &hit.title {
        quote.push_str(&format!("({})\n", make_quotable_title(title, 80)));
    }
    let lines = query.matching_lines(&text, shown);
    let lines: Vec<&str> = lines.iter().map(|line| line.text.trim()).collect();
    quote.push_str(&lines.join("\n"));
    answer.push_whole(&heading, &quote)
}

fn count_hits(count: usize) -> String {
    if count == 1 { "1 hit".to_owned() } else { format!("{count} hits") }
}

/// The answer when nothing was found: which words do occur.
fn nothing_found(history: &AgentHistory, query: &str, counts: &[WordCount]) -> String {
    let mut text = format!("Nothing in {} matches {query:?}.", history.scope_name());
    let found: Vec<_> = counts.iter().filter(|count| count.entries > 0).collect();
    let absent: Vec<_> =
        counts.iter().filter(|count| count.entries == 0 && count.is_exact).collect();
    let count = |WordCount { word, entries, is_exact }: &&WordCount| match is_exact {
        true => format!("{word} {entries}"),
        false => format!("{word} {entries}+"),
    };
    if !found.is_empty() {
        let words: Vec<String> = found.iter().map(count).collect();
        text.push_str(&format!("\nEntries with each word alone: {}.", words.join(", ")));
    }
    if !absent.is_empty() {
        let words: Vec<&str> = absent.iter().map(|count| count.word.as_str()).collect();
        text.push_str(&format!("\nNot found at all: {}.", words.join(", ")));
    }
    text.push_str("\nSearch again with fewer or other words, begin* or a OR b.");
    text
}
