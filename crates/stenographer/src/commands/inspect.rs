//! `steno inspect`: counts the content of files. Writes nothing to the store.

use std::path::{Path, PathBuf};

use serde::Serialize;
use steno_agents::inspect::{InspectionTotal, SessionInspection, inspect_with_subagents};
use steno_store::format;

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::unknown_format_error;
use crate::text_table::TextTable;
use crate::ui::{Ui, count_noun};

/// Count prompts, tool calls and tokens in session files.
///
/// Reads files of any known format. Nothing is imported. A file with several sessions has a row for each; so has each
/// file of a subagent, and so have all subagents in the same file together. In the total, a message copied from one file
/// to another (by a fork or a resumed session) counts once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files or folders.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// End with a total that counts every message once.
    #[arg(long)]
    total: bool,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let mut exit = CommandExit::Done;
    let mut counted = InspectionResults::default();
    for path in &args.paths {
        if let Err(error) = counted.count_path(&env.cwd.join(path)) {
            counted.failures.push(error);
        }
    }
    let InspectionResults { rows, total, failures } = counted;
    for failure in &failures {
        exit = ui.report_error(failure);
    }
    for row in &rows {
        ui.report_problems(&row.problems);
        if args.json {
            print_json(ui, row)?;
        }
    }
    if args.json && args.total {
        print_json(ui, &total)?;
    }
    if !args.json && !rows.is_empty() {
        let total = Some(&total).filter(|_| args.total);
        let text = build_table(&rows, total).render(ui.width());
        ui.listing_text(&text)?;
    }
    Ok(exit)
}

fn print_json(ui: &mut Ui, row: &impl Serialize) -> Result<(), CommandError> {
    serde_json::to_writer(ui.out(), row)?;
    Ok(writeln!(ui.out())?)
}

/// Rows, total and failures so far.
#[derive(Default)]
struct InspectionResults {
    rows: Vec<SessionInspection>,
    total: InspectionTotal,
    failures: Vec<CommandError>,
}

impl InspectionResults {
    /// Counts the sessions at a path; a session that cannot be read becomes a failure.
    fn count_path(&mut self, path: &Path) -> Result<(), CommandError> {
        let look = format::find_sessions_and_failures(path)?;
        if look.sessions.is_empty() && look.failures.is_empty() {
            return Err(unknown_format_error(path));
        }
        self.failures.extend(look.failures.into_iter().map(CommandError::from));
        for found in &look.sessions {
            match inspect_with_subagents(found) {
                Ok(mut rows) => {
                    rows.iter_mut().for_each(|row| self.total.add_inspection(row));
                    self.rows.extend(rows);
                }
                Err(error) => self.failures.push(error.into()),
            }
        }
        Ok(())
    }
}

fn build_table(rows: &[SessionInspection], total: Option<&InspectionTotal>) -> TextTable<7> {
    let mut table =
        TextTable::new(["AGENT", "PROMPTS", "ANSWERS", "CALLS", "TOKENS IN", "OUT", "PATH"]);
    for row in rows {
        let bad = if row.bad_lines > 0 {
            format!(" ({})", count_noun(row.bad_lines, "bad line"))
        } else {
            String::new()
        };
        let subagents = if row.is_of_subagents() { " (subagents)" } else { "" };
        table.add_row([
            row.agent.clone(),
            row.user_prompts.to_string(),
            row.assistant_messages.to_string(),
            row.tool_calls.to_string(),
            row.tokens.prompt_tokens().to_string(),
            row.tokens.output.to_string(),
            format!("{}{subagents}{bad}", row.path.display()),
        ]);
    }
    if let Some(total) = total {
        let (tokens, repeated) = (&total.tokens, &total.tokens_repeated);
        table.add_row([
            "total".to_owned(),
            String::new(),
            String::new(),
            String::new(),
            tokens.prompt_tokens().to_string(),
            tokens.output.to_string(),
            format!("{} more repeated", repeated.prompt_tokens() + repeated.output),
        ]);
    }
    table
}
