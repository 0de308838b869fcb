//! `steno show --follow`: prints new entries of a session while its agent writes them.

use std::thread;
use std::time::Duration;

use steno_agents::join::is_only_on_wire;
use steno_model::{Role, Transcript};
use steno_store::transcript::ReadTranscript;
use steno_store::view::json_rows::EntryRow;
use steno_vault::SessionDir;

use crate::error::CommandError;
use crate::live_session::copy_new_sessions;
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionPath;
use crate::ui::Ui;

use super::{Args, terminal};

/// How often to look for new entries.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A session that may grow.
pub(super) enum FollowedSession {
    /// In the store, and copied from its agent's files as they grow.
    Stored(SessionDir),
    /// A file outside of the store.
    Outside(SessionPath),
}

impl FollowedSession {
    pub(super) fn read(&self) -> Result<Transcript, CommandError> {
        match self {
            Self::Stored(session) => Ok(session.read_transcript()?),
            Self::Outside(path) => path.read(),
        }
    }

    /// Copies what is new. Returns the size, which shows whether the session has grown; `None` for a folder.
    fn update(&self, env: &ProcessEnvironment) -> Result<Option<u64>, CommandError> {
        match self {
            Self::Stored(session) => {
                copy_new_sessions(env, session.agent())?;
                Ok(Some(session.stored_size()?))
            }
            Self::Outside(path) => Ok(path.file_size()),
        }
    }
}

/// Prints the entries after the first `printed` ones as they come, until the user stops the program.
pub(super) fn follow_entries(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
    session: &FollowedSession,
    mut printed: usize,
) -> Result<(), CommandError> {
    let mut last_size = None;
    loop {
        ui.flush()?;
        let size = session.update(env)?;
        if size.is_none() || last_size != size {
            last_size = size;
            let mut transcript = session.read()?;
            let count = transcript.entries.len();
            if count < printed {
                ui.status("the agent has removed entries from the session");
            }
            transcript.entries.drain(..printed.min(count));
            printed = count;
            print_entries(ui, env, args, transcript)?;
            ui.flush()?;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn print_entries(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
    mut transcript: Transcript,
) -> Result<(), CommandError> {
    let role = args.only.as_ref().map(|role| Role::from(role.to_lowercase()));
    transcript.entries.retain(|entry| {
        !is_only_on_wire(entry) && role.as_ref().is_none_or(|role| entry.role == *role)
    });
    if args.json {
        for entry in &transcript.entries {
            serde_json::to_writer(ui.out(), &EntryRow::from_entry(entry, &transcript.notes))?;
            writeln!(ui.out())?;
        }
        return Ok(());
    }
    let parts = terminal::render_entries(&transcript, &env.zone, None);
    parts.iter().try_for_each(|part| ui.styled_text(part))?;
    Ok(())
}
