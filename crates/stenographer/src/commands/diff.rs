//! `steno diff`: compares two sessions side by side.

mod side_by_side;

use steno_model::{Entry, Timestamp, Transcript};
use steno_seeds::devflow::{self, DevflowRun};
use steno_store::compare::text_diff::pair_lines;
use steno_store::compare::{EntryChange, compare_entries, facts};
use steno_store::view::json_rows;
use steno_store::view::json_rows::diff::EntryPair;

use self::side_by_side::{LinePair, SideBySidePrinter};
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::team_access::RemoteFlag;
use crate::ui::{Ui, count_noun};

/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 2;

/// Width without a terminal.
const DEFAULT_WIDTH: usize = 80;

/// Compare two sessions side by side: facts first, then entries.
///
/// The middle column shows | between changed lines, < after lines that only the first session has, and > before lines
/// that only the second has. Equal entries are counted, not printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 equal, 1 different, 2 error")]
pub(crate) struct Args {
    /// First session: id, unique prefix, `latest`, or a path.
    #[arg(value_name = "A")]
    a: String,
    /// Second session.
    #[arg(value_name = "B")]
    b: String,
    /// Output style.
    #[arg(long, value_enum, default_value_t = DiffStyle::Terminal)]
    style: DiffStyle,
    /// Print JSON Lines: facts, then each entry with its changed lines.
    #[arg(long, conflicts_with = "style")]
    json: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteFlag,
}

/// Output style.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DiffStyle {
    /// Steno's own style.
    Terminal,
    /// The style of `steno as devflow transcript diff`.
    Devflow,
}

/// Runs the command. Like diff(1), it exits with 2 on an error.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let store = SessionStore::new(env);
    let as_diff = |error| CommandError { exit: CommandExit::Usage, ..error };
    let prices = Config::load(env).and_then(|config| config.prices()).map_err(as_diff)?;
    let mut read = |name: &str| {
        let mut transcript = store.transcript(name).map_err(as_diff)?;
        transcript.session.totals.cost = store.session_cost(ui, &transcript, &prices);
        Ok::<_, CommandError>(transcript)
    };
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    ui.report_problems(&a.problems);
    ui.report_problems(&b.problems);
    let steps = compare_entries(&a.entries, &b.entries);
    if args.style == DiffStyle::Devflow {
        let text =
            devflow::diff_runs(&DevflowRun::from(&a), &DevflowRun::from(&b), env.clock.now());
        ui.transcript_text(&text)?;
    } else if args.json {
        for object in json_rows::diff::diff_objects(&a, &b, &steps) {
            serde_json::to_writer(ui.out(), &object)?;
            writeln!(ui.out())?;
        }
    } else {
        print_side_by_side(ui, env, &ComparedSessions { a: &a, b: &b, steps: &steps })?;
    }
    let is_same = steps.iter().all(|step| matches!(step, EntryChange::Same(..)));
    Ok(match is_same {
        _ if !a.problems.is_empty() || !b.problems.is_empty() => CommandExit::Usage,
        true => CommandExit::Done,
        false => CommandExit::Failed,
    })
}

/// Two sessions and the steps from one to the other.
struct ComparedSessions<'a> {
    a: &'a Transcript,
    b: &'a Transcript,
    steps: &'a [EntryChange],
}

fn print_side_by_side(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    compared: &ComparedSessions<'_>,
) -> Result<(), CommandError> {
    let ComparedSessions { a, b, steps } = *compared;
    let width = if ui.is_terminal() { ui.width() } else { DEFAULT_WIDTH };
    let mut sides = SideBySidePrinter::new(ui, width);
    let clock = |at: Timestamp| at.in_zone(&env.zone).date_and_clock();
    for fact in facts::compare_facts(&a.session, &b.session, &clock) {
        sides.print_fact(&fact)?;
    }
    let mut same_count = 0;
    for step in steps {
        if let EntryChange::Same(..) = step {
            same_count += 1;
            continue;
        }
        print_same_count(&mut sides, std::mem::take(&mut same_count))?;
        print_pair(&mut sides, &EntryPair::from_change(step, &a.entries, &b.entries))?;
    }
    print_same_count(&mut sides, same_count)
}

fn print_same_count(
    sides: &mut SideBySidePrinter<'_>,
    same_count: u64,
) -> Result<(), CommandError> {
    match same_count {
        0 => Ok(()),
        1 => sides.print_note("= 1 equal entry"),
        more => sides.print_note(&format!("= {more} equal entries")),
    }
}

/// Prints a pair of entries, or one without a counterpart.
fn print_pair(sides: &mut SideBySidePrinter<'_>, pair: &EntryPair<'_>) -> Result<(), CommandError> {
    let texts = pair.texts();
    let rows = pair_lines(&texts[0], &texts[1]);
    sides.print_headings(
        pair.a.map(|(at, entry)| entry_title(at, entry)),
        pair.b.map(|(at, entry)| entry_title(at, entry)),
    )?;
    let is_near = |at: usize| {
        let from = at.saturating_sub(CONTEXT_LINES);
        rows[from..rows.len().min(at + CONTEXT_LINES + 1)].iter().any(|row| !row.is_same())
    };
    let mut left_out = 0;
    for (at, row) in rows.iter().enumerate() {
        if !is_near(at) {
            left_out += 1;
            continue;
        }
        print_omitted_count(sides, std::mem::take(&mut left_out))?;
        sides.print_line_pair(LinePair { a: row.a, b: row.b })?;
    }
    print_omitted_count(sides, left_out)
}

fn print_omitted_count(sides: &mut SideBySidePrinter<'_>, lines: u64) -> Result<(), CommandError> {
    if lines == 0 {
        Ok(())
    } else {
        sides.print_aside(&format!("… {}", count_noun(lines, "equal line")))
    }
}

fn entry_title(at: usize, entry: &Entry) -> String {
    format!("{at} {}", entry.heading())
}
