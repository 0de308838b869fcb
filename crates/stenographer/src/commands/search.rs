//! `steno search`: searches the text of all sessions.

use std::ops::Range;

use steno_model::entry;
use steno_store::index::match_lines::{LineLimits, MatchLine};
use steno_store::index::{
    EntryFilter, Index, MAX_EXAMINED_ENTRIES, SearchHit, SearchOrder, SearchQuery, SearchRequest,
    WordCount,
};
use steno_store::session_owners::SessionOwners;
use steno_store::view::json_rows::HitRow;
use steno_team::{RemoteUrl, TeamRemote};

use super::list::MIN_ID_CHARS;
use crate::automatic_sync::AutomaticSyncFlag;
use crate::error::{CommandError, CommandExit};
use crate::known_values::check_known_values;
use crate::process_environment::ProcessEnvironment;
use crate::session_scope::SessionScope;
use crate::session_store::SessionStore;
use crate::team_access::{RemoteFlag, TeamAccess, explain_no_sessions, explain_team_error};
use crate::team_index::{explain_index_error, find_index, open_index};
use crate::text_table::{fit_columns, wrap_columns};
use crate::ui::{Ui, count_noun, escape_control};
use crate::value_parsers::parse_count;

/// Search the text of all sessions.
///
/// Searches messages, thoughts, tool calls and results.
///
/// All words must match; "a phrase" matches in order, -word excludes, begin* matches a prefix, one OR other matches
/// either, and /regex/ (or /regex/i to ignore case) matches every text. Words match inside snake_case, camelCase and
/// paths. `steno show HIT` opens a hit.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Query; quote it for the shell if it contains -word, "a phrase" or *.
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    #[command(flatten)]
    filter: SearchFilter,
    /// Order of the hits.
    #[arg(long, value_enum, default_value_t = HitOrder::Relevance)]
    sort: HitOrder,
    /// Print at most N hits [default: 10].
    #[arg(long, short = 'n', value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    limit: Option<usize>,
    /// Lines to print before and after each match.
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0, value_parser = parse_count, allow_negative_numbers = true)]
    context: usize,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) sync: AutomaticSyncFlag,
    #[command(flatten)]
    pub(crate) remote: RemoteFlag,
}

/// Filter of a search.
#[derive(Debug, clap::Args)]
struct SearchFilter {
    #[command(flatten)]
    scope: SessionScope,
    /// Only entries with this role: system, user, assistant, tool.
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Only calls and results of this tool.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only errors and failed tool calls.
    #[arg(long)]
    errors: bool,
}

/// How many hits are printed unless the user names a limit.
const DEFAULT_LIMIT: usize = 10;

/// Order of hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum HitOrder {
    /// Best match first; newer entries rank higher.
    Relevance,
    /// Newest first.
    Time,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let query = parse_query(args.query.join(" ").trim())?;
    args.sync.sync_before_answer(ui, env);
    let store = SessionStore::new(env);
    let search = SearchRequest {
        query: &query,
        filter: args.filter.to_index_filter(env, &store, args.remote.from.is_some())?,
        order: if args.sort == HitOrder::Time { SearchOrder::Time } else { SearchOrder::Relevance },
        limit: args.limit.unwrap_or(DEFAULT_LIMIT + 1),
        now: env.clock.now(),
    };
    if let Some(name) = &args.remote.from
        && !env.is_mirror
    {
        let hits = search_database(env, name, &search)?;
        let owners = SessionOwners::default();
        HitPrinter { env, args, query: &query, index: None, owners }.print_first(ui, &hits)?;
        if hits.is_empty() {
            ui.status(format_args!("no hits for: {}", args.query.join(" ").trim()));
            return Ok(CommandExit::Failed);
        }
        return Ok(CommandExit::Done);
    }
    let (index, hits) = store.query_all(ui, |index| index.search(&search))?;
    let owners = env.session_owners();
    HitPrinter { env, args, query: &query, index: Some(&index), owners }.print_first(ui, &hits)?;
    if !hits.is_empty() {
        return Ok(CommandExit::Done);
    }
    if !store.vault.has_sessions()? {
        ui.status(explain_no_sessions(env));
    } else if args.limit != Some(0) {
        check_known_values(&index, &search.filter, None)?;
        let text = args.query.join(" ");
        ui.status(format_args!("no hits for: {}", text.trim()));
        explain_words(ui, &index.count_words(&text, &search.filter)?);
    }
    Ok(CommandExit::Failed)
}

