//! The addresses of sessions, and short forms of file paths.

use axum::extract::Path;
use maud::{Markup, html};
use steno_model::SessionId;

/// The agent and id of a session, as its address has them.
pub(crate) type SessionPath = Path<(String, String)>;

/// The address of a session's page.
pub(crate) fn session_address(agent: &str, id: &SessionId) -> String {
    // Both consist of letters, digits, '.', '_' and '-', so they need no encoding.
    format!("/session/{agent}/{id}")
}

/// A link to an entry of this session.
pub(crate) fn entry_link(number: usize) -> Markup {
    html! { a href={ "#e" (number) } { "entry " (number) } }
}

/// A path relative to a project folder, if it is inside it.
pub(crate) fn path_in_project<'a>(path: &'a str, project: Option<&str>) -> &'a str {
    let project =
        project.map(|project| project.trim_end_matches('/')).filter(|name| !name.is_empty());
    let inside = project.and_then(|project| path.strip_prefix(project)?.strip_prefix('/'));
    inside.filter(|inside| !inside.is_empty()).unwrap_or(path)
}

/// The last two segments of a path.
pub(crate) fn short_path(path: &str) -> &str {
    let end = path.trim_end_matches('/');
    let cut = end.match_indices('/').rev().nth(1).map_or(0, |(at, _)| at + 1);
    &end[cut..]
}

/// The last segment of a path.
pub(crate) fn last_segment(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// The last segment of a path, or as many as make it differ from other paths.
pub(crate) fn distinct_name<'a>(path: &'a str, others: &[&str]) -> &'a str {
    let name = last_segment(path);
    let is_same = |other: &&&str| **other != path && last_segment(other) == name;
    let same: Vec<&str> = others.iter().filter(is_same).copied().collect();
    if same.is_empty() { name } else { distinct_suffix(path, &same) }
}

/// The shortest end of a path, in whole segments, that no other path has; the whole path if each end is one of another.
pub(crate) fn distinct_suffix<'a>(path: &'a str, others: &[&str]) -> &'a str {
    let end = path.trim_end_matches('/');
    let has_end = |other: &str, suffix: &str| {
        let other = other.trim_end_matches('/');
        other.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    let is_distinct =
        |suffix: &str| !others.iter().any(|other| *other != path && has_end(other, suffix));
    let starts = end.match_indices('/').rev().map(|(at, _)| at + 1).filter(|at| *at < end.len());
    starts.map(|at| &end[at..]).find(|suffix| is_distinct(suffix)).unwrap_or(end)
}

/// Percent-encodes a text for a query.
pub(crate) fn encode_query_text(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let code = |byte: u8| match plain(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(code).collect()
}

/// The name of a model without its vendor and date: `sonnet-4-5` for `anthropic/claude-sonnet-4-5-20250929`.
pub(crate) fn short_model(model: &str) -> &str {
    let is_date = |part: &str| part.len() == 8 && part.bytes().all(|byte| byte.is_ascii_digit());
    let model = last_segment(model);
    let model = model.strip_prefix("claude-").unwrap_or(model);
    model.rsplit_once('-').filter(|(_, date)| is_date(date)).map_or(model, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_their_project() {
        let project = Some("/home/me/code");
        assert_eq!(path_in_project("/home/me/code/src/a.rs", project), "src/a.rs");
        for path in ["/home/me/codes/a.rs", "/home/me/code", "/home/me/code/", "src/a.rs"] {
            assert_eq!(path_in_project(path, project), path);
        }
        assert_eq!(path_in_project("/a", Some("/")), "/a");
    }

    #[test]
    fn folders_of_one_name_are_distinguished() {
        let all = ["/home/me/code/billing", "/home/me/old/billing", "/home/me/code/site"];
        let names = all.map(|path| distinct_name(path, &all));
        assert_eq!(names, ["code/billing", "old/billing", "site"]);
        let deep = ["/home/ada/shop/api", "/home/bob/shop/api"];
        assert_eq!(deep.map(|path| distinct_name(path, &deep)), ["ada/shop/api", "bob/shop/api"]);
    }

    #[test]
    fn models_are_shown_without_vendor_and_date() {
        let all =
            ["claude-sonnet-4-5-20250929", "anthropic/claude-opus-4-5", "gpt-5.1-codex", "o3-2025"];
        assert_eq!(all.map(short_model), ["sonnet-4-5", "opus-4-5", "gpt-5.1-codex", "o3-2025"]);
    }
}
