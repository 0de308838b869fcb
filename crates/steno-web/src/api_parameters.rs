//! Checks the query of a request to the JSON API: an unknown parameter or value is an error, not an answer to another
//! question. The pages are lenient, because people follow old links.

use axum::extract::Query;
use axum::http::Uri;
use steno_store::index::SessionFacet;

use crate::error::WebError;
use crate::filter_query::FilterQuery;
use crate::library::SessionLibrary;
use crate::pages::cost::group_names;
use crate::period_step::PeriodStep;

/// The beginning of the paths of the JSON API.
pub(crate) const API_PREFIX: &str = "/api/";

/// The roles that every format has.
const ROLES: [&str; 4] = ["assistant", "system", "tool", "user"];

/// The orders of search hits.
const HIT_ORDERS: [&str; 2] = ["relevance", "time"];

/// The parameters that select sessions and times.
const SCOPE: [&str; 7] = ["agent", "project", "model", "thread", "person", "since", "until"];

/// Fails if no entry can have the role of a query.
pub(crate) fn check_role(library: &SessionLibrary, filters: &FilterQuery) -> Result<(), WebError> {
    let role = filters.role.to_lowercase();
    // Some formats have roles of their own.
    let is_known = role.is_empty()
        || ROLES.contains(&role.as_str())
        || library.query_index(|index| index.has_facet_value(SessionFacet::Role, &role))?;
    if is_known { Ok(()) } else { Err(unknown_value("role", &filters.role, &ROLES)) }
}

/// Fails on an unknown parameter, or an unknown value of one that has a list of values.
pub(crate) fn check_parameters(uri: &Uri) -> Result<(), WebError> {
    let path = uri.path().strip_prefix(API_PREFIX);
    let Some((path, known)) = path.and_then(|path| Some((path, known_parameters(path)?))) else {
        return Ok(());
    };
    let pairs: Query<Vec<(String, String)>> =
        Query::try_from_uri(uri).map_err(|error| WebError::Action(error.to_string()))?;
    for (name, value) in &pairs.0 {
        if !known.contains(&name.as_str()) {
            return Err(unknown_parameter(name, &known));
        }
        let values = known_values(path, name);
        let is_known = values.is_empty() || value.is_empty() || values.contains(&value.as_str());
        if !is_known {
            return Err(unknown_value(name, value, &values));
        }
    }
    Ok(())
}

/// The parameters of a path below the prefix; `None` if there is nothing at the path.
fn known_parameters(path: &str) -> Option<Vec<&'static str>> {
    let own: &[&str] = match path {
        "search" => &["q", "role", "tool", "errors", "sort", "limit"],
        "cost" => &["by"],
        "trends" => &["q", "by", "role"],
        "edits" => &["q", "limit", "skip"],
        "sessions" => return Some(vec!["agent", "limit"]),
        "diff" => return Some(vec!["a", "b"]),
        "notes" | "openapi.json" => return Some(Vec::new()),
        _ if !path.starts_with("sessions/") => return None,
        _ if path.ends_with("/entries") => return Some(vec!["from", "count"]),
        _ => return Some(Vec::new()),
    };
    Some([own, &SCOPE].concat())
}

/// All values of a parameter; empty if it takes any.
fn known_values(path: &str, name: &str) -> Vec<&'static str> {
    match (path, name) {
        ("cost", "by") => group_names().collect(),
        ("trends", "by") => PeriodStep::ALL.map(PeriodStep::name).to_vec(),
        ("search", "sort") => HIT_ORDERS.to_vec(),
        _ => Vec::new(),
    }
}

fn unknown_parameter(name: &str, known: &[&str]) -> WebError {
    let reason = match known {
        [] => "it takes none".to_owned(),
        known => format!("one of: {}", known.join(", ")),
    };
    WebError::Action(format!("unknown parameter {name}; {reason}"))
}

fn unknown_value(name: &str, value: &str, values: &[&str]) -> WebError {
    WebError::Action(format!("unknown {name} {value}; one of: {}", values.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str) -> Result<(), String> {
        check_parameters(&uri.parse().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn known_queries_pass() {
        for uri in [
            "/api/cost",
            "/api/cost?by=",
            "/api/cost?by=block&agent=x&since=7d",
            "/api/search?q=a%20b&sort=time&errors=true",
            "/api/sessions/a/b/entries?from=1&count=2",
            "/api/nothing?at=all",
            "/cost?by=foo",
        ] {
            assert_eq!(check(uri), Ok(()), "{uri}");
        }
    }

    #[test]
    fn unknown_parameters_and_values_are_refused_with_the_known_ones() {
        for (uri, reason) in [
            (
                "/api/cost?by=foo",
                "unknown by foo; one of: day, week, month, model, project, agent, session, thread, person, block",
            ),
            ("/api/trends?q=a&by=year", "unknown by year; one of: day, week, month"),
            ("/api/search?q=a&sort=size", "unknown sort size; one of: relevance, time"),
            ("/api/sessions?agnt=x", "unknown parameter agnt; one of: agent, limit"),
            ("/api/notes?x=1", "unknown parameter x; it takes none"),
            ("/api/sessions/a/b?x=1", "unknown parameter x; it takes none"),
        ] {
            assert_eq!(check(uri), Err(reason.to_owned()), "{uri}");
        }
    }
}
