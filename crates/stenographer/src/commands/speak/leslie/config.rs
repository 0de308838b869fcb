//! `config init`, and the environment file for agents.

use std::fs;
use std::path::Path;

use serde_json::json;
use steno_model::durable;

use super::LeslieContext;
use super::response::{LeslieFailure, LeslieResponse, join_causes};
use crate::process_environment::ProcessEnvironment;

/// Variables that Claude Code reads.
const CLAUDE_VARIABLES: [&str; 6] = [
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_MODEL",
];

/// Environment file of all projects, relative to the home folder.
const ENV_FILE: &str = ".leslie/env";

/// Creates the file, empty or with the current values. Overwrites an existing file only with `--force`.
pub(super) fn init_env_file(context: &LeslieContext<'_>) -> Result<LeslieResponse, LeslieFailure> {
    let path = context.env.home.join(ENV_FILE);
    let from_env = context.flags.has("from_env");
    let mut data = json!({ "path": path, "from_env": from_env });
    if path.exists() && !context.flags.has("force") {
        data["skipped"] = true.into();
        data["message"] = "File exists, use --force to overwrite".into();
        return Ok(LeslieResponse::new(data));
    }
    let lines = CLAUDE_VARIABLES
        .map(|name| if from_env { format_variable(name) } else { format!("# {name}=\n") });
    let text = format!("# Variables that agents are started with\n\n{}", lines.concat());
    durable::create_private_dir(durable::parent_folder(&path))
        .and_then(|()| durable::write_atomic(&path, text.as_bytes()))
        .map_err(|error| LeslieFailure::without_code(join_causes(&error)))?;
    Ok(LeslieResponse::new(data))
}

fn format_variable(name: &str) -> String {
    let value =
        ProcessEnvironment::variable(name).unwrap_or_default().to_string_lossy().into_owned();
    let is_plain = !value.contains(|c: char| c.is_whitespace() || "\"'#\\".contains(c));
    if is_plain { format!("{name}={value}\n") } else { format!("{name}={}\n", json!(value)) }
}

/// Reads the variables for agents: those of all projects, then those of the file in `--config`.
pub(super) fn read_variables(
    context: &LeslieContext<'_>,
) -> Result<Vec<(String, String)>, LeslieFailure> {
    let mut found = Vec::new();
    let common = context.env.home.join(ENV_FILE);
    if common.exists() {
        found.extend(read_env_file(&common)?);
    }
    if let Some(named) = context.flags.optional_text("config")?.filter(|named| !named.is_empty()) {
        found.extend(read_env_file(&context.env.cwd.join(named))?);
    }
    Ok(found)
}

fn read_env_file(path: &Path) -> Result<Vec<(String, String)>, LeslieFailure> {
    let failed = |error| {
        LeslieFailure::without_code(format!("Failed to load config: {}: {error}", path.display()))
    };
    Ok(fs::read_to_string(path).map_err(failed)?.lines().filter_map(parse_assignment).collect())
}

/// Parses a line such as `export NAME="value"`.
fn parse_assignment(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
    let (name, value) = (name.trim(), value.trim());
    let literal = value.strip_prefix('\'').and_then(|value| value.split('\'').next());
    let value = match literal {
        Some(literal) => literal.to_owned(),
        None if value.starts_with('"') => unquote_json(value),
        None => value.split(" #").next().unwrap_or_default().trim_end().to_owned(),
    };
    (!name.is_empty()).then(|| (name.to_owned(), value))
}

/// Decodes the text in double quotes, with `\n`, `\"` and other escapes.
fn unquote_json(value: &str) -> String {
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
            assert_eq!(parse_assignment(line), expected, "{line}");
        }
    }
}
