//! `steno diff`: two sessions side by side.

mod side_by_side;

use steno_core::compare::text::rows;
use steno_core::compare::{Step, compare, facts};
use steno_core::format::devflow::{self, Run};
use steno_core::view::answer;
use steno_core::view::answer::diff::Pair;
use steno_core::{Entry, Timestamp, Transcript};

use self::side_by_side::{LinePair, SideBySidePrinter};
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::ui::{Ui, count_noun};

/// Lines of the same text that are shown before and after a change.
const CONTEXT_LINES: usize = 2;

/// Columns where no terminal says how many there are.
const DEFAULT_WIDTH: usize = 80;

/// Compare two sessions: what is known of them, then what was said, side by side.
///
/// In the middle, | stands between what has changed, < follows what only the first session has, and > comes before what
/// only the second one has. What is the same in both is counted, not shown.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 the same was said in both, 1 not the same, 2 something went wrong"
)]
pub(crate) struct Args {
    /// The one session: its id, the beginning of one, `latest`, or a path.
    #[arg(value_name = "A")]
    a: String,
    /// The other session.
    #[arg(value_name = "B")]
    b: String,
    /// Whose view to show.
    #[arg(long, value_enum, default_value_t = DiffStyle::Terminal)]
    style: DiffStyle,
    /// Print JSON Lines: what is known, then each entry and those of its lines that differ.
    #[arg(long, conflicts_with = "style")]
    json: bool,
}

/// How the sessions are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DiffStyle {
    /// Ours.
    Terminal,
    /// As `steno as devflow transcript diff` does.
    Devflow,
}

/// Runs the command. As diff(1) does, it ends with 2 when something goes wrong.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let store = SessionStore::new(env);
    let read = |name: &str| {
        store.transcript(name).map_err(|error| CommandError { exit: CommandExit::Usage, ..error })
    };
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    ui.report_problems(&a.problems);
    ui.report_problems(&b.problems);
    let steps = compare(&a.entries, &b.entries);
    if args.style == DiffStyle::Devflow {
        let text = devflow::diff(&Run::from(&a), &Run::from(&b), env.clock.now());
        ui.transcript_text(&text)?;
    } else if args.json {
        for object in answer::diff::objects(&a, &b, &steps) {
            serde_json::to_writer(ui.out(), &object)?;
            writeln!(ui.out())?;
        }
    } else {
        print_side_by_side(ui, env, (&a, &b), &steps)?;
    }
    let is_same = steps.iter().all(|step| matches!(step, Step::Same(..)));
    Ok(match is_same {
        _ if !a.problems.is_empty() || !b.problems.is_empty() => CommandExit::Usage,
        true => CommandExit::Done,
        false => CommandExit::Failed,
    })
}

fn print_side_by_side(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    (a, b): (&Transcript, &Transcript),
    steps: &[Step],
) -> Result<(), CommandError> {
    let width = if ui.is_terminal() { ui.width() } else { DEFAULT_WIDTH };
    let mut sides = SideBySidePrinter::new(ui, width);
    let clock = |at: Timestamp| at.in_zone(&env.zone).date_and_clock();
    for fact in facts::of(&a.session, &b.session, &clock) {
        sides.print_fact(&fact)?;
    }
    let mut alike = 0;
    for step in steps {
        if let Step::Same(..) = step {
            alike += 1;
            continue;
        }
        print_same_count(&mut sides, std::mem::take(&mut alike))?;
        print_pair(&mut sides, &Pair::of(step, &a.entries, &b.entries))?;
    }
    print_same_count(&mut sides, alike)
}

fn print_same_count(sides: &mut SideBySidePrinter<'_>, alike: u64) -> Result<(), CommandError> {
    match alike {
        0 => Ok(()),
        1 => sides.print_note("= 1 entry is the same"),
        more => sides.print_note(&format!("= {more} entries are the same")),
    }
}

/// An entry of each session, or of one.
fn print_pair(sides: &mut SideBySidePrinter<'_>, pair: &Pair<'_>) -> Result<(), CommandError> {
    let texts = pair.texts();
    let rows = rows(&texts[0], &texts[1]);
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
        sides.print_aside(&format!("… {} alike", count_noun(lines, "line")))
    }
}

fn entry_title(at: usize, entry: &Entry) -> String {
    format!("{at} {}", entry.heading())
}
