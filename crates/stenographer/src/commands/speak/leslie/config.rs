//! `config init`, and the file of variables that agents are started with.

use std::fs;
use std::path::Path;

use serde_json::json;
use steno_core::durable;

use super::Desk;
use super::answer::{Answer, Failure, with_causes};
use crate::scene::Scene;

/// The variables that Claude Code reads.
const VARIABLES: [&str; 6] = [
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_MODEL",
];

/// Where the variables of all projects stand, from the home folder.
const FILE: &str = ".leslie/env";

/// Makes the file, empty or with what is set now; an existing one only if told so.
pub(super) fn init(desk: &Desk<'_>) -> Result<Answer, Failure> {
    let path = desk.scene.home.join(FILE);
    let from_env = desk.flags.has("from_env");
    let mut data = json!({ "path": path, "from_env": from_env });
    if path.exists() && !desk.flags.has("force") {
        data["skipped"] = true.into();
        data["message"] = "File exists, use --force to overwrite".into();
        return Ok(Answer::new(data));
    }
    let lines = VARIABLES.map(|name| if from_env { set(name) } else { format!("# {name}=\n") });
    let text = format!("# Variables that agents are started with\n\n{}", lines.concat());
    durable::create_private_dir(durable::parent(&path))
        .and_then(|()| durable::write_atomic(&path, text.as_bytes()))
        .map_err(|error| Failure::unknown(with_causes(&error)))?;
    Ok(Answer::new(data))
}

fn set(name: &str) -> String {
    let value = Scene::variable(name).unwrap_or_default().to_string_lossy().into_owned();
    let is_plain = !value.contains(|c: char| c.is_whitespace() || "\"'#\\".contains(c));
    if is_plain { format!("{name}={value}\n") } else { format!("{name}={}\n", json!(value)) }
}

/// The variables for agents: those of all projects, then those of the file that was named.
pub(super) fn variables(desk: &Desk<'_>) -> Result<Vec<(String, String)>, Failure> {
    let mut found = Vec::new();
    let common = desk.scene.home.join(FILE);
    if common.exists() {
        found.extend(load(&common)?);
    }
    if let Some(named) = desk.flags.optional("config")?.filter(|named| !named.is_empty()) {
        found.extend(load(&desk.scene.cwd.join(named))?);
    }
    Ok(found)
}

fn load(path: &Path) -> Result<Vec<(String, String)>, Failure> {
    let failed =
        |error| Failure::unknown(format!("Failed to load config: {}: {error}", path.display()));
    Ok(fs::read_to_string(path).map_err(failed)?.lines().filter_map(assignment).collect())
}

/// What a line such as `export NAME="value"` sets.
fn assignment(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
    let (name, value) = (name.trim(), value.trim());
    let literal = value.strip_prefix('\'').and_then(|value| value.split('\'').next());
    let value = match literal {
        Some(literal) => literal.to_owned(),
        None if value.starts_with('"') => quoted(value),
        None => value.split(" #").next().unwrap_or_default().trim_end().to_owned(),
    };
    (!name.is_empty()).then(|| (name.to_owned(), value))
}

/// The text in double quotes, with `\n`, `\"` and the like resolved.
fn quoted(value: &str) -> String {
    let mut texts = serde_json::Deserializer::from_str(value).into_iter::<String>();
    match texts.next() {
        Some(Ok(text)) => text,
        _ => value.trim_matches('"').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_shells_are_understood() {
        for (line, expected) in [
            ("A=b", Some(("A", "b"))),
            ("export A = b c # why", Some(("A", "b c"))),
            ("A=\"b\\n\\\"c\\\"\" # why", Some(("A", "b\n\"c\""))),
            ("A='b # c'", Some(("A", "b # c"))),
            ("A=", Some(("A", ""))),
            ("A=http://x/#y=1", Some(("A", "http://x/#y=1"))),
            ("# A=b", None),
            ("nothing", None),
            ("=b", None),
        ] {
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(assignment(line), expected, "{line}");
        }
    }
}
