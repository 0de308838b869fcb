//! `steno import`: keeps transcripts that other systems left in files.

use std::path::{Path, PathBuf};

use serde_json::json;
use steno_core::durable::OnPath;
use steno_core::format::{self, Found};

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_importer::SessionImporter;
use crate::session_store::{SessionStore, unknown_format_error};
use crate::ui::{Ui, count_noun};

/// Keep transcripts from files or folders of any known format.
///
/// Formats are told from the content. The files' bytes are kept as they are; importing again keeps only
/// what is new. Prints the id of each session.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files or folders.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Print JSON Lines: id, agent, entries, added, path.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let keeper = SessionImporter::new(SessionStore::new(env).vault)?;
    let mut import = ImportRun { ui, keeper, json: args.json, exit: CommandExit::Done };
    for path in &args.paths {
        let path = env.cwd.join(path);
        if let Err(error) = import.import_path(&path) {
            import.ui.report_error(&error);
            import.exit = CommandExit::Failed;
        }
    }
    import.keeper.flush()?;
    import.keeper.attribute_traffic(None)?;
    Ok(import.exit)
}

struct ImportRun<'a> {
    ui: &'a mut Ui,
    keeper: SessionImporter,
    json: bool,
    exit: CommandExit,
}

impl ImportRun<'_> {
    fn import_path(&mut self, path: &Path) -> Result<(), CommandError> {
        let path = path.canonicalize().on("open", path)?;
        let look = format::look(&path)?;
        let found = look.found;
        if found.is_empty() && look.failures.is_empty() {
            return Err(unknown_format_error(&path));
        }
        for failure in look.failures {
            self.exit = self.ui.report_error(&failure.into());
        }
        for found in &found {
            if let Err(error) = self.import_session(found) {
                self.ui.report_error(&error);
                self.exit = CommandExit::Failed;
            }
        }
        Ok(())
    }

    fn import_session(&mut self, found: &Found) -> Result<(), CommandError> {
        let kept = self.keeper.import(found)?;
        // What is printed is acknowledged.
        self.keeper.commit()?;
        self.ui.report_problems(&kept.problems.into_problems());
        let (id, agent, entries) = (kept.dir.id(), kept.dir.agent(), kept.entries);
        if self.json {
            let path = found.bundle.root.to_string_lossy();
            let row = json!({"id": id.as_str(), "agent": agent, "entries": entries,
                "added": kept.bytes_added, "path": path});
            writeln!(self.ui.out(), "{row}")?;
            return Ok(());
        }
        writeln!(self.ui.out(), "{id}")?;
        let news = if kept.bytes_added == 0 {
            "nothing".to_owned()
        } else {
            count_noun(kept.bytes_added, "byte")
        };
        let entries = count_noun(entries, "entry");
        self.ui.status(format_args!("{agent} {id}: {entries}, {news} new"));
        Ok(())
    }
}
