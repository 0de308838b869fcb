//! Decides where in the vault a session goes: to its own folder, or apart from another session with the same id.

use steno_model::SessionId;
use steno_vault::comparison::KeptComparison;
use steno_vault::{SessionBundle, SessionDir};

use super::SessionImporter;
use crate::store_error::StoreError;

/// Destination of a session in the vault.
pub(super) struct SessionDestination {
    pub(super) dir: SessionDir,
    /// Whether all of it is already there, from another path.
    pub(super) is_complete: bool,
}

impl SessionImporter {
    /// Finds the destination of a session: the folder of its own id, or one apart from it.
    ///
    /// A session at the path it was imported from always goes to its own folder. At another path, the session was
    /// moved, copied, or only has the same id; [`SessionDir::compare_bundle`] decides. For example, `/a/s.jsonl` was
    /// imported with the lines `1 2 3`. Now `/b/s.jsonl` states the same session id:
    ///
    /// | lines in `/b` | `/a` | result | destination |
    /// |---|---|---|---|
    /// | `1 2 3 4` | any | [`KeptComparison::More`] | same session; it continues at `/b` |
    /// | `1 2 3` | gone | [`KeptComparison::Same`] | same session, moved: only its path changes |
    /// | `1 2 3` | exists | [`KeptComparison::Same`] | a copy: nothing is written |
    /// | `1 2` | any | [`KeptComparison::Less`] | an older copy: nothing is written |
    /// | `1 2 9` | any | [`KeptComparison::Other`] | a session of its own, with an id derived from path and id |
    ///
    /// A session that was once put apart stays apart: the next import finds its folder and compares nothing. A session
    /// that could not be parsed at its first import keeps the id derived from its path.
    pub(super) fn find_destination(
        &mut self,
        agent: &str,
        id: &SessionId,
        bundle: &SessionBundle,
    ) -> Result<SessionDestination, StoreError> {
        let name = agent.parse()?;
        let unread = self.vault.session_dir(&name, &unread_id(agent, bundle));
        if !self.batch.contains(unread.id()) && !unread.is_empty()? {
            return Ok(SessionDestination { dir: unread, is_complete: false });
        }
        let dir = self.vault.session_dir(&name, id);
        let path_and_id = format!("{}\n{id}", bundle.root.to_string_lossy());
        let apart = self.vault.session_dir(&name, &SessionId::for_native(agent, &path_and_id));
        if self.batch.contains(id) || self.batch.contains(apart.id()) {
            // Only committed files can be compared.
            self.commit()?;
        }
        // The session may belong to another agent, or another process may have imported it meanwhile.
        let known = self.known_session(id).unwrap_or_else(|| dir.clone());
        let is_own = known.agent() == agent;
        if known.is_empty()? || (is_own && is_imported_from(&known, bundle)?) {
            return Ok(SessionDestination { dir, is_complete: false });
        }
        if is_own && apart.is_empty()? {
            match known.compare_bundle(bundle)? {
                KeptComparison::More => return Ok(SessionDestination { dir, is_complete: false }),
                KeptComparison::Less => return Ok(SessionDestination { dir, is_complete: true }),
                // Only a moved session gets a new path, not a copied one.
                KeptComparison::Same => {
                    let is_complete = known.kept_bundle()?.root.exists();
                    return Ok(SessionDestination { dir, is_complete });
                }
                KeptComparison::Other => {}
            }
        }
        Ok(SessionDestination { dir: apart, is_complete: false })
    }
}

/// Returns the id of a session that could not be parsed at its first import. It keeps this id.
pub(super) fn unread_id(agent: &str, bundle: &SessionBundle) -> SessionId {
    let key = bundle.key.as_deref().map(|key| format!("#{key}")).unwrap_or_default();
    SessionId::for_native(agent, &format!("{}{key}", bundle.root.display()))
}

fn is_imported_from(dir: &SessionDir, bundle: &SessionBundle) -> Result<bool, StoreError> {
    if !dir.is_imported()? {
        return Ok(false);
    }
    let kept = dir.kept_bundle()?;
    if kept.root == dir.path() {
        // None of its files can be read, so nothing shows that it is a different session.
        return Ok(true);
    }
    // A file with several sessions may have had only one when it was imported.
    let is_key = kept.key.is_none() || kept.key == bundle.key;
    Ok(is_key && kept.root.to_string_lossy() == bundle.root.to_string_lossy())
}
