//! The paths to sync: those that the user gave, or the agents' session folders.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use steno_store::format;
use steno_store::sync::{SessionRoots, resolve_links};

use crate::process_environment::ProcessEnvironment;

/// Returns the given paths, or the existing session folders of the selected agents, without duplicates.
pub(crate) fn existing_roots(
    env: &ProcessEnvironment,
    paths: &[PathBuf],
    agents: &[String],
) -> Vec<PathBuf> {
    if paths.is_empty() {
        return session_roots(env).existing(agents);
    }
    let paths = paths.iter().map(|path| resolve_links(env.cwd.join(path)));
    paths.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns the given paths, or the session folders of the selected agents; they may not exist.
pub(crate) fn possible_roots(
    env: &ProcessEnvironment,
    paths: &[PathBuf],
    agents: &[String],
) -> Vec<PathBuf> {
    if paths.is_empty() {
        return session_roots(env).of_agents(agents);
    }
    paths.iter().map(|path| env.cwd.join(path)).collect()
}

/// Returns where agents have sessions on this machine.
fn session_roots(env: &ProcessEnvironment) -> SessionRoots<'static> {
    SessionRoots {
        store: env.store.clone(),
        home: env.home.clone(),
        variable: &ProcessEnvironment::variable,
    }
}

/// Parser for the names of agents with readers.
pub(crate) fn agent_name_parser() -> PossibleValuesParser {
    PossibleValuesParser::new(format::all_readers().map(|reader| reader.agent))
}
