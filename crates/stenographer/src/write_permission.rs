//! Where `restore` and `resume` may write.
//!
//! A store tells where each of its files goes, and it may be somebody else's. So files go without a question only to
//! where the agent keeps its sessions. Anywhere else a person has to agree, and to what other programs run or trust
//! nothing is ever written.

use std::io;
use std::path::{Component, Path, PathBuf};

use steno_core::agent::places::{in_projects, places};
use steno_core::vault::SessionDir;

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::protected_paths::is_protected;
use crate::ui::Ui;

/// How many files are named in a question.
const MAX_LISTED: usize = 5;

/// Whether the files of one session may be written.
pub(crate) struct WritePermission<'a> {
    env: &'a ProcessEnvironment,
    session: &'a SessionDir,
    /// Finds the folders that the session's agent worked in, then and now.
    find_projects: &'a FindProjects<'a>,
}

type FindProjects<'a> = dyn Fn() -> Result<Vec<PathBuf>, CommandError> + 'a;

impl<'a> WritePermission<'a> {
    /// The rule for a session whose agent worked in these folders.
    pub(crate) fn new(
        env: &'a ProcessEnvironment,
        session: &'a SessionDir,
        find_projects: &'a FindProjects<'a>,
    ) -> Self {
        Self { env, session, find_projects }
    }

    /// Makes sure that none of the targets is protected. What the user has chosen the folder for needs no more.
    pub(crate) fn check_protected(&self, targets: &[PathBuf]) -> Result<(), CommandError> {
        let home = self.env.home.canonicalize().unwrap_or_else(|_| self.env.home.clone());
        for target in targets {
            let real = resolve_parents(target)?;
            if [target, &real].into_iter().any(|path| is_protected(path, &self.env.home))
                || is_protected(&real, &home)
            {
                let path = target.display();
                let message = format!("other programs run or trust this file: {path}");
                return Err(CommandError::user(message)
                    .hint("nothing was written; use --to DIR to put the files elsewhere"));
            }
        }
        Ok(())
    }

    /// Makes sure that all targets may be written, and asks about those that are not where the agent keeps sessions.
    pub(crate) fn check_targets(
        &self,
        ui: &mut Ui,
        targets: &[PathBuf],
    ) -> Result<(), CommandError> {
        self.check_protected(targets)?;
        if targets_outside(targets, &self.agent_folders(&[])?)?.is_empty() {
            return Ok(());
        }
        let own = self.agent_folders(&(self.find_projects)()?)?;
        let foreign = targets_outside(targets, &own)?;
        if foreign.is_empty() || ui.can_ask() && ui.confirm(confirm_question(&foreign)) {
            return Ok(());
        }
        let (agent, first) = (self.session.agent(), foreign[0].display());
        let message = format!("not in a folder where {agent} keeps sessions: {first}");
        let id = self.session.id();
        let hint = format!("use `steno restore {id} --to DIR`, or confirm it at a terminal");
        Err(CommandError::user(message).hint(hint))
    }

    /// Where the session's agent keeps sessions, also in project folders, free of links.
    fn agent_folders(&self, projects: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
        let (home, agent) = (&self.env.home, self.session.agent());
        let projects: Vec<PathBuf> =
            projects.iter().filter(|folder| is_project(folder, home)).cloned().collect();
        let mut known = places(home, &ProcessEnvironment::variable);
        known.extend(in_projects(&projects, home, &ProcessEnvironment::variable));
        let own = known.into_iter().filter(|place| place.agent == agent);
        let mut own: Vec<PathBuf> = own.map(|place| place.path).collect();
        // Of an agent that has no places, the whole project is one.
        if own.is_empty() {
            own = projects;
        }
        let own = own.into_iter().filter(|path| path.is_absolute());
        Ok(own.map(|path| resolve_parents(&path)).collect::<io::Result<_>>()?)
    }
}

/// Whether a folder can be a project: neither the home folder, nor one above it, nor one of a program's own.
fn is_project(folder: &Path, home: &Path) -> bool {
    let below_home = folder.strip_prefix(home).ok().and_then(|below| below.iter().next());
    let is_hidden = below_home.is_some_and(|name| name.to_string_lossy().starts_with('.'));
    folder.is_absolute() && !home.starts_with(folder) && !is_hidden
}

/// Those of the targets that are in none of the places.
fn targets_outside<'t>(targets: &'t [PathBuf], places: &[PathBuf]) -> io::Result<Vec<&'t Path>> {
    let mut outside = Vec::new();
    for target in targets {
        if !is_inside_any(target, places)? {
            outside.push(target.as_path());
        }
    }
    Ok(outside)
}

/// Whether a file and what it leads to are in one of these places.
fn is_inside_any(target: &Path, places: &[PathBuf]) -> io::Result<bool> {
    let is_in = |path: &Path| places.iter().any(|place| path.starts_with(place));
    // A database is written through a link.
    let linked = target.is_symlink().then(|| target.canonicalize().ok()).flatten();
    Ok(is_in(&resolve_parents(target)?) && linked.is_none_or(|linked| is_in(&linked)))
}

/// The path with all links on the way to it followed; what is not there yet stays as it is named.
fn resolve_parents(path: &Path) -> io::Result<PathBuf> {
    let is_plain =
        path.is_absolute() && !path.components().any(|part| part == Component::ParentDir);
    if !is_plain {
        let message = format!("not the full path of a file: {}", path.display());
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
    format!(
        "These files are not in a folder where the agent keeps sessions:\n{lines}Write them? [y/N] "
    )
}
