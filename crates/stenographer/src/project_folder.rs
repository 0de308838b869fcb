//! The folder in which a session goes on: its own, or where that has moved to.

use std::path::{Path, PathBuf};

use steno_core::Session;
use steno_core::durable::OnPath;
use steno_core::repository::{Repository, remote_name};

use crate::error::CommandError;
use crate::known_projects::KnownProjects;
use crate::process_environment::ProcessEnvironment;
use crate::ui::count_noun;

/// A folder that the user named, without links, as agents see it.
pub(crate) fn resolve_folder(folder: &Path) -> Result<PathBuf, CommandError> {
    let folder = folder.canonicalize().on("open", folder)?;
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(CommandError::user(format!("not a folder: {}", folder.display())))
}

/// The folder of a session. Where none is known, the working folder will do unless one is needed.
pub(crate) fn session_folder(
    env: &ProcessEnvironment,
    session: &Session,
    needed: bool,
) -> Result<PathBuf, CommandError> {
    match session.project.as_deref().map(Path::new).filter(|folder| folder.is_absolute()) {
        Some(folder) if folder.is_dir() => Ok(folder.to_owned()),
        Some(folder) => find_moved_folder(env, session, folder),
        None if needed => {
            let message = format!("the folder of the session is not known: {}", session.id);
            Err(CommandError::user(message).hint("use --project DIR"))
        }
        None => Ok(env.cwd.clone()),
    }
}

/// Where a folder is now that its repository is known by.
fn find_moved_folder(
    env: &ProcessEnvironment,
    session: &Session,
    folder: &Path,
) -> Result<PathBuf, CommandError> {
    let gone = CommandError::user(format!("the session's folder is gone: {}", folder.display()));
    let projects = KnownProjects::load(&env.store);
    let noted = projects.repository(folder).cloned();
    let Some(lost) = noted.or_else(|| repository_from_agent(session, folder)) else {
        return Err(gone.hint("its repository is not known; use --project DIR if it has moved"));
    };
    let search = projects.find_moved(&lost);
    let below = folder.strip_prefix(&lost.root).unwrap_or(Path::new(""));
    // Part by part: an empty rest would leave a slash at the end, which agents take for another folder.
    let there = |root: &PathBuf| root.iter().chain(below).collect::<PathBuf>();
    let found = search.matches.iter().map(there).filter(|there| there.is_dir());
    match found.collect::<Vec<_>>().as_slice() {
        [there] => Ok(there.clone()),
        [] => {
            let name = lost.remote.as_deref().unwrap_or("without a remote");
            let known = count_noun(search.checked_count as u64, "folder");
            Err(gone
                .hint(format!("its repository ({name}) is nowhere in what is known: {known}"))
                .hint("use --project DIR if it has moved"))
        }
        several => {
            let names: Vec<_> = several.iter().map(|path| path.display().to_string()).collect();
            Err(gone.hint(format!("use --project with one of: {}", names.join(", "))))
        }
    }
}

/// The repository that the agent itself noted.
fn repository_from_agent(session: &Session, folder: &Path) -> Option<Repository> {
    let url = session.extra.get("git")?.get("repository_url")?.as_str()?;
    let remote = Some(remote_name(url)?);
    Some(Repository { root: folder.to_owned(), remote, first: None })
}
