//! `reference` and `merge`: what threads have from each other.

use serde_json::json;
use steno_core::thread::{Binding, ConflictStrategy, Merge, Operator, Reference};

use super::Desk;
use super::answer::{Answer, Failure};

pub(super) fn reference(desk: &Desk<'_>) -> Result<Answer, Failure> {
    let flags = &desk.flags;
    let reference = Reference {
        from: flags.required("from")?.to_owned(),
        target: flags.required("target")?.to_owned(),
        binding: flags.word("binding")?.unwrap_or(Binding::Frozen),
        scope: Some(flags.list("scope")?),
        operator: Operator::User,
    };
    let made = desk.store.reference(&reference)?;
    let mut data = json!({ "ref_id": made.id });
    if let Some(snapshot) = made.snapshot {
        data["snapshot_version"] = json!(snapshot);
    }
    data["copied_paths"] = json!(made.copied);
    data["binding"] = json!(reference.binding);
    Ok(Answer::new(data).with_warnings(made.warnings))
}

pub(super) fn merge(desk: &Desk<'_>) -> Result<Answer, Failure> {
    let flags = &desk.flags;
    let merge = Merge {
        sources: flags.required_list("sources")?,
        target: flags.required("target")?.to_owned(),
        scope: flags.list("scope")?,
        strategy: flags.word("conflict_strategy")?.unwrap_or(ConflictStrategy::Interactive),
        operator: Operator::User,
    };
    let merged = desk.store.merge(&merge).map_err(Failure::bare)?;
    let answer = Answer::new(json!({ "mergedFiles": merged.files, "conflicts": merged.conflicts }));
    // leslie knows no warnings here.
    Ok(if merged.warnings.is_empty() { answer } else { answer.with_warnings(merged.warnings) })
}
