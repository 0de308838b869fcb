//! Sessions that their agents are writing: brings the store up to date while somebody reads them.

use steno_store::sync::SessionSyncer;

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::session_paths::existing_roots;
use crate::sync_state::SyncLock;

/// Copies what an agent has written since the last sync, unless another process does that now.
pub(crate) fn copy_new_sessions(env: &ProcessEnvironment, agent: &str) -> Result<(), CommandError> {
    let Some(_lock) = SyncLock::try_acquire(&env.store) else { return Ok(()) };
    let mut syncer = SessionSyncer::new(env.store_location())?;
    let agents = [agent.to_owned()];
    for root in existing_roots(env, &[], &agents) {
        syncer.sync_root(&root, &agents)?;
        syncer.seen.save()?;
    }
    syncer.finish();
    Ok(())
}
