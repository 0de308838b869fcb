//! Collects charges from the index, or from the agents' own session files.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use steno_model::SessionId;
use steno_store::cost::charge::ChargeTable;
use steno_store::cost::file_charges::{ChargeCollector, SessionStatement};
use steno_store::format::{self, FormatError, FoundSession};
use steno_store::index::EntryFilter;

use crate::error::CommandError;
use crate::known_values::check_known_values;
use crate::process_environment::ProcessEnvironment;
use crate::session_paths::existing_roots;
use crate::session_scope::SessionScope;
use crate::session_store::{SessionStore, unknown_format_error};
use crate::team_index::{explain_index_error, find_index, open_index};
use crate::ui::Ui;
use steno_store::sync;

/// Charges read from session files.
pub(super) struct ChargesFromFiles {
    pub(super) charges: ChargeTable,
    pub(super) filter: EntryFilter,
    pub(super) failures: Vec<CommandError>,
}

/// Reads the charges in the index.
pub(super) fn from_index(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    scope: &SessionScope,
) -> Result<(ChargeTable, EntryFilter), CommandError> {
    let store = SessionStore::new(env);
    let filter = scope.to_filter(env, |name| Ok(store.find_session(name)?.id().clone()))?;
    let owners = env.session_owners();
    let (index, charges) =
        store.query_all(ui, |index| index.load_team_charges(&filter, &owners))?;
    if charges.select_charges(&filter).next().is_none() {
        // Sums of nothing are an answer too.
        let agent = store.check_agent(scope.agent.as_deref());
        let unknown = agent.and_then(|()| check_known_values(&index, &filter, None));
        unknown.unwrap_or_else(|error| ui.warning(error.to_line()));
    }
    Ok((charges, filter))
}

/// Asks the index of a remote for the charges.
pub(super) fn from_team_index(
    env: &ProcessEnvironment,
    remote: &str,
    scope: &SessionScope,
) -> Result<(ChargeTable, EntryFilter), CommandError> {
    let filter = scope.to_filter(env, |name| Ok(name.parse()?))?;
    let settings = find_index(env, Some(remote))?
        .ok_or_else(|| CommandError::user(format!("the remote has no index: {remote}")))?;
    let index = open_index(&settings)?;
    let charges = index.check_version().and_then(|()| index.load_charges(&filter));
    Ok((charges.map_err(explain_index_error)?, filter))
}

/// Reads charges from session files: those at the paths, or all that `steno sync` reads.
pub(super) fn from_files(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    paths: &[PathBuf],
    scope: &SessionScope,
) -> Result<ChargesFromFiles, CommandError> {
    let agents: Vec<String> = scope.agent.iter().cloned().collect();
    let (found, mut failures) = find_sessions(env, paths, &agents);
    let mut register = ChargeCollector::default();
    read_statements(&found, |statement| match statement {
        Ok(mut statement) => {
            ui.report_problems(&std::mem::take(&mut statement.problems).into_problems());
            register.add_statement(statement);
        }
        Err(error) => failures.push(error.into()),
    });
    let charges = register.finish();
    let filter = scope.to_filter(env, |name| resolve_session(&charges, name))?;
    Ok(ChargesFromFiles { charges, filter, failures })
}

/// Finds the sessions in all folders, least recently changed first, as in the index.
fn find_sessions(
    env: &ProcessEnvironment,
    paths: &[PathBuf],
    agents: &[String],
) -> (Vec<FoundSession>, Vec<CommandError>) {
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for root in existing_roots(env, paths, agents) {
        match format::find_sessions_and_failures(&root) {
            Ok(look) => {
                if !paths.is_empty() && look.sessions.is_empty() && look.failures.is_empty() {
                    failures.push(unknown_format_error(&root));
                }
                found.extend(look.sessions);
                failures.extend(look.failures.into_iter().map(CommandError::from));
            }
            Err(error) => failures.push(error.into()),
        }
    }
    found.sort_by_cached_key(sync::last_modified);
    (found, failures)
}

/// Reads the sessions in parallel. Passes the statements on in the order of the sessions.
fn read_statements(
    found: &[FoundSession],
    mut take: impl FnMut(Result<SessionStatement, FormatError>),
) {
    let next = AtomicUsize::new(0);
    let read = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        found.get(at).map(|session| (at, SessionStatement::read(session)))
    };
    let (mut early, mut next_index) = (BTreeMap::new(), 0);
    let mut taken = |(at, statement)| {
        early.insert(at, statement);
        while let Some(statement) = early.remove(&next_index) {
            take(statement);
            next_index += 1;
        }
    };
    let others = thread::available_parallelism().map_or(1, NonZero::get).min(8) - 1;
    thread::scope(|scope| {
        let (sender, statements) = mpsc::channel();
        for _ in 0..others {
            let sender = sender.clone();
            // The receiver lives until all is read.
            scope.spawn(move || std::iter::from_fn(read).for_each(|read| _ = sender.send(read)));
        }
        drop(sender);
        while let Some(own) = read() {
            taken(own);
            statements.try_iter().for_each(&mut taken);
        }
        statements.iter().for_each(taken);
    });
}

/// Finds the session by id, prefix or `latest` among those that were read.
fn resolve_session(charges: &ChargeTable, name: &str) -> Result<SessionId, CommandError> {
    let latest = charges.accounts.iter().max_by_key(|account| account.ended_at);
    if let Some(latest) = latest.filter(|_| name == "latest") {
        return Ok(latest.session.parse()?);
    }
    let begins = |id: &&str| id.starts_with(name);
    let ids = charges.accounts.iter().map(|account| account.session.as_str());
    let mut like: Vec<&str> = ids.filter(begins).collect();
    like.sort_unstable();
    like.dedup();
    if like.contains(&name) {
        like = vec![name];
    }
    match like.as_slice() {
        [id] => Ok(id.parse()?),
        [] => Err(CommandError::user(format!("no such session: {name}"))),
        several => {
            let error = CommandError::user(format!("ambiguous session id: {name}"));
            Err(error.hint(format!("one of: {}", several.join(", "))))
        }
    }
}
