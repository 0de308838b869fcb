//! Opens the search index of a remote, which large organisations have beside it.

use steno_team::{ClickHouseIndex, PostgresPassword, TeamError};

use crate::config::{Config, IndexSettings};
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::team_access::run_password_command;

/// Returns where the index of a remote is, if it has one.
pub(crate) fn find_index(
    env: &ProcessEnvironment,
    remote: Option<&str>,
) -> Result<Option<IndexSettings>, CommandError> {
    Ok(Config::load(env)?.remote(remote)?.index)
}

/// Opens an index. Its version is not checked yet.
pub(crate) fn open_index(settings: &IndexSettings) -> Result<ClickHouseIndex, CommandError> {
    let password = match &settings.password_command {
        Some(command) => Some(run_password_command(command, "index_password_command")?),
        None => ProcessEnvironment::variable("CLICKHOUSE_PASSWORD")
            .map(|password| PostgresPassword(password.to_string_lossy().into_owned())),
    };
    ClickHouseIndex::new(&settings.url, password.as_ref()).map_err(explain_index_error)
}

/// Adds a hint to an error of an index.
pub(crate) fn explain_index_error(error: TeamError) -> CommandError {
    let hint = match &error {
        TeamError::NotInitialised(_) => Some("run `steno load --from NAME --init`"),
        TeamError::NewerSchema { .. } => Some("install a newer version of steno"),
        TeamError::OlderSchema { .. } => {
            Some("drop the tables steno_*, then run `steno load --from NAME --init`")
        }
        TeamError::Connection { .. } => {
            Some("check the host and port of the URL, and https or http; see docs/scale.md")
        }
        TeamError::Database { reason, .. } if reason.contains("Authentication failed") => {
            Some("set CLICKHOUSE_PASSWORD or index_password_command; see docs/scale.md")
        }
        _ => None,
    };
    let error = CommandError::user(error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
