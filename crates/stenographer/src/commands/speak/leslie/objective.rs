//! `objective`: creates, lists and shows objectives.

use serde_json::json;

use super::LeslieContext;
use super::response::{LeslieFailure, LeslieResponse};

pub(super) fn create_objective(
    context: &LeslieContext<'_>,
) -> Result<LeslieResponse, LeslieFailure> {
    let objective = context.store.create_objective(context.flags.required_text("title")?)?;
    Ok(LeslieResponse::new(json!({
        "objectiveId": objective.id,
        "title": objective.title,
        "logDir": context.store.log_folder(&objective.id),
    })))
}

pub(super) fn list_objectives(
    context: &LeslieContext<'_>,
) -> Result<LeslieResponse, LeslieFailure> {
    Ok(LeslieResponse::new(context.store.list_objectives()?))
}

pub(super) fn objective_status(
    context: &LeslieContext<'_>,
) -> Result<LeslieResponse, LeslieFailure> {
    Ok(LeslieResponse::new(context.store.objective(context.flags.required_text("id")?)?))
}
