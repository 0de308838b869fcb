//! `steno import`: keeps transcripts that other systems left in files.

use std::path::{Path, PathBuf};

use serde_json::json;
use steno_core::format::{self, Found};
use steno_core::vault::SessionDir;
use steno_core::vault::keep::Growth;
use steno_core::{SessionId, Transcript};

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::{Store, unknown_format};
use crate::ui::Ui;

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
    let mut import = Import { ui, store: Store::new(scene), json: args.json, exit: Exit::Done };
    for path in &args.paths {
        let path = scene.cwd.join(path);
        if let Err(error) = import.path(&path) {
            import.ui.report(&error);
            import.exit = Exit::Failed;
        }
    }
    Ok(import.exit)
}

struct Import<'a> {
    ui: &'a mut Ui,
    store: Store,
    json: bool,
    exit: Exit,
}

impl Import<'_> {
    fn path(&mut self, path: &Path) -> Result<(), CommandError> {
        let path = path.canonicalize().map_err(|error| {
            CommandError::user(steno_core::durable::FileError {
                action: "open",
                path: path.to_owned(),
                source: error,
            })
        })?;
        let found = format::find(&path)?;
        if found.is_empty() {
            return Err(unknown_format(&path));
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
        if found.bundle.key.is_some() {
            let root = found.bundle.root.display();
            let error = CommandError::user(format!(
                "one file with many sessions cannot be kept yet: {root}"
            ));
            return Err(error.hint("`steno show PATH#KEY` and `steno convert` read it where it is"));
        }
        let transcript = found.read()?;
        self.ui.problems(&transcript.problems);
        let dir = self.dir(found, &transcript)?;
        let added = dir.keep_all(&found.bundle, Growth::Ended)?;
        self.tell(&dir, &transcript, added)
    }

    /// The session's folder; a session of the same name from another place gets a name of its own.
    fn dir(&self, found: &Found, transcript: &Transcript) -> Result<SessionDir, CommandError> {
        let session = &transcript.session;
        let agent = session.agent.parse()?;
        let dir = self.store.vault.session(&agent, &session.id);
        if self.is_free(&dir)? || is_kept_from(&dir, &found.bundle.root)? {
            return Ok(dir);
        }
        let place = found.bundle.root.to_string_lossy();
        let id = SessionId::for_native(&session.agent, &format!("{place}\n{}", session.id));
        Ok(self.store.vault.session(&agent, &id))
    }

    /// Whether no agent has a session of this id.
    fn is_free(&self, dir: &SessionDir) -> Result<bool, CommandError> {
        Ok(!self.store.vault.sessions()?.iter().any(|known| known.id() == dir.id()))
    }

    fn tell(
        &mut self,
        dir: &SessionDir,
        transcript: &Transcript,
        added: u64,
    ) -> Result<(), CommandError> {
        let (id, agent) = (dir.id(), dir.agent());
        let entries = transcript.entries.len();
        if self.json {
            let path = transcript.session.project.as_deref();
            let row = json!({"id": id.as_str(), "agent": agent, "entries": entries, "added": added, "project": path});
            writeln!(self.ui.out(), "{row}")?;
            return Ok(());
        }
        writeln!(self.ui.out(), "{id}")?;
        match added {
            0 => self.ui.status(format_args!("{agent} {id}: {entries} entries, nothing new")),
            added => {
                self.ui.status(format_args!("{agent} {id}: {entries} entries, {added} bytes new"))
            }
        }
        Ok(())
    }
}

fn is_kept_from(dir: &SessionDir, root: &Path) -> Result<bool, CommandError> {
    Ok(dir.is_imported()? && dir.bundle()?.root == root)
}
