//! Status, lifecycle and messages of a thread.

use serde_json::json;
use steno_seeds::thread::{
    LifecycleAction, Operator, StatusChange, Thread, ThreadError, ThreadInjection, ThreadStatus,
    ThreadTransfer,
};

use super::LeslieContext;
use super::response::{LeslieFailure, LeslieResponse};

pub(super) fn change_lifecycle(
    context: &LeslieContext<'_>,
) -> Result<LeslieResponse, LeslieFailure> {
    let thread = context.flags.required_text("thread")?.to_owned();
    let word = context.flags.required_text("action")?;
    let reason = context.flags.optional_text("reason")?.map(str::to_owned);
    let Ok(action) = word.parse::<LifecycleAction>() else {
        let from = context.store.thread(&thread)?.status;
        return Err(ThreadError::Transition { from, action: word.to_owned() }.into());
    };
    let change = StatusChange { thread, action, reason, operator: Operator::User };
    let thread = context.store.change_status(&change)?;
    Ok(LeslieResponse::new(json!({ "threadId": thread.id, "status": thread.status })))
}

pub(super) fn list_threads(
    context: &mut LeslieContext<'_>,
) -> Result<LeslieResponse, LeslieFailure> {
    let named = context.flags.optional_text("status")?.filter(|status| !status.is_empty());
    let threads = match named.map(str::parse::<ThreadStatus>) {
        None => context.store.list_threads(None)?,
        Some(Ok(status)) => context.store.list_threads(Some(status))?,
        Some(Err(error)) => {
            context.ui.warning(format_args!("no such thread status: {error}"));
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

pub(super) fn thread_status(context: &LeslieContext<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let id = context.flags.required_text("thread")?;
    let mut data = json!(context.store.thread(id)?);
    let (context, warnings) = context.store.render_thread_context(id)?;
    data["thread_context"] = context.into();
    Ok(LeslieResponse::new(data).with_warnings(warnings))
}

pub(super) fn list_artifacts(context: &LeslieContext<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let id = context.flags.required_text("thread")?;
    let (assets, warnings) =
        context.store.assets_and_warnings(id).map_err(LeslieFailure::without_details)?;
    Ok(LeslieResponse::new(assets).with_warnings(warnings))
}

pub(super) fn transfer_thread(
    context: &LeslieContext<'_>,
) -> Result<LeslieResponse, LeslieFailure> {
    let flags = &context.flags;
    let (thread, direction) = (flags.required_text("thread")?, flags.required_text("direction")?);
    let invalid =
        |error| LeslieFailure::without_code(format!("Invalid value of flag --direction: {error}"));
    let transfer = ThreadTransfer {
        thread: thread.to_owned(),
        direction: direction.parse().map_err(invalid)?,
        scope: flags.required_list("scope")?,
        reason: flags.optional_text("reason")?.map(str::to_owned),
        executor: flags.parse_word("target")?,
        operator: Operator::User,
    };
    let thread =
        context.store.transfer_thread(&transfer).map_err(LeslieFailure::without_details)?;
    let (id, status, executor) = (thread.id, thread.status, thread.executor);
    Ok(LeslieResponse::new(json!({ "threadId": id, "status": status, "executor": executor })))
}

pub(super) fn inject_message(context: &LeslieContext<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let flags = &context.flags;
    let inject = ThreadInjection {
        thread: flags.required_text("thread")?.to_owned(),
        kind: flags.required_text("type")?.to_owned(),
        content: flags.required_text("content")?.to_owned(),
        operator: Operator::User,
    };
    let at = context.store.inject_text(&inject)?;
    Ok(LeslieResponse::new(json!({ "threadId": inject.thread, "injectedAt": at })))
}
