//! `steno diff`: two sessions side by side.

mod side;

use steno_core::compare::text::rows;
use steno_core::compare::{Step, compare, facts};
use steno_core::format::devflow::{self, Run};
use steno_core::view::answer;
use steno_core::view::answer::diff::Pair;
use steno_core::{Entry, Timestamp, Transcript};

use self::side::{Column, Sides};
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::Store;
use crate::ui::{Ui, count};

/// Lines of the same text that are shown before and after a change.
const CONTEXT: usize = 2;

/// Columns where no terminal says how many there are.
const WIDTH: usize = 80;

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
    #[arg(long, value_enum, default_value_t = Style::Terminal)]
    style: Style,
    /// Print JSON Lines: what is known, then each entry and those of its lines that differ.
    #[arg(long, conflicts_with = "style")]
    json: bool,
}

/// How the sessions are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Style {
    /// Ours.
    Terminal,
    /// As `steno as devflow transcript diff` does.
    Devflow,
}

/// Runs the command. As diff(1) does, it ends with 2 when something goes wrong.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let store = Store::new(scene);
    let read = |name: &str| {
        store.transcript(name).map_err(|error| CommandError { exit: Exit::Usage, ..error })
    };
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    ui.problems(&a.problems);
    ui.problems(&b.problems);
    let steps = compare(&a.entries, &b.entries);
    if args.style == Style::Devflow {
        let text = devflow::diff(&Run::from(&a), &Run::from(&b), scene.clock.now());
        ui.transcript_text(&text)?;
    } else if args.json {
        for object in answer::diff::objects(&a, &b, &steps) {
            serde_json::to_writer(ui.out(), &object)?;
            writeln!(ui.out())?;
        }
    } else {
        print_sides(ui, scene, (&a, &b), &steps)?;
    }
    let is_same = steps.iter().all(|step| matches!(step, Step::Same(..)));
    Ok(match is_same {
        _ if !a.problems.is_empty() || !b.problems.is_empty() => Exit::Usage,
        true => Exit::Done,
        false => Exit::Failed,
    })
}

fn print_sides(
    ui: &mut Ui,
    scene: &Scene,
    (a, b): (&Transcript, &Transcript),
    steps: &[Step],
) -> Result<(), CommandError> {
    let width = if ui.is_terminal() { ui.width() } else { WIDTH };
    let mut sides = Sides::new(ui, width);
    let clock = |at: Timestamp| at.in_zone(&scene.zone).date_and_clock();
    for fact in facts::of(&a.session, &b.session, &clock) {
        sides.fact(&fact)?;
    }
    let mut alike = 0;
    for step in steps {
        if let Step::Same(..) = step {
            alike += 1;
            continue;
        }
        print_alike(&mut sides, std::mem::take(&mut alike))?;
        print_pair(&mut sides, &Pair::of(step, &a.entries, &b.entries))?;
    }
    print_alike(&mut sides, alike)
}

fn print_alike(sides: &mut Sides<'_>, alike: u64) -> Result<(), CommandError> {
    match alike {
        0 => Ok(()),
        1 => sides.note("= 1 entry is the same"),
        more => sides.note(&format!("= {more} entries are the same")),
    }
}

/// An entry of each session, or of one.
fn print_pair(sides: &mut Sides<'_>, pair: &Pair<'_>) -> Result<(), CommandError> {
    let texts = pair.texts();
    let rows = rows(&texts[0], &texts[1]);
    sides.heading(
        pair.a.map(|(at, entry)| titled(at, entry)),
        pair.b.map(|(at, entry)| titled(at, entry)),
    )?;
    let is_near = |at: usize| {
        let from = at.saturating_sub(CONTEXT);
        rows[from..rows.len().min(at + CONTEXT + 1)].iter().any(|row| !row.is_same())
    };
    let mut left_out = 0;
    for (at, row) in rows.iter().enumerate() {
        if !is_near(at) {
            left_out += 1;
            continue;
        }
        print_left_out(sides, std::mem::take(&mut left_out))?;
        sides.row(Column { a: row.a, b: row.b })?;
    }
    print_left_out(sides, left_out)
}

fn print_left_out(sides: &mut Sides<'_>, lines: u64) -> Result<(), CommandError> {
    if lines == 0 { Ok(()) } else { sides.aside(&format!("… {} alike", count(lines, "line"))) }
}

fn titled(at: usize, entry: &Entry) -> String {
    format!("{at} {}", entry.heading())
}
