//! The agents of this machine and of the store.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use steno_agents::registry::session_locations::{
    SessionLocation, project_locations, session_locations,
};
use steno_model::durable::{FileError, OnPath};
use steno_store::format::{self, FileListing};
use steno_store::index::AgentSummary;

use super::store_report::shorten_home;
use crate::agent_settings::RegistrationState;
use crate::commands::hooks::HookStatusRow;
use crate::commands::list::format_start;
use crate::process_environment::ProcessEnvironment;
use steno_store::keep::file_stamp::file_stamp;
use steno_store::keep::known_projects::KnownProjects;
use steno_store::sync::existing_place;
use steno_store::sync::seen_files::SeenFiles;

/// An agent that was found on this machine, or has sessions in the store.
#[derive(Debug, Default, Serialize)]
pub(crate) struct FoundAgentReport {
    pub(crate) agent: String,
    /// Existing folders and files with sessions.
    locations: Vec<PathBuf>,
    /// Files in them, and their size.
    files: u64,
    bytes: u64,
    /// Files that were not copied yet, or have changed since.
    pub(crate) new_files: u64,
    /// Kept sessions with entries.
    sessions: u64,
    /// Time of the last kept message.
    last_message: Option<String>,
    /// Whether hooks are installed; `None` for an agent without hooks.
    pub(crate) hooks: Option<RegistrationState>,
}

/// How many files and folders of an agent that cannot be read are named.
const MAX_FAILURES: usize = 3;

/// Collects the agents, and messages about files and folders that cannot be read.
pub(crate) fn collect_agents(
    env: &ProcessEnvironment,
    summaries: &[AgentSummary],
    hooks: &[HookStatusRow],
) -> (Vec<FoundAgentReport>, Vec<String>) {
    let seen = SeenFiles::load(&env.store, |_| true);
    let mut agents: BTreeMap<String, FoundAgentReport> = BTreeMap::new();
    let mut problems = Vec::new();
    for location in existing_locations(env) {
        let report = agents.entry(location.agent.to_owned()).or_default();
        for problem in report.add_location(&seen, location.path) {
            // A folder that may not be entered can be that of several agents.
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }
    for summary in summaries {
        let report = agents.entry(summary.agent.clone()).or_default();
        report.sessions = summary.sessions;
        report.last_message = summary.last_activity.map(|at| at.to_string());
    }
    for row in hooks.iter().filter(|row| row.state != RegistrationState::NotFound) {
        agents.entry(row.agent.to_owned()).or_default().hooks = Some(row.state);
    }
    let reports = agents.into_iter().map(|(agent, report)| FoundAgentReport { agent, ..report });
    (reports.collect(), problems)
}

/// Returns the places with sessions that exist, each once.
fn existing_locations(env: &ProcessEnvironment) -> Vec<SessionLocation> {
    let mut locations = session_locations(&env.home, &ProcessEnvironment::variable);
    let projects = KnownProjects::load(&env.store).folders_and_roots();
    locations.extend(project_locations(&projects, &env.home, &ProcessEnvironment::variable));
    let mut found: Vec<SessionLocation> = Vec::new();
    for SessionLocation { agent, path } in locations {
        let Some(path) = existing_place(&path) else { continue };
        let location = SessionLocation { agent, path };
        if !found.contains(&location) {
            found.push(location);
        }
    }
    found
}

/// The first files and folders that cannot be read, with the reasons, and how many more there are.
fn describe_failures(failures: &[FileError]) -> Vec<String> {
    let failures: Vec<&FileError> = failures.iter().filter(|error| !error.is_missing()).collect();
    let describe = |error: &&FileError| format!("{error}: {}", error.source);
    let mut messages: Vec<String> = failures.iter().take(MAX_FAILURES).map(describe).collect();
    if let Some(more) = failures.len().checked_sub(MAX_FAILURES).filter(|more| *more > 0) {
        messages.push(format!("{more} more files and folders beside them cannot be read"));
    }
    messages
}

impl FoundAgentReport {
    /// Counts the files at a location. Returns messages about files and folders that cannot be read.
    fn add_location(&mut self, seen: &SeenFiles, path: PathBuf) -> Vec<String> {
        let failures = match format::list_files(&path) {
            Ok(FileListing { files, mut failures }) => {
                for file in &files {
                    let Some((size, modified)) = file_stamp(file) else { continue };
                    self.files += 1;
                    self.bytes += size;
                    self.new_files += u64::from(!seen.is_unchanged(file, (size, modified)));
                    failures.extend(fs::File::open(file).on("open", file).err());
                }
                failures
            }
            Err(error) => vec![error],
        };
        self.locations.push(path);
        describe_failures(&failures)
    }

    pub(crate) fn table_cells(&self, env: &ProcessEnvironment) -> [String; 6] {
        let last = self.last_message.as_deref().and_then(|at| at.parse().ok());
        let this_year = env.clock.now().in_zone(&env.zone).wall().year();
        let last =
            last.map(|at: steno_model::Timestamp| format_start(at.in_zone(&env.zone), this_year));
        let hooks = self.hooks.map_or_else(|| "-".to_owned(), |state| state.to_string());
        let mut folder = self.locations.first().map(|path| shorten_home(path, env));
        if self.locations.len() > 1 {
            let more = self.locations.len() - 1;
            folder = folder.map(|folder| format!("{folder} and {more} more"));
        }
        [
            self.agent.clone(),
            self.sessions.to_string(),
            last.unwrap_or_else(|| "-".to_owned()),
            self.new_files.to_string(),
            hooks,
            folder.unwrap_or_else(|| "-".to_owned()),
        ]
    }
}
