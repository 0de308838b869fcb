//! What is asked about a thread, and what happens to it as a whole.

use serde_json::json;
use steno_core::thread::{
    Action, Inject, Lifecycle, Operator, Status, Thread, ThreadError, Transfer,
};

use super::LeslieCall;
use super::response::{LeslieFailure, LeslieResponse};

pub(super) fn change_lifecycle(desk: &LeslieCall<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let thread = desk.flags.required_text("thread")?.to_owned();
    let word = desk.flags.required_text("action")?;
    let reason = desk.flags.optional_text("reason")?.map(str::to_owned);
    let Ok(action) = word.parse::<Action>() else {
        let from = desk.store.thread(&thread)?.status;
        return Err(ThreadError::Transition { from, action: word.to_owned() }.into());
    };
    let change = Lifecycle { thread, action, reason, operator: Operator::User };
    let thread = desk.store.lifecycle(&change)?;
    Ok(LeslieResponse::new(json!({ "threadId": thread.id, "status": thread.status })))
}

pub(super) fn list_threads(desk: &mut LeslieCall<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let named = desk.flags.optional_text("status")?.filter(|status| !status.is_empty());
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
    Ok(LeslieResponse::new(threads.iter().map(row).collect::<Vec<_>>()))
}

pub(super) fn thread_status(desk: &LeslieCall<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let id = desk.flags.required_text("thread")?;
    let mut data = json!(desk.store.thread(id)?);
    let (context, warnings) = desk.store.context(id)?;
    data["thread_context"] = context.into();
    Ok(LeslieResponse::new(data).with_warnings(warnings))
}

pub(super) fn list_artifacts(desk: &LeslieCall<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let id = desk.flags.required_text("thread")?;
    let (assets, warnings) = desk.store.artifacts(id).map_err(LeslieFailure::without_details)?;
    Ok(LeslieResponse::new(assets).with_warnings(warnings))
}

pub(super) fn transfer_thread(desk: &LeslieCall<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let flags = &desk.flags;
    let (thread, direction) = (flags.required_text("thread")?, flags.required_text("direction")?);
    let invalid =
        |error| LeslieFailure::without_code(format!("Invalid value of flag --direction: {error}"));
    let transfer = Transfer {
        thread: thread.to_owned(),
        direction: direction.parse().map_err(invalid)?,
        scope: flags.required_list("scope")?,
        reason: flags.optional_text("reason")?.map(str::to_owned),
        executor: flags.parse_word("target")?,
        operator: Operator::User,
    };
    let thread = desk.store.transfer(&transfer).map_err(LeslieFailure::without_details)?;
    let (id, status, executor) = (thread.id, thread.status, thread.executor);
    Ok(LeslieResponse::new(json!({ "threadId": id, "status": status, "executor": executor })))
}

pub(super) fn inject_message(desk: &LeslieCall<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let flags = &desk.flags;
    let inject = Inject {
        thread: flags.required_text("thread")?.to_owned(),
        kind: flags.required_text("type")?.to_owned(),
        content: flags.required_text("content")?.to_owned(),
        operator: Operator::User,
    };
    let at = desk.store.inject(&inject)?;
    Ok(LeslieResponse::new(json!({ "threadId": inject.thread, "injectedAt": at })))
}
