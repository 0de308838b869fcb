//! `steno import`: copies transcripts from files into the vault.

use std::path::{Path, PathBuf};

use serde_json::json;
use steno_model::durable::OnPath;
use steno_store::format::{self, FoundSession};

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::unknown_format_error;
use crate::ui::{Ui, count_bytes, count_noun};
use steno_store::keep::SessionImporter;

/// Import transcripts from files or folders in any known format.
///
/// The format is detected from the content. Original bytes are kept; importing again adds only what is new. Prints
/// the id of each session.
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
    let importer = SessionImporter::new(&env.store_location())?;
    let mut import = ImportRun { ui, importer, json: args.json, exit: CommandExit::Done };
    for path in &args.paths {
        let path = env.cwd.join(path);
        if let Err(error) = import.import_path(&path) {
            import.ui.report_error(&error);
            import.exit = CommandExit::Failed;
        }
    }
    import.importer.flush()?;
    import.importer.attribute_traffic(None)?;
    Ok(import.exit)
}

struct ImportRun<'a> {
    ui: &'a mut Ui,
    importer: SessionImporter,
    json: bool,
    exit: CommandExit,
}

impl ImportRun<'_> {
    fn import_path(&mut self, path: &Path) -> Result<(), CommandError> {
        let path = path.canonicalize().on("open", path)?;
        let look = format::find_sessions_and_failures(&path)?;
        let found = look.sessions;
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

    fn import_session(&mut self, found: &FoundSession) -> Result<(), CommandError> {
        let imported = self.importer.import(found)?;
        // A printed id is an acknowledgement, so the session must be durable.
        self.importer.commit()?;
        self.ui.report_problems(&imported.problems.into_problems());
        let (id, agent, entries) = (imported.dir.id(), imported.dir.agent(), imported.entries);
        if self.json {
            let path = found.bundle.root.to_string_lossy();
            let row = json!({"id": id.as_str(), "agent": agent, "entries": entries,
                "added": imported.bytes_added, "path": path});
            writeln!(self.ui.out(), "{row}")?;
            return Ok(());
        }
        writeln!(self.ui.out(), "{id}")?;
        let news = if imported.bytes_added == 0 {
            "nothing".to_owned()
        } else {
            count_bytes(imported.bytes_added)
        };
        let entries = count_noun(entries, "entry");
        self.ui.status(format_args!("{agent} {id}: {entries}, {news} new"));
        Ok(())
    }
}
