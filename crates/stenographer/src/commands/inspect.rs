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
    let mut rows = Vec::new();
    for path in &args.paths {
        match rows_at(&scene.cwd.join(path)) {
            Ok(found) => rows.extend(found),
            Err(error) => exit = ui.report(&error),
        }
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

fn rows_at(path: &Path) -> Result<Vec<Inspection>, CommandError> {
    let found = format::find(path)?;
    if found.is_empty() {
        return Err(unknown_format(path));
    }
    let mut rows = Vec::new();
    for found in &found {
        rows.extend(inspect_all(found)?);
    }
    Ok(rows)
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
