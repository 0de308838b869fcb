//! Where `restore` and `resume` may write.
//!
//! A store contains the path of each of its files, and may come from somebody else. Files are written without a
//! question only to the agent's session folders. Any other path needs confirmation, and files that other programs run
//! or trust are never written.

use std::io;
use std::path::{Component, Path, PathBuf};

use steno_agents::registry::session_locations::{project_locations, session_locations};
use steno_vault::SessionDir;

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::protected_paths::is_protected;
use crate::ui::Ui;

/// Maximum number of files listed in a question.
const MAX_LISTED: usize = 5;

/// Checks the targets of one session.
pub(crate) struct WritePermission<'a> {
    env: &'a ProcessEnvironment,
    session: &'a SessionDir,
    /// Finds the past and current project folders of the session.
    find_projects: &'a FindProjects<'a>,
}

type FindProjects<'a> = dyn Fn() -> Result<Vec<PathBuf>, CommandError> + 'a;

impl<'a> WritePermission<'a> {
    /// Creates the check for a session.
    pub(crate) fn new(
        env: &'a ProcessEnvironment,
        session: &'a SessionDir,
        find_projects: &'a FindProjects<'a>,
    ) -> Self {
        Self { env, session, find_projects }
    }

    /// Checks that no target is protected. This is enough if the user chose the folder.
    pub(crate) fn check_protected(&self, targets: &[PathBuf]) -> Result<(), CommandError> {
        let home = self.env.home.canonicalize().unwrap_or_else(|_| self.env.home.clone());
        for target in targets {
            let real = resolve_parents(target)?;
            if [target, &real].into_iter().any(|path| is_protected(path, &self.env.home))
                || is_protected(&real, &home)
            {
                let path = target.display();
                let message =
                    format!("refusing to write a file that other programs run or trust: {path}");
                return Err(CommandError::user(message)
                    .hint("nothing was written; use --to DIR for another folder"));
            }
        }
        Ok(())
    }

    /// Checks that all targets may be written. Asks about those outside of the agent's session folders.
    pub(crate) fn check_targets(
        &self,
        ui: &mut Ui,
        targets: &[PathBuf],
    ) -> Result<(), CommandError> {
        let foreign = self.find_foreign(targets)?;
        if foreign.is_empty() || ui.can_ask() && ui.confirm(confirm_question(&foreign)) {
            return Ok(());
        }
        let (agent, first) = (self.session.agent(), foreign[0].display());
        let message = format!("not in a session folder of {agent}: {first}");
        let id = self.session.id();
        let hint = format!("use `steno restore {id} --to DIR`, or confirm it at a terminal");
        Err(CommandError::user(message).hint(hint))
    }

    /// Returns the targets outside of the agent's session folders. Fails if one is protected.
    pub(crate) fn find_foreign<'t>(
        &self,
        targets: &'t [PathBuf],
    ) -> Result<Vec<&'t Path>, CommandError> {
        self.check_protected(targets)?;
        if targets_outside(targets, &self.agent_folders(&[])?)?.is_empty() {
            return Ok(Vec::new());
        }
        let own = self.agent_folders(&(self.find_projects)()?)?;
        Ok(targets_outside(targets, &own)?)
    }

    /// Returns the agent's session folders, including those in project folders, without links.
    fn agent_folders(&self, projects: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
        let (home, agent) = (&self.env.home, self.session.agent());
        let projects: Vec<PathBuf> =
            projects.iter().filter(|folder| is_project(folder, home)).cloned().collect();
        let mut known = session_locations(home, &ProcessEnvironment::variable);
        known.extend(project_locations(&projects, home, &ProcessEnvironment::variable));
        let own = known.into_iter().filter(|place| place.agent == agent);
        let mut own: Vec<PathBuf> = own.map(|place| place.path).collect();
        // If an agent has no session folders, the whole project counts as one.
        if own.is_empty() {
            own = projects;
        }
        let own = own.into_iter().filter(|path| path.is_absolute());
        Ok(own.map(|path| resolve_parents(&path)).collect::<io::Result<_>>()?)
    }
}

/// Returns whether a folder can be a project: not the home folder, none above it, and no hidden folder in it.
fn is_project(folder: &Path, home: &Path) -> bool {
    let below_home = folder.strip_prefix(home).ok().and_then(|below| below.iter().next());
    let is_hidden = below_home.is_some_and(|name| name.to_string_lossy().starts_with('.'));
    folder.is_absolute() && !home.starts_with(folder) && !is_hidden
}

/// Returns the targets outside of all folders.
fn targets_outside<'t>(targets: &'t [PathBuf], places: &[PathBuf]) -> io::Result<Vec<&'t Path>> {
    let mut outside = Vec::new();
    for target in targets {
        if !is_inside_any(target, places)? {
            outside.push(target.as_path());
        }
    }
    Ok(outside)
}

/// Returns whether a file and its link target are in one of these folders.
fn is_inside_any(target: &Path, places: &[PathBuf]) -> io::Result<bool> {
    let is_in = |path: &Path| places.iter().any(|place| path.starts_with(place));
    // A database is written through a link.
    let linked = target.is_symlink().then(|| target.canonicalize().ok()).flatten();
    Ok(is_in(&resolve_parents(target)?) && linked.is_none_or(|linked| is_in(&linked)))
}

/// Resolves all links in the parents of a path; parts that do not exist stay unchanged.
fn resolve_parents(path: &Path) -> io::Result<PathBuf> {
    let is_plain =
        path.is_absolute() && !path.components().any(|part| part == Component::ParentDir);
    if !is_plain {
        let message = format!("not an absolute path: {}", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut above = path.ancestors().skip(1);
    let Some((there, real)) = above.find_map(|above| Some((above, above.canonicalize().ok()?)))
    else {
        return Ok(path.to_owned());
    };
    Ok(real.join(path.strip_prefix(there).unwrap_or(path)))
}

fn confirm_question(foreign: &[&Path]) -> String {
    let named = foreign.iter().take(MAX_LISTED).map(|path| format!("  {}\n", path.display()));
    let more = foreign.len().saturating_sub(MAX_LISTED);
    let more = (more > 0).then(|| format!("  and {more} more\n"));
    let lines: String = named.chain(more).collect();
    format!("These files are not in the agent's session folders:\n{lines}Write them? [y/N] ")
}
