//! `objective`: what threads work towards.

use serde_json::json;

use super::LeslieCall;
use super::response::{LeslieFailure, LeslieResponse};

pub(super) fn create_objective(desk: &LeslieCall<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let objective = desk.store.create_objective(desk.flags.required_text("title")?)?;
    Ok(LeslieResponse::new(json!({
        "objectiveId": objective.id,
        "title": objective.title,
        "logDir": desk.store.log_folder(&objective.id),
    })))
}

pub(super) fn list_objectives(desk: &LeslieCall<'_>) -> Result<LeslieResponse, LeslieFailure> {
    Ok(LeslieResponse::new(desk.store.objectives()?))
}

pub(super) fn objective_status(desk: &LeslieCall<'_>) -> Result<LeslieResponse, LeslieFailure> {
    Ok(LeslieResponse::new(desk.store.objective(desk.flags.required_text("id")?)?))
}
