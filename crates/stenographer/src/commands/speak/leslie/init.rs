//! `init`: the stores, and the guide in `AGENTS.md`.

use serde_json::json;
use steno_core::thread::guide::Guide;

use super::LeslieCall;
use super::response::{LeslieFailure, LeslieResponse};
use crate::project_threads;

pub(super) fn run(desk: &mut LeslieCall<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let yes = desk.flags.has("yes");
    let outcome = project_threads::install_guide(desk.ui, desk.store.root(), yes)?;
    Ok(LeslieResponse::new(json!({
        "status": outcome.status.as_str(),
        "previous_version": outcome.previous,
        "next_version": Guide::ours().version,
    })))
}
