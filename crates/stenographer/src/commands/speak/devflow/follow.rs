//! `follow`: prints turns while the run is recorded, until it ends.

use std::time::Duration;

use steno_seeds::devflow::{DevflowRun, RunViewStyle};

use super::DevflowStore;
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

/// Interval between reads of the run.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Run id, unique prefix, or `latest`.
    #[arg(value_name = "RUN-ID")]
    id: String,
}

/// Number of printed turns, and of printed tool calls of the last one.
#[derive(Default)]
struct PrintedTurns {
    turns: usize,
    calls: usize,
}

/// Prints a run's turns until it ends.
pub(super) fn run(
    ui: &mut Ui,
    devflow: &DevflowStore,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let id = devflow.resolve_run(&args.id)?;
    let mut printed = PrintedTurns::default();
    loop {
        // Read before the content, so that the last turns are still printed.
        let recording = devflow.store.load_metadata(&id)?.is_running();
        let decoded = devflow.store.load_run(&id)?;
        ui.transcript_text(&printed.render_new(&decoded.run))?;
        ui.flush()?;
        if !recording {
            ui.report_problems(&decoded.problems);
            ui.status(format_args!("{id}: {}", final_status(&decoded.run)));
            return Ok(CommandExit::Done);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn final_status(run: &DevflowRun) -> String {
    let meta = &run.metadata;
    if meta.error.is_empty() {
        meta.status.clone()
    } else {
        format!("{}: {}", meta.status, meta.error)
    }
}

impl PrintedTurns {
    /// Renders what was not printed yet.
    fn render_new(&mut self, run: &DevflowRun) -> String {
        let mut out = String::new();
        if let Some(last) = self.turns.checked_sub(1).and_then(|at| run.turns.get(at)) {
            for call in last.tool_calls.iter().skip(self.calls) {
                out += &RunViewStyle::Shipped.render_tool_call(call);
            }
            self.calls = last.tool_calls.len();
        }
        for turn in run.turns.iter().skip(self.turns) {
            out += &RunViewStyle::Shipped.render_turn(turn);
            self.turns += 1;
            self.calls = turn.tool_calls.len();
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use steno_seeds::devflow::{RunTurn, TurnToolCall};

    use super::*;

    #[test]
    fn turns_and_calls_are_printed_once() {
        let mut run = DevflowRun::default();
        let mut printed = PrintedTurns::default();
        assert_eq!(printed.render_new(&run), "");
        run.push_turn(RunTurn::new("user", "Hi", 0));
        assert!(printed.render_new(&run).contains("[1] USER"));
        let call = || TurnToolCall::with_output("ls", None, "x");
        run.turns[0].tool_calls.push(call());
        assert_eq!(printed.render_new(&run), "\n  Tool: ls\n     Output: x\n");
        run.turns[0].tool_calls.push(call());
        run.push_turn(RunTurn::new("assistant", "Ho", 0));
        let news = printed.render_new(&run);
        assert!(news.starts_with("\n  Tool: ls\n") && news.contains("[2] ASSISTANT"));
        assert_eq!(printed.render_new(&run), "");
    }
}
