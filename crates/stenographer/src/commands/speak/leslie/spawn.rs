//! `spawn`: a new thread, and an agent that works on it unless nobody shall.

use serde_json::json;
use steno_core::thread::{Executor, Inherit, Operator, Spawn};

use super::answer::{Answer, Failure};
use super::{Desk, worker};

pub(super) fn run(desk: &mut Desk<'_>) -> Result<Answer, Failure> {
    let spawned = desk.store.spawn(&wanted(desk)?)?;
    let thread = &spawned.thread;
    let mut data = json!({
        "thread_id": thread.id,
        "parent_id": thread.parent_id,
        "status": thread.status,
        "objective": thread.objective,
    });
    let wants_agent = !desk.flags.has("no_run") && thread.executor != Executor::Human;
    let went_well = !wants_agent || worker::set_to_work(desk, thread, &mut data)?;
    Ok(Answer::new(data).with_warnings(spawned.warnings).that_went(went_well))
}

fn wanted(desk: &Desk<'_>) -> Result<Spawn, Failure> {
    let flags = &desk.flags;
    let parent = flags.optional("parent")?.filter(|parent| !parent.is_empty());
    Ok(Spawn {
        parent: parent.map(str::to_owned),
        inherit: flags.word("inherit")?.unwrap_or(Inherit::None),
        scope: flags.list("scope")?,
        references: flags.list("ref")?,
        tags: Some(flags.list("tags")?),
        executor: flags.word("executor")?.unwrap_or(Executor::Agent),
        operator: Operator::User,
        ..Spawn::new(flags.required("intent")?, flags.required("objective")?)
    })
}
