//! `steno import`: keeps transcripts that other systems left in files.

use std::path::{Path, PathBuf};

use serde_json::json;
use steno_core::durable::OnPath;
use steno_core::format::{self, Found};

use crate::error::{CommandError, Exit};
use crate::keeper::Keeper;
use crate::scene::Scene;
use crate::store::{Store, unknown_format};
use crate::ui::{Ui, count};

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
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let keeper = Keeper::new(Store::new(scene).vault)?;
    let mut import = Import { ui, keeper, json: args.json, exit: Exit::Done };
    for path in &args.paths {
        let path = scene.cwd.join(path);
        if let Err(error) = import.path(&path) {
            import.ui.report(&error);
            import.exit = Exit::Failed;
        }
    }
    import.keeper.flush()?;
    import.keeper.attribute_traffic(None)?;
    Ok(import.exit)
}

struct Import<'a> {
    ui: &'a mut Ui,
    keeper: Keeper,
    json: bool,
    exit: Exit,
}

impl Import<'_> {
    fn path(&mut self, path: &Path) -> Result<(), CommandError> {
        let path = path.canonicalize().on("open", path)?;
        let look = format::look(&path)?;
        let found = look.found;
        if found.is_empty() && look.failures.is_empty() {
            return Err(unknown_format(&path));
        }
        for failure in look.failures {
            self.exit = self.ui.report(&failure.into());
        }
        for found in &found {
            if let Err(error) = self.session(found) {
                self.ui.report(&error);
                self.exit = Exit::Failed;
            }
        }
        Ok(())
    }

    fn session(&mut self, found: &Found) -> Result<(), CommandError> {
        let kept = self.keeper.keep(found)?;
        // What is printed is acknowledged.
        self.keeper.commit()?;
        self.ui.problems(&kept.problems.into_problems());
        let (id, agent, entries) = (kept.dir.id(), kept.dir.agent(), kept.entries);
        if self.json {
            let path = found.bundle.root.to_string_lossy();
            let row = json!({"id": id.as_str(), "agent": agent, "entries": entries,
                "added": kept.added, "path": path});
            writeln!(self.ui.out(), "{row}")?;
            return Ok(());
        }
        writeln!(self.ui.out(), "{id}")?;
        let news = if kept.added == 0 { "nothing".to_owned() } else { count(kept.added, "byte") };
        let entries = count(entries, "entry");
        self.ui.status(format_args!("{agent} {id}: {entries}, {news} new"));
        Ok(())
    }
}
