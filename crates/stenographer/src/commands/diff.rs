//! `steno diff`: two sessions side by side.

mod facts;
mod side;

use serde::Serialize;
use steno_core::compare::text::{Row, rows};
use steno_core::compare::{Step, compare};
use steno_core::format::devflow::{self, Run};
use steno_core::index::text;
use steno_core::{Entry, Timestamp, Transcript};

use self::facts::Fact;
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

#[derive(Serialize)]
struct FactRow<'a> {
    fact: &'a str,
    a: &'a str,
    b: &'a str,
}

#[derive(Serialize)]
struct EntryRow<'a> {
    entry: &'static str,
    a: Option<usize>,
    b: Option<usize>,
    heading: String,
    lines: Vec<LineRow<'a>>,
}

#[derive(Serialize)]
struct LineRow<'a> {
    a: Option<&'a str>,
    b: Option<&'a str>,
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
        print_json(ui, (&a, &b), &steps)?;
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

fn print_json(
    ui: &mut Ui,
    (a, b): (&Transcript, &Transcript),
    steps: &[Step],
) -> Result<(), CommandError> {
    for Fact { name, a, b } in facts::of(&a.session, &b.session, &|at| at.to_string()) {
        serde_json::to_writer(ui.out(), &FactRow { fact: name, a: &a, b: &b })?;
        writeln!(ui.out())?;
    }
    for step in steps {
        let pair = Pair::of(step, &a.entries, &b.entries);
        let texts = pair.texts();
        let lines = rows(&texts[0], &texts[1]).into_iter().filter(|row| !row.is_same());
        let row = EntryRow {
            entry: pair.change,
            a: pair.a.map(|(at, _)| at),
            b: pair.b.map(|(at, _)| at),
            heading: pair.heading(),
            lines: lines.map(|Row { a, b }| LineRow { a, b }).collect(),
        };
        serde_json::to_writer(ui.out(), &row)?;
        writeln!(ui.out())?;
    }
    Ok(())
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

/// Entries that stand for each other, with their numbers.
struct Pair<'a> {
    change: &'static str,
    a: Option<(usize, &'a Entry)>,
    b: Option<(usize, &'a Entry)>,
}

impl<'a> Pair<'a> {
    fn of(step: &Step, in_a: &'a [Entry], in_b: &'a [Entry]) -> Self {
        let (change, a, b) = match *step {
            Step::Same(a, b) => ("same", Some(a), Some(b)),
            Step::Changed(a, b) => ("changed", Some(a), Some(b)),
            Step::Removed(a) => ("removed", Some(a), None),
            Step::Added(b) => ("added", None, Some(b)),
        };
        let numbered = |entries: &'a [Entry], at: usize| (at, &entries[at]);
        Self { change, a: a.map(|at| numbered(in_a, at)), b: b.map(|at| numbered(in_b, at)) }
    }

    /// What both say; where the texts are the same but their arguments are not, these as JSON.
    fn texts(&self) -> [String; 2] {
        let say = |side: Option<(usize, &Entry)>, say: fn(&Entry) -> String| {
            side.map(|(_, entry)| say(entry)).unwrap_or_default()
        };
        let texts = [say(self.a, text::of), say(self.b, text::of)];
        if self.change == "changed" && texts[0] == texts[1] {
            return [say(self.a, input), say(self.b, input)];
        }
        texts
    }

    fn heading(&self) -> String {
        self.a.or(self.b).map(|(_, entry)| entry.heading()).unwrap_or_default()
    }
}

fn input(entry: &Entry) -> String {
    entry.tool_input.as_ref().map(ToString::to_string).unwrap_or_default()
}
