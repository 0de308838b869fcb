//! `init`: the stores, and the guide in `AGENTS.md`.

use serde_json::json;
use steno_core::thread::guide::Guide;

use super::Desk;
use super::answer::{Answer, Failure};
use crate::threads;

pub(super) fn run(desk: &mut Desk<'_>) -> Result<Answer, Failure> {
    let yes = desk.flags.has("yes");
    let outcome = threads::put_guide(desk.ui, desk.store.root(), yes)?;
    Ok(Answer::new(json!({
        "status": outcome.status.as_str(),
        "previous_version": outcome.previous,
        "next_version": Guide::ours().version,
    })))
}
