//! All agents, protocols and interchange formats, and what is known about them by name.
//!
//! `agents::AGENTS`, [`protocols`](crate::protocols) and `interchange::FORMATS` have a row for each.

#[cfg(test)]
mod continuation_tests;
#[cfg(test)]
mod resume_tests;
pub mod session_locations;
#[cfg(test)]
mod tests;

use std::path::Path;

use steno_model::durable::FileError;
use steno_vault::DatabaseSchemas;

use crate::agent::Agent;
use crate::agent::resume::ResumeCommand;
use crate::agents::AGENTS;
use crate::interchange::FORMATS;
use crate::protocols::{acp, api_log};
use crate::reader::{self, FormatReader, FoundSession};

/// All agents, in the order in which their readers are tried: Claude Code first, because it has the most files. A
/// reader that identifies its files precisely comes before one that accepts any file of a similar shape.
pub fn all_agents() -> impl Iterator<Item = &'static Agent> {
    let (first, others) = AGENTS.split_first().expect("there are agents");
    let agents = [*first, &acp::AGENT].into_iter().chain(others.iter().copied());
    agents.chain([&api_log::AGENT]).chain(FORMATS.iter().copied())
}

/// The agent whose sessions are stored under this name.
pub fn agent_named(name: &str) -> Option<&'static Agent> {
    all_agents().find(|agent| agent.name() == name)
}

/// The readers of all agents, in the order of [`all_agents`].
pub fn all_readers() -> impl Iterator<Item = &'static FormatReader> {
    all_agents().map(|agent| agent.reader)
}

/// Finds the sessions of all agents at or below `path`.
pub fn find_sessions(path: &Path) -> Result<Vec<FoundSession>, FileError> {
    reader::find_sessions(path, all_readers()).map(|found| found.sessions)
}

/// The resume command of an agent. `None` if it has none.
pub fn resume_command(agent: &str) -> Option<ResumeCommand> {
    agent_named(agent).and_then(ResumeCommand::of_agent)
}

/// The database schemas of an agent. Empty for an agent without a database.
pub fn database_schemas(agent: &str) -> DatabaseSchemas {
    agent_named(agent).map_or(&[], |agent| agent.database_schemas)
}
