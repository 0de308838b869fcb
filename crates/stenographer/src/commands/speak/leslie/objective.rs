//! `objective`: what threads work towards.

use serde_json::json;

use super::Desk;
use super::answer::{Answer, Failure};

pub(super) fn create(desk: &Desk<'_>) -> Result<Answer, Failure> {
    let objective = desk.store.create_objective(desk.flags.required("title")?)?;
    Ok(Answer::new(json!({
        "objectiveId": objective.id,
        "title": objective.title,
        "logDir": desk.store.log_folder(&objective.id),
    })))
}

pub(super) fn list(desk: &Desk<'_>) -> Result<Answer, Failure> {
    Ok(Answer::new(desk.store.objectives()?))
}

pub(super) fn status(desk: &Desk<'_>) -> Result<Answer, Failure> {
    Ok(Answer::new(desk.store.objective(desk.flags.required("id")?)?))
}