/// Whether the database or the index of a remote searches by itself. A shared folder without an index is searched in its
/// mirror, as is a query without words.
pub(crate) fn is_answered_by_database(
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<bool, CommandError> {
    let query = parse_query(args.query.join(" ").trim())?;
    let access = TeamAccess::find(env, args.remote.from.as_deref())?;
    let scope = &args.filter.scope;
    let has_session = scope.session.is_some() || scope.has_person();
    let is_database = matches!(access.settings.url, RemoteUrl::Postgres(_));
    let has_index = find_index(env, args.remote.from.as_deref())?.is_some();
    Ok((is_database || has_index) && !query.is_regex() && !has_session)
}

fn search_database(
    env: &ProcessEnvironment,
    name: &str,
    search: &SearchRequest<'_>,
) -> Result<Vec<SearchHit>, CommandError> {
    if let Some(index) = find_index(env, Some(name))? {
        let index = open_index(&index)?;
        let found = index.check_version().and_then(|()| index.search(search));
        return found.map_err(explain_index_error);
    }
    let access = TeamAccess::find(env, Some(name))?;
    let explain = |error| explain_team_error(error, name);
    match access.connect(env)? {
        TeamRemote::Postgres(mut database) => database.search(search).map_err(explain),
        // Others are searched in their mirrors.
        _ => Ok(Vec::new()),
    }
}

/// Prints hits.
struct HitPrinter<'a> {
    env: &'a ProcessEnvironment,
    args: &'a Args,
    query: &'a SearchQuery,
    /// Tells how short the ids of sessions can be.
    index: Option<&'a Index>,
    /// Whose sessions they are.
    owners: SessionOwners,
}

impl HitPrinter<'_> {
    /// Prints the hits. Without a limit by the user, says if there are more than the usual number.
    fn print_first(&self, ui: &mut Ui, hits: &[SearchHit]) -> Result<(), CommandError> {
        let shown = self.args.limit.unwrap_or(DEFAULT_LIMIT).min(hits.len());
        self.print_all(ui, &hits[..shown])?;
        if hits.len() > shown {
            ui.status(format_args!("only the first {shown} hits are shown; use -n for more"));
        }
        Ok(())
    }

    fn print_all(&self, ui: &mut Ui, hits: &[SearchHit]) -> Result<(), CommandError> {
        let shown = LineLimits { max_lines: 3, context_lines: self.args.context };
        for (at, hit) in hits.iter().enumerate() {
            let lines = self.query.matching_lines(&hit.text, shown);
            if self.args.json {
                let person = self.owners.person_of(&hit.agent, hit.session.as_str());
                serde_json::to_writer(ui.out(), &HitRow::from_hit(hit, &lines).of_person(person))?;
                writeln!(ui.out())?;
                continue;
            }
            if at > 0 {
                writeln!(ui.out())?;
            }
            self.print_heading(ui, hit)?;
            lines.iter().try_for_each(|line| print_line(ui, line))?;
        }
        Ok(())
    }

    /// Prints location and speaker of a hit.
    fn print_heading(&self, ui: &mut Ui, hit: &SearchHit) -> Result<(), CommandError> {
        let name = match self.index.filter(|_| ui.is_terminal()) {
            Some(index) => short_session_id(index, hit)?,
            None => hit.session.to_string(),
        };
        let mut words = vec![format!("{name}:{}", hit.number)];
        words
            .extend(hit.time.map(|at| {
                at.in_zone(&self.env.zone).wall().strftime("%Y-%m-%d %H:%M").to_string()
            }));
        words.push(hit.agent.clone());
        let person = self.owners.person_of(&hit.agent, hit.session.as_str());
        words.extend(person.map(|person| format!("of {person}")));
        if hit.source != entry::PRIMARY_SOURCE {
            words.push(format!("[{}]", hit.source));
        }
        words.push(hit.heading());
        words.extend(hit.title.as_ref().map(|title| format!("· {title}")));
        if hit.copies > 0 {
            words.push(format!("(and {} more)", hit.copies));
        }
        let mut heading = words.join(" ");
        if ui.is_terminal() {
            heading = fit_columns(&heading, ui.width());
        }
        Ok(ui.listing_text(&format!("{heading}\n"))?)
    }
}

