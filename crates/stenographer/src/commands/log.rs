//! `steno log`: the sessions that edited a file.

use steno_store::blame::{FileSession, RepositoryScope, find_file_sessions};

use super::blame::margin::short_id;
use super::blame::open_repository;
use crate::automatic_sync::AutomaticSyncFlag;
use crate::error::{CommandError, CommandExit};
use crate::file_position::FilePosition;
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::team_access::RemoteFlag;
use crate::text_table::TextTable;
use crate::ui::Ui;

/// List the sessions that edited a file.
///
/// Newest first. The file need not exist any more. Failed edits do not count.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A file in a Git repository.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: String,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) sync: AutomaticSyncFlag,
    #[command(flatten)]
    pub(crate) remote: RemoteFlag,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let position = FilePosition { path: env.cwd.join(&args.file), span: None };
    let repository = open_repository(env, &position)?;
    let path = repository.relative_path(&position.path).map_err(|error| {
        CommandError::user(error).hint("give a file in this repository, such as src/main.rs")
    })?;
    args.sync.sync_before_answer(ui, env);
    let store = SessionStore::new(env);
    let scope = RepositoryScope::new(&repository, &env.store);
    let (index, sessions) =
        store.query_all(ui, |index| find_file_sessions(index, &store.vault, &scope, &path))?;
    if sessions.is_empty() {
        if !position.path.exists() {
            ui.status(format_args!("no such file, and no session has edited one: {path}"));
            return Ok(CommandExit::Failed);
        }
        ui.status(format_args!("no session has edited {path}"));
        return Ok(CommandExit::Failed);
    }
    if args.json {
        for session in &sessions {
            serde_json::to_writer(ui.out(), session)?;
            writeln!(ui.out())?;
        }
        return Ok(CommandExit::Done);
    }
    let mut table = TextTable::new(["LAST EDIT", "AGENT", "ENTRY", "EDITS", "TITLE"]);
    for session in &sessions {
        let id = short_id(&index, &session.session)?;
        table.add_row(table_row(env, session, &id));
    }
    ui.listing_text(&table.render(ui.width()))?;
    Ok(CommandExit::Done)
}

fn table_row(env: &ProcessEnvironment, session: &FileSession, id: &str) -> [String; 5] {
    let time = session
        .last_edit
        .map(|time| time.in_zone(&env.zone).wall().strftime("%Y-%m-%d %H:%M").to_string());
    let last = session.entries.last().copied().unwrap_or_default();
    [
        time.unwrap_or_default(),
        session.agent.clone(),
        format!("{id}:{last}"),
        session.entries.len().to_string(),
        session.title.clone().unwrap_or_default(),
    ]
}
