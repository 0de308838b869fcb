//! `spawn`: creates a thread, and starts an agent unless `--no-run` is given.

use serde_json::json;
use steno_seeds::thread::{Executor, Inheritance, Operator, SpawnRequest};

use super::response::{LeslieFailure, LeslieResponse};
use super::{LeslieContext, worker};

pub(super) fn run(context: &mut LeslieContext<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let spawned = context.store.spawn_thread(&parse_spawn(context)?)?;
    let thread = &spawned.thread;
    let mut data = json!({
        "thread_id": thread.id,
        "parent_id": thread.parent_id,
        "status": thread.status,
        "objective": thread.objective,
    });
    let wants_agent = !context.flags.has("no_run") && thread.executor != Executor::Human;
    let went_well = !wants_agent || worker::run_or_start_agent(context, thread, &mut data)?;
    Ok(LeslieResponse::new(data).with_warnings(spawned.warnings).with_success(went_well))
}

fn parse_spawn(context: &LeslieContext<'_>) -> Result<SpawnRequest, LeslieFailure> {
    let flags = &context.flags;
    let parent = flags.optional_text("parent")?.filter(|parent| !parent.is_empty());
    Ok(SpawnRequest {
        parent: parent.map(str::to_owned),
        inherit: flags.parse_word("inherit")?.unwrap_or(Inheritance::None),
        scope: flags.comma_list("scope")?,
        references: flags.comma_list("ref")?,
        tags: Some(flags.comma_list("tags")?),
        executor: flags.parse_word("executor")?.unwrap_or(Executor::Agent),
        operator: Operator::User,
        ..SpawnRequest::new(flags.required_text("intent")?, flags.required_text("objective")?)
    })
}
