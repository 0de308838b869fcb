//! `steno load`: loads a remote into a search index.

use steno_team::{ClickHouseUrl, ClickHouseUrlError, LoadSummary, SessionLoader};

use crate::config::IndexSettings;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::team_access::{TeamAccess, explain_team_error};
use crate::team_index::{explain_index_error, find_index, open_index};
use crate::ui::{Ui, count_noun};

/// Load a remote into ClickHouse, for large organisations.
///
/// Loads the sessions that the database lacks, and removes those that the remote no longer shows. It keeps no state: it
/// may be started at any time, by anything, also twice at once, and may be killed. Sessions with the visibility `private`
/// are not loaded. With `index` in `[remote.NAME]`, `search --from` and `cost --from` ask the database.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The remote to read.
    #[arg(long, value_name = "REMOTE")]
    from: Option<String>,
    /// ClickHouse's HTTP interface, such as clickhouse+http://user@host:8123/database?org=shop [default: the remote's
    /// `index`]. The password comes from CLICKHOUSE_PASSWORD or `index_password_command`.
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Create the tables first, if they do not exist.
    #[arg(long)]
    init: bool,
    /// Remove what killed loads left, and erase all that was removed from the server's disk. No other load may run.
    #[arg(long)]
    sweep: bool,
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
    let access = TeamAccess::find(env, args.from.as_deref())?;
    let index = open_index(&args.index_settings(env)?)?;
    if args.init && index.initialise().map_err(explain_index_error)? {
        ui.status("created the tables");
    }
    index.check_version().map_err(explain_index_error)?;
    let explain = |error| explain_team_error(error, &access.settings.name);
    let mut remote = access.connect(env)?;
    remote.check_version().map_err(explain)?;
    let staging = tempfile::tempdir().map_err(CommandError::user)?;
    let loader = SessionLoader::begin(&index, &mut remote, staging.path());
    let mut loader = loader.map_err(explain_index_error)?;
    let mut progress = ui.start_progress("loading");
    let mut failures = Vec::new();
    let loaded = loader.load(&mut |key, error| {
        progress.step(&key.id);
        failures.extend(error.map(ToString::to_string));
    });
    drop(progress);
    let summary = loaded.map_err(explain_index_error)?;
    if args.sweep {
        loader.sweep().map_err(explain_index_error)?;
    }
    failures.iter().for_each(|failure| ui.warning(failure));
    report(ui, &summary, args.json)?;
    Ok(if summary.failed > 0 { CommandExit::Failed } else { CommandExit::Done })
}

impl Args {
    fn index_settings(&self, env: &ProcessEnvironment) -> Result<IndexSettings, CommandError> {
        let configured = find_index(env, self.from.as_deref())?;
        let Some(url) = &self.to else {
            return configured.ok_or_else(|| {
                let error = CommandError::usage("the remote has no index");
                error.hint("add --to clickhouse+http://user@host:8123/database")
            });
        };
        let url: ClickHouseUrl = url.parse().map_err(|error: ClickHouseUrlError| {
            let hint = match error {
                ClickHouseUrlError::HasPassword => {
                    "set CLICKHOUSE_PASSWORD, or index_password_command in config.toml"
                }
                _ => "such as clickhouse+http://user@host:8123/database?org=shop",
            };
            CommandError::usage(error).hint(hint)
        })?;
        let password_command = configured.and_then(|index| index.password_command);
        Ok(IndexSettings { url, password_command })
    }
}

fn report(ui: &mut Ui, summary: &LoadSummary, is_json: bool) -> Result<(), CommandError> {
    if is_json {
        serde_json::to_writer(ui.out(), summary)?;
        writeln!(ui.out())?;
        return Ok(());
    }
    let mut words = vec![format!("loaded {}", count_noun(summary.sessions, "session"))];
    words.push(format!("{} entries", summary.entries));
    for (count, what) in
        [(summary.removed, "removed"), (summary.private, "private"), (summary.failed, "failed")]
    {
        if count > 0 {
            words.push(format!("{count} {what}"));
        }
    }
    words.push(format!("{} unchanged", summary.unchanged));
    ui.status(words.join(", "));
    Ok(())
}
