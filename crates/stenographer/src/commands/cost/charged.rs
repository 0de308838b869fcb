//! What was billed: as the index has it, or as the agents' own files tell right now.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use steno_core::SessionId;
use steno_core::cost::charge::Charges;
use steno_core::cost::files::{Register, Statement};
use steno_core::format::{self, FormatError, Found};
use steno_core::index::Filter;

use crate::error::CommandError;
use crate::scene::Scene;
use crate::scope::Scope;
use crate::store::{Store, unknown_format};
use crate::sweep;
use crate::ui::Ui;

/// What was read of files.
pub(super) struct Read {
    pub(super) charges: Charges,
    pub(super) filter: Filter,
    pub(super) failures: Vec<CommandError>,
}

/// What the index has.
pub(super) fn from_index(
    ui: &mut Ui,
    scene: &Scene,
    scope: &Scope,
) -> Result<(Charges, Filter), CommandError> {
    let store = Store::new(scene);
    let filter = scope.filter(scene, |name| Ok(store.kept(name)?.id().clone()))?;
    let (_, charges) = store.ask_all(ui, |index| index.charges(&filter))?;
    Ok((charges, filter))
}

/// What files tell: those at the paths, or all that `steno sync` would look at.
pub(super) fn from_files(
    ui: &mut Ui,
    scene: &Scene,
    paths: &[PathBuf],
    scope: &Scope,
) -> Result<Read, CommandError> {
    let agents: Vec<String> = scope.agent.iter().cloned().collect();
    let (found, mut failures) = sessions(scene, paths, &agents);
    let mut register = Register::default();
    statements(&found, |statement| match statement {
        Ok(mut statement) => {
            ui.problems(&std::mem::take(&mut statement.problems).into_problems());
            register.enter(statement);
        }
        Err(error) => failures.push(error.into()),
    });
    let charges = register.finish();
    let filter = scope.filter(scene, |name| named(&charges, name))?;
    Ok(Read { charges, filter, failures })
}

/// The sessions at all places, those that changed last at the end as in the index.
fn sessions(
    scene: &Scene,
    paths: &[PathBuf],
    agents: &[String],
) -> (Vec<Found>, Vec<CommandError>) {
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for root in sweep::roots(scene, paths, agents) {
        match format::look(&root) {
            Ok(look) => {
                if !paths.is_empty() && look.found.is_empty() && look.failures.is_empty() {
                    failures.push(unknown_format(&root));
                }
                found.extend(look.found);
                failures.extend(look.failures.into_iter().map(CommandError::from));
            }
            Err(error) => failures.push(error.into()),
        }
    }
    found.sort_by_cached_key(sweep::modified);
    (found, failures)
}

/// Reads the sessions on all processors; gives what they state in the sessions' order, as soon as that can be.
fn statements(found: &[Found], mut take: impl FnMut(Result<Statement, FormatError>)) {
    let next = AtomicUsize::new(0);
    let read = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        found.get(at).map(|session| (at, Statement::read(session)))
    };
    let (mut early, mut wanted) = (BTreeMap::new(), 0);
    let mut taken = |(at, statement)| {
        early.insert(at, statement);
        while let Some(statement) = early.remove(&wanted) {
            take(statement);
            wanted += 1;
        }
    };
    let others = thread::available_parallelism().map_or(1, NonZero::get).min(8) - 1;
    thread::scope(|scope| {
        let (told, statements) = mpsc::channel();
        for _ in 0..others {
            let told = told.clone();
            // The other end waits until all is read.
            scope.spawn(move || std::iter::from_fn(read).for_each(|read| _ = told.send(read)));
        }
        drop(told);
        while let Some(own) = read() {
            taken(own);
            statements.try_iter().for_each(&mut taken);
        }
        statements.iter().for_each(taken);
    });
}

/// The session that `name` means among those that were read.
fn named(charges: &Charges, name: &str) -> Result<SessionId, CommandError> {
    let latest = charges.accounts.iter().max_by_key(|account| account.at);
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
        [] => Err(CommandError::user(format!("no session of this name: {name}"))),
        several => {
            let error = CommandError::user(format!("several sessions begin with: {name}"));
            Err(error.hint(format!("one of: {}", several.join(", "))))
        }
    }
}
