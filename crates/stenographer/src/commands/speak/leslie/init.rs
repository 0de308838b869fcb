//! `init`: creates the stores and the guide in `AGENTS.md`.

use serde_json::json;
use steno_seeds::thread::guide::LeslieGuide;

use super::LeslieContext;
use super::response::{LeslieFailure, LeslieResponse};
use crate::project_threads;

pub(super) fn run(context: &mut LeslieContext<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let yes = context.flags.has("yes");
    let outcome = project_threads::install_guide(context.ui, context.store.root(), yes)?;
    Ok(LeslieResponse::new(json!({
        "status": outcome.status.as_str(),
        "previous_version": outcome.previous_version,
        "next_version": LeslieGuide::built_in().version,
    })))
}
