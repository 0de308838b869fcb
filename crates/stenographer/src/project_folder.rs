//! Finds the project folder of a session, also after it has moved.

use std::path::{Path, PathBuf};

use steno_model::Session;
use steno_model::durable::OnPath;
use steno_store::repository::{GitCheckout, normalize_remote_url};

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::ui::count_noun;
use steno_store::keep::known_projects::KnownProjects;

/// Resolves a folder given by the user, without links, as agents see it.
pub(crate) fn resolve_folder(folder: &Path) -> Result<PathBuf, CommandError> {
    let folder = folder.canonicalize().on("open", folder)?;
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(CommandError::user(format!("not a folder: {}", folder.display())))
}

/// Returns the folder of a session. If it is unknown, returns the working folder unless `needed`.
pub(crate) fn session_folder(
    env: &ProcessEnvironment,
    session: &Session,
    needed: bool,
) -> Result<PathBuf, CommandError> {
    match session.project.as_deref().map(Path::new).filter(|folder| folder.is_absolute()) {
        Some(folder) if folder.is_dir() => Ok(folder.to_owned()),
        Some(folder) => find_moved_folder(env, session, folder),
        None if needed => {
            let message = format!("the session has no project folder: {}", session.id);
            Err(CommandError::user(message).hint("use --project DIR"))
        }
        None => Ok(env.cwd.clone()),
    }
}

/// Finds a moved folder by its repository.
fn find_moved_folder(
    env: &ProcessEnvironment,
    session: &Session,
    folder: &Path,
) -> Result<PathBuf, CommandError> {
    let gone =
        CommandError::user(format!("the session's folder no longer exists: {}", folder.display()));
    if env.is_mirror
        && let Some(here) = project_of_same_name(env, folder)
    {
        return Ok(here);
    }
    let projects = KnownProjects::load(&env.own_store);
    let noted = projects.repository(folder).cloned();
    let Some(lost) = noted.or_else(|| repository_from_agent(session, folder)) else {
        return Err(gone.hint("its repository is unknown; use --project DIR if it has moved"));
    };
    let search = projects.find_moved(&lost);
    let below = folder.strip_prefix(&lost.root).unwrap_or(Path::new(""));
    // Joined by components: an empty suffix would add a trailing slash, which agents take for another folder.
    let there = |root: &PathBuf| root.iter().chain(below).collect::<PathBuf>();
    let found = search.matches.iter().map(there).filter(|there| there.is_dir());
    match found.collect::<Vec<_>>().as_slice() {
        [there] => Ok(there.clone()),
        [] => {
            let name = lost.remote.as_deref().unwrap_or("without a remote");
            let known = count_noun(search.checked_count as u64, "folder");
            Err(gone
                .hint(format!("its repository ({name}) was not found in {known}"))
                .hint("use --project DIR if it has moved"))
        }
        several => {
            let names: Vec<_> = several.iter().map(|path| path.display().to_string()).collect();
            Err(gone.hint(format!("use --project with one of: {}", names.join(", "))))
        }
    }
}

/// Returns the working folder, or the nearest above it, that is called as a colleague's project.
fn project_of_same_name(env: &ProcessEnvironment, folder: &Path) -> Option<PathBuf> {
    let cwd = env.cwd.canonicalize().ok()?;
    let name = folder.file_name()?;
    let is_below_home = |place: &&Path| !env.home.starts_with(place);
    let above = cwd.ancestors().take_while(is_below_home);
    above.into_iter().find(|place| place.file_name() == Some(name)).map(Path::to_owned)
}

/// Returns the repository that the agent recorded.
fn repository_from_agent(session: &Session, folder: &Path) -> Option<GitCheckout> {
    let url = session.extra.get("git")?.get("repository_url")?.as_str()?;
    let remote = Some(normalize_remote_url(url)?);
    Some(GitCheckout { root: folder.to_owned(), remote, first: None })
}
