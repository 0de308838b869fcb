//! What is asked about a thread, and what happens to it as a whole.

use serde_json::json;
use steno_core::thread::{
    Action, Inject, Lifecycle, Operator, Status, Thread, ThreadError, Transfer,
};

use super::Desk;
use super::answer::{Answer, Failure};

pub(super) fn lifecycle(desk: &Desk<'_>) -> Result<Answer, Failure> {
    let thread = desk.flags.required("thread")?.to_owned();
    let word = desk.flags.required("action")?;
    let reason = desk.flags.optional("reason")?.map(str::to_owned);
    let Ok(action) = word.parse::<Action>() else {
        let from = desk.store.thread(&thread)?.status;
        return Err(ThreadError::Transition { from, action: word.to_owned() }.into());
    };
    let change = Lifecycle { thread, action, reason, operator: Operator::User };
    let thread = desk.store.lifecycle(&change)?;
    Ok(Answer::new(json!({ "threadId": thread.id, "status": thread.status })))
}

pub(super) fn list(desk: &mut Desk<'_>) -> Result<Answer, Failure> {
    let named = desk.flags.optional("status")?.filter(|status| !status.is_empty());
    let threads = match named.map(str::parse::<Status>) {
        None => desk.store.threads(None)?,
        Some(Ok(status)) => desk.store.threads(Some(status))?,
        Some(Err(error)) => {
            desk.ui.warning(format_args!("no thread can have this status: {error}"));
            Vec::new()
        }
    };
    let row = |thread: &Thread| {
        json!({
            "id": thread.id,
            "title": thread.title,
            "objective": thread.objective,
            "status": thread.status,
            "parent_id": thread.parent_id,
            "executor": thread.executor,
            "created_at": thread.created_at,
        })
    };
    Ok(Answer::new(threads.iter().map(row).collect::<Vec<_>>()))
}

pub(super) fn status(desk: &Desk<'_>) -> Result<Answer, Failure> {
    let id = desk.flags.required("thread")?;
    let mut data = json!(desk.store.thread(id)?);
    let (context, warnings) = desk.store.context(id)?;
    data["thread_context"] = context.into();
    Ok(Answer::new(data).with_warnings(warnings))
}

pub(super) fn artifacts(desk: &Desk<'_>) -> Result<Answer, Failure> {
    let id = desk.flags.required("thread")?;
    let (assets, warnings) = desk.store.artifacts(id).map_err(Failure::bare)?;
    Ok(Answer::new(assets).with_warnings(warnings))
}

pub(super) fn transfer(desk: &Desk<'_>) -> Result<Answer, Failure> {
    let flags = &desk.flags;
    let (thread, direction) = (flags.required("thread")?, flags.required("direction")?);
    let invalid = |error| Failure::unknown(format!("Invalid value of flag --direction: {error}"));
    let transfer = Transfer {
        thread: thread.to_owned(),
        direction: direction.parse().map_err(invalid)?,
        scope: flags.required_list("scope")?,
        reason: flags.optional("reason")?.map(str::to_owned),
        executor: flags.word("target")?,
        operator: Operator::User,
    };
    let thread = desk.store.transfer(&transfer).map_err(Failure::bare)?;
    let (id, status, executor) = (thread.id, thread.status, thread.executor);
    Ok(Answer::new(json!({ "threadId": id, "status": status, "executor": executor })))
}

pub(super) fn inject(desk: &Desk<'_>) -> Result<Answer, Failure> {
    let flags = &desk.flags;
    let inject = Inject {
        thread: flags.required("thread")?.to_owned(),
        kind: flags.required("type")?.to_owned(),
        content: flags.required("content")?.to_owned(),
        operator: Operator::User,
    };
    let at = desk.store.inject(&inject)?;
    Ok(Answer::new(json!({ "threadId": inject.thread, "injectedAt": at })))
}
