//! The folders in which the sessions of agents are.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use steno_agents::registry::session_locations::{
    SessionLocation, project_locations, session_locations,
};

use crate::keep::known_projects::KnownProjects;

/// Where to look for sessions on this machine.
pub struct SessionRoots<'a> {
    /// The store, which knows projects.
    pub store: PathBuf,
    /// The user's home folder.
    pub home: PathBuf,
    /// The value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl SessionRoots<'_> {
    /// The session folders of the selected agents, or of all if none is selected. They may not exist.
    pub fn of_agents(&self, agents: &[String]) -> Vec<PathBuf> {
        let is_selected = |place: &SessionLocation| {
            agents.is_empty() || agents.iter().any(|name| name == place.agent)
        };
        let mut known = session_locations(&self.home, self.variable);
        let projects = KnownProjects::load(&self.store).folders_and_roots();
        known.extend(project_locations(&projects, &self.home, self.variable));
        known.into_iter().filter(is_selected).map(|place| place.path).collect()
    }

    /// Those that exist, without links and duplicates. If a folder above one may not be entered, this folder instead:
    /// reading it fails, so that it is not passed over in silence.
    pub fn existing(&self, agents: &[String]) -> Vec<PathBuf> {
        let places = self.of_agents(agents);
        let roots = places.iter().filter_map(|path| existing_place(path));
        roots.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// The path of a place without links, or the nearest folder above it that may not be entered. `None` if there is
/// nothing at the path.
pub fn existing_place(path: &Path) -> Option<PathBuf> {
    match fs::metadata(path) {
        Ok(_) => Some(resolve_links(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let closed = path.ancestors().find(|folder| fs::metadata(folder).is_ok())?;
            Some(resolve_links(closed.to_owned()))
        }
        Err(_) => None,
    }
}

/// Resolves links, so that a session has the same path however it is reached.
pub fn resolve_links(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}
