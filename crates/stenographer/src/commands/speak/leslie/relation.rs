//! `reference` and `merge`: links threads and merges their files.

use serde_json::json;
use steno_seeds::thread::{
    ConflictStrategy, MergeRequest, Operator, ReferenceBinding, ReferenceRequest,
};

use super::LeslieContext;
use super::response::{LeslieFailure, LeslieResponse};

pub(super) fn add_reference(context: &LeslieContext<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let flags = &context.flags;
    let reference = ReferenceRequest {
        from: flags.required_text("from")?.to_owned(),
        target: flags.required_text("target")?.to_owned(),
        binding: flags.parse_word("binding")?.unwrap_or(ReferenceBinding::Frozen),
        scope: Some(flags.comma_list("scope")?),
        operator: Operator::User,
    };
    let made = context.store.add_reference(&reference)?;
    let mut data = json!({ "ref_id": made.id });
    if let Some(snapshot) = made.snapshot {
        data["snapshot_version"] = json!(snapshot);
    }
    data["copied_paths"] = json!(made.copied);
    data["binding"] = json!(reference.binding);
    Ok(LeslieResponse::new(data).with_warnings(made.warnings))
}

pub(super) fn merge_threads(context: &LeslieContext<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let flags = &context.flags;
    let merge = MergeRequest {
        sources: flags.required_list("sources")?,
        target: flags.required_text("target")?.to_owned(),
        scope: flags.comma_list("scope")?,
        strategy: flags.parse_word("conflict_strategy")?.unwrap_or(ConflictStrategy::Interactive),
        operator: Operator::User,
    };
    let merged = context.store.merge_threads(&merge).map_err(LeslieFailure::without_details)?;
    let answer =
        LeslieResponse::new(json!({ "mergedFiles": merged.files, "conflicts": merged.conflicts }));
    // leslie has no warnings here.
    Ok(if merged.warnings.is_empty() { answer } else { answer.with_warnings(merged.warnings) })
}
