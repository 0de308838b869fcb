//! `steno search`: finds what was said in any session.

use steno_core::entry;
use steno_core::index::mark::{Line, Shown};
use steno_core::index::{Filter, Hit, Index, Order, Query, Search};
use steno_core::view::answer::HitRow;

use super::list::SHORTEST_ID;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::scope::Scope;
use crate::store::Store;
use crate::ui::{Ui, defused};

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
    asked: Asked,
    /// Which hits come first.
    #[arg(long, value_enum, default_value_t = Sort::Relevance)]
    sort: Sort,
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
struct Asked {
    #[command(flatten)]
    scope: Scope,
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
enum Sort {
    /// The best, where newer is better.
    Relevance,
    /// The newest.
    Time,
}

/// Runs the command.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let query = parse(&args.query)?;
    let store = Store::new(scene);
    let search = Search {
        query: &query,
        filter: args.asked.filter(scene, &store)?,
        order: if args.sort == Sort::Time { Order::Time } else { Order::Relevance },
        limit: args.limit,
        now: scene.clock.now(),
    };
    let (index, hits) = store.ask_all(ui, |index| index.search(&search))?;
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
            print(ui, scene, &index, (hit, &lines))?;
        }
    }
    Ok(if hits.is_empty() { Exit::Failed } else { Exit::Done })
}

/// Words that the shell took apart are put together; what it kept together is a phrase only if it says so.
fn parse(words: &[String]) -> Result<Query, CommandError> {
    let query = Query::parse(&words.join(" "));
    query.map_err(|error| {
        CommandError::user(error).hint("words, \"a phrase\", -not, begin*, one OR other, /regex/")
    })
}

impl Asked {
    fn filter(&self, scene: &Scene, store: &Store) -> Result<Filter, CommandError> {
        store.check_agent(self.scope.agent.as_deref())?;
        let session = |name: &str| Ok(store.kept(name)?.id().clone());
        Ok(Filter {
            role: self.role.as_ref().map(|role| role.to_lowercase()),
            tool: self.tool.clone(),
            errors: self.errors,
            ..self.scope.filter(scene, session)?
        })
    }
}

/// A hit for a person: where it is and who said it, then its lines.
fn print(
    ui: &mut Ui,
    scene: &Scene,
    index: &Index,
    (hit, lines): (&Hit, &[Line]),
) -> Result<(), CommandError> {
    let name = if ui.is_terminal() { short(index, hit)? } else { hit.session.to_string() };
    let mut words = vec![format!("{name}:{}", hit.number)];
    words.extend(
        hit.time.map(|at| at.in_zone(&scene.zone).wall().strftime("%Y-%m-%d %H:%M").to_string()),
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
        text.push_str(&defused(&line.text[at..mark.start]));
        text.push_str(&format!("\x1b[1;33m{}\x1b[0m", defused(&line.text[mark.clone()])));
        at = mark.end;
    }
    text.push_str(&defused(&line.text[at..]));
    Ok(writeln!(ui.out(), "{text}")?)
}

/// As much of a session's id as tells it from all others, at least eight characters.
fn short(index: &Index, hit: &Hit) -> Result<String, CommandError> {
    let id = hit.session.as_str();
    let length = index.distinct_length(&hit.session)?.max(SHORTEST_ID).min(id.len());
    Ok(id[..length].to_owned())
}
