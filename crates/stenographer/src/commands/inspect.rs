//! `steno inspect`: counts what is in files, without keeping anything.

use std::path::{Path, PathBuf};

use steno_core::format;
use steno_core::inspect::{Inspection, inspect_all};

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::unknown_format;
use crate::table::Table;
use crate::ui::{Ui, count};

/// Count prompts, answers, tools and tokens in files of any known format.
///
/// Nothing is kept. A source that holds several sessions has a row for each, and so has
/// each file of a subagent.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files or folders.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let mut exit = Exit::Done;
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for path in &args.paths {
        if let Err(error) = rows_at(&scene.cwd.join(path), &mut rows, &mut failures) {
            failures.push(error);
        }
    }
    for failure in &failures {
        exit = ui.report(failure);
    }
    for row in &rows {
        ui.problems(&row.problems);
        if args.json {
            serde_json::to_writer(ui.out(), row)?;
            writeln!(ui.out())?;
        }
    }
    if !args.json && !rows.is_empty() {
        let text = table(&rows).render(ui.width());
        ui.transcript_text(&text)?;
    }
    Ok(exit)
}

/// Counts what is at a path; a session that cannot be read is a failure of its own.
fn rows_at(
    path: &Path,
    rows: &mut Vec<Inspection>,
    failures: &mut Vec<CommandError>,
) -> Result<(), CommandError> {
    let found = format::find(path)?;
    if found.is_empty() {
        return Err(unknown_format(path));
    }
    for found in &found {
        match inspect_all(found) {
            Ok(counted) => rows.extend(counted),
            Err(error) => failures.push(error.into()),
        }
    }
    Ok(())
}

fn table(rows: &[Inspection]) -> Table<7> {
    let mut table =
        Table::new(["AGENT", "PROMPTS", "ANSWERS", "CALLS", "TOKENS IN", "OUT", "PATH"]);
    for row in rows {
        let bad = if row.bad_lines > 0 {
            format!(" ({})", count(row.bad_lines, "bad line"))
        } else {
            String::new()
        };
        table.row([
            row.agent.clone(),
            row.user_prompts.to_string(),
            row.assistant_messages.to_string(),
            row.tool_calls.to_string(),
            row.tokens.prompt().to_string(),
            row.tokens.output.to_string(),
            format!("{}{bad}", row.path.display()),
        ]);
    }
    table
}
