//! Explains an empty result: names a value that no session has, and lists those that exist.

use steno_store::index::{EntryFilter, Index, SessionFacet};

use crate::error::CommandError;
use crate::ui::escape_control;

/// Maximum number of values listed in a hint.
const MAX_LISTED: usize = 8;

/// Fails if a value of the filter occurs in no session, and lists the values that do.
pub(crate) fn check_known_values(
    index: &Index,
    filter: &EntryFilter,
    branch: Option<&str>,
) -> Result<(), CommandError> {
    let is_below = |known: &str, part: &str| {
        known == part
            || known.strip_prefix(part).is_some_and(|rest| rest.starts_with('/'))
            || known.strip_suffix(part).is_some_and(|rest| rest.ends_with('/'))
    };
    let contains = |known: &str, part: &str| known.to_lowercase().contains(&part.to_lowercase());
    let is_same = |known: &str, part: &str| known == part;
    let is_alike = |known: &str, part: &str| known.to_lowercase() == part.to_lowercase();
    type Matcher<'a> = &'a dyn Fn(&str, &str) -> bool;
    let checks: [(SessionFacet, &str, Option<&str>, Matcher<'_>); 6] = [
        (SessionFacet::Project, "project", filter.project.as_deref(), &is_below),
        (SessionFacet::Branch, "branch", branch, &is_same),
        (SessionFacet::Model, "model", filter.model.as_deref(), &contains),
        (SessionFacet::Thread, "thread", filter.thread.as_deref(), &is_same),
        (SessionFacet::Role, "role", filter.role.as_deref(), &is_same),
        (SessionFacet::Tool, "tool", filter.tool.as_deref(), &is_alike),
    ];
    for (facet, noun, wanted, matches) in checks {
        let Some(wanted) = wanted else { continue };
        if index.has_facet_value(facet, wanted)? {
            continue;
        }
        let known = index.facet_values(facet)?;
        if !known.iter().any(|known| matches(known, wanted)) {
            return Err(unknown_value_error(noun, wanted, &known));
        }
    }
    Ok(())
}

fn unknown_value_error(noun: &str, wanted: &str, known: &[String]) -> CommandError {
    let error = CommandError::user(format!("no session has the {noun} {wanted}"));
    let listed = known.iter().take(MAX_LISTED).map(|known| escape_control(known));
    let listed: Vec<String> = listed.collect();
    let plural = if noun == "branch" { "branches".to_owned() } else { format!("{noun}s") };
    let more = match known.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match listed.as_slice() {
        [] => error.hint(format!("no session has a {noun}")),
        listed => error.hint(format!("the {plural} are: {}{more}", listed.join(", "))),
    }
}
