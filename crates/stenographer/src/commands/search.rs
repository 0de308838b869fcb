//! `steno search`: finds what was said in any session.

use steno_core::entry;
use steno_core::index::mark::{Line, Shown};
use steno_core::index::{Filter, Hit, Index, Order, Query, Search};
use steno_core::view::answer::HitRow;

use super::list::MIN_ID_CHARS;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_scope::SessionScope;
use crate::session_store::SessionStore;
use crate::ui::{Ui, escape_control};

/// Find what was said, thought, run or answered in any session.
///
/// All words must stand in the text; "a phrase" in this order, -word must not, begin* may go on, one OR the other
/// will do, and /regex/ (or /regex/i in any case) is looked for in every text. Words are found in snake_case,
/// camelCase and paths. `steno show HIT` opens a hit.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to look for; quote it for the shell if it has -word, "a phrase" or * in it.
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    #[command(flatten)]
    filter: SearchFilter,
    /// Which hits come first.
    #[arg(long, value_enum, default_value_t = HitOrder::Relevance)]
    sort: HitOrder,
    /// At most so many hits.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Lines to show before and after each that matches.
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0)]
    context: usize,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

/// Which entries are asked.
#[derive(Debug, clap::Args)]
struct SearchFilter {
    #[command(flatten)]
    scope: SessionScope,
    /// Only entries of this role: system, user, assistant, tool.
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Only calls and results of this tool.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only errors and tools that failed.
    #[arg(long)]
    errors: bool,
}

/// Which hits come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum HitOrder {
    /// The best, where newer is better.
    Relevance,
    /// The newest.
    Time,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let query = parse_query(&args.query)?;
    let store = SessionStore::new(env);
    let search = Search {
        query: &query,
        filter: args.filter.to_index_filter(env, &store)?,
        order: if args.sort == HitOrder::Time { Order::Time } else { Order::Relevance },
        limit: args.limit,
        now: env.clock.now(),
    };
    let (index, hits) = store.query_all(ui, |index| index.search(&search))?;
    let shown = Shown { lines: 3, context: args.context };
    for (at, hit) in hits.iter().enumerate() {
        let lines = query.lines(&hit.text, shown);
        if args.json {
            serde_json::to_writer(ui.out(), &HitRow::of(hit, &lines))?;
            writeln!(ui.out())?;
        } else {
            if at > 0 {
                writeln!(ui.out())?;
            }
            print_hit(ui, env, &index, (hit, &lines))?;
        }
    }
    Ok(if hits.is_empty() { CommandExit::Failed } else { CommandExit::Done })
}

/// Words that the shell took apart are put together; what it kept together is a phrase only if it says so.
fn parse_query(words: &[String]) -> Result<Query, CommandError> {
    let query = Query::parse(&words.join(" "));
    query.map_err(|error| {
        CommandError::user(error).hint("words, \"a phrase\", -not, begin*, one OR other, /regex/")
    })
}

impl SearchFilter {
    fn to_index_filter(
        &self,
        env: &ProcessEnvironment,
        store: &SessionStore,
    ) -> Result<Filter, CommandError> {
        store.check_agent(self.scope.agent.as_deref())?;
        let session = |name: &str| Ok(store.find_session(name)?.id().clone());
        Ok(Filter {
            role: self.role.as_ref().map(|role| role.to_lowercase()),
            tool: self.tool.clone(),
            errors: self.errors,
            ..self.scope.to_filter(env, session)?
        })
    }
}

/// A hit for a person: where it is and who said it, then its lines.
fn print_hit(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    index: &Index,
    (hit, lines): (&Hit, &[Line]),
) -> Result<(), CommandError> {
    let name =
        if ui.is_terminal() { short_session_id(index, hit)? } else { hit.session.to_string() };
    let mut words = vec![format!("{name}:{}", hit.number)];
    words.extend(
        hit.time.map(|at| at.in_zone(&env.zone).wall().strftime("%Y-%m-%d %H:%M").to_string()),
    );
    words.push(hit.agent.clone());
    if hit.source != entry::PRIMARY {
        words.push(format!("[{}]", hit.source));
    }
    words.push(hit.heading());
    words.extend(hit.title.as_ref().map(|title| format!("· {title}")));
    if hit.copies > 0 {
        words.push(format!("(and {} more)", hit.copies));
    }
    ui.listing_text(&format!("{}\n", words.join(" ")))?;
    for line in lines {
        print_line(ui, line)?;
    }
    Ok(())
}

/// The line, with what matches in bold where a person looks.
fn print_line(ui: &mut Ui, line: &Line) -> Result<(), CommandError> {
    if !ui.is_styled() {
        return Ok(ui.listing_text(&format!("  {}\n", line.text))?);
    }
    let mut text = String::from("  ");
    let mut at = 0;
    for mark in &line.marks {
        text.push_str(&escape_control(&line.text[at..mark.start]));
        text.push_str(&format!("\x1b[1;33m{}\x1b[0m", escape_control(&line.text[mark.clone()])));
        at = mark.end;
    }
    text.push_str(&escape_control(&line.text[at..]));
    Ok(writeln!(ui.out(), "{text}")?)
}

/// As much of a session's id as tells it from all others, at least eight characters.
fn short_session_id(index: &Index, hit: &Hit) -> Result<String, CommandError> {
    let id = hit.session.as_str();
    let length = index.distinct_length(&hit.session)?.max(MIN_ID_CHARS).min(id.len());
    Ok(id[..length].to_owned())
}