/// Says how often each of several words occurs alone.
fn explain_words(ui: &mut Ui, counts: &[WordCount]) {
    let occurs = |count: &WordCount| count.entries > 0 || !count.is_exact;
    let is_useful = counts.len() > 1 && counts.iter().any(occurs);
    if !is_useful {
        return;
    }
    let count = |WordCount { word, entries, is_exact }: &WordCount| match entries {
        entries if *is_exact => format!("{word} in {}", count_noun(*entries, "entry")),
        0 => format!("{word} in none of the newest {MAX_EXAMINED_ENTRIES} entries with it"),
        entries => format!("{word} in {entries} or more"),
    };
    let words: Vec<String> = counts.iter().map(count).collect();
    ui.status(format_args!("each word alone: {}", words.join(", ")));
    ui.status(
        "all words must occur in an entry; use `OR` between words, or begin* for a beginning",
    );
}

/// Parses a query. Quotes within mark a phrase.
pub(crate) fn parse_query(text: &str) -> Result<SearchQuery, CommandError> {
    let query = SearchQuery::parse(text);
    query.map_err(|error| {
        CommandError::user(error).hint("words, \"a phrase\", -not, begin*, one OR other, /regex/")
    })
}

impl SearchFilter {
    fn to_index_filter(
        &self,
        env: &ProcessEnvironment,
        store: &SessionStore,
        is_remote: bool,
    ) -> Result<EntryFilter, CommandError> {
        if !is_remote {
            store.check_agent(self.scope.agent.as_deref())?;
        }
        let session = |name: &str| Ok(store.find_session(name)?.id().clone());
        Ok(EntryFilter {
            role: self.role.as_ref().map(|role| role.to_lowercase()),
            tool: self.tool.clone(),
            only_errors: self.errors,
            ..self.scope.to_filter(env, session)?
        })
    }
}

/// Prints a line; on a terminal wrapped between words, with matches in bold.
fn print_line(ui: &mut Ui, line: &MatchLine) -> Result<(), CommandError> {
    if !ui.is_terminal() {
        return Ok(ui.listing_text(&format!("  {}\n", line.text))?);
    }
    let mut end = 0;
    for row in wrap_columns(&line.text, ui.width().saturating_sub(2)) {
        let begin = end + line.text[end..].find(&row).unwrap_or(0);
        end = begin + row.len();
        let text = mark_matches(line, begin..end, ui.is_styled());
        writeln!(ui.out(), "  {text}")?;
    }
    Ok(())
}

/// Returns a part of a line, escaped, with the matches in it in bold.
fn mark_matches(line: &MatchLine, part: Range<usize>, is_styled: bool) -> String {
    if !is_styled {
        return escape_control(&line.text[part]);
    }
    let (mut text, mut at) = (String::new(), part.start);
    for mark in &line.marks {
        let (begin, end) = (mark.start.max(part.start), mark.end.min(part.end));
        if begin < end {
            let marked = escape_control(&line.text[begin..end]);
            text.push_str(&escape_control(&line.text[at..begin]));
            text.push_str(&format!("\x1b[1;33m{marked}\x1b[0m"));
            at = end;
        }
    }
    text + &escape_control(&line.text[at..part.end])
}

/// Returns the shortest unique prefix of a session's id, at least [`MIN_ID_CHARS`] characters.
fn short_session_id(index: &Index, hit: &SearchHit) -> Result<String, CommandError> {
    let id = hit.session.as_str();
    let length = index.distinct_length(&hit.session)?.max(MIN_ID_CHARS).min(id.len());
    Ok(id[..length].to_owned())
}
